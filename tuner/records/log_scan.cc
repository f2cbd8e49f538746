#include "tuner/records/log_scan.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <span>
#include <thread>
#include <vector>

#include "layouts/base/error.h"
#include "tuner/records/record_line.h"

namespace tilesmith {
namespace {

// Each block is twice as large as the one before, until they are of kBlockBytes.
constexpr size_t kFirstBlockBytes = size_t{64} << 10;
constexpr size_t kBlockBytes = size_t{4} << 20;
// The rest of a longer line is passed over: no record is so long, but a damaged or foreign file may be a line
// larger than the memory.
constexpr size_t kLongestLine = size_t{16} << 20;
// Passing over more than that is no use: it may be a device that never ends.
constexpr size_t kMaxPassedOver = size_t{1} << 30;
// Lines of a block: each takes the memory of a record, though it be one character.
constexpr int64_t kMaxLines = 1 << 14;
// A reason quotes what it found, which may be most of such a line.
constexpr size_t kLongestProblem = 400;

[[noreturn]] void FailToRead(const std::string& path, const char* what) {
  throw Error(ErrorCode::kEnvironment, fmt::format("cannot {} {}: {}", what, path, std::strerror(errno)));
}

// A file in blocks of whole lines. Read rather than mapped: a writer may cut off what it could not finish.
class BlockReader {
 public:
  explicit BlockReader(const std::string& path) : path_(path), fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) FailToRead(path_, "read");
  }
  ~BlockReader() { close(fd_); }
  BlockReader(const BlockReader&) = delete;
  BlockReader& operator=(const BlockReader&) = delete;

  // False at the end. The last line of a file may lack its newline. Reuses the block's memory.
  bool Next(std::string& block) {
    block.assign(carry_);
    carry_.clear();
    if (CutLines(block)) return true;
    while (!ended_) {
      const size_t known = block.size();
      Fill(block);
      if (ended_) continue;
      const size_t newline = block.find('\n', known) == std::string::npos && block.size() <= kLongestLine
                                 ? std::string::npos
                                 : block.rfind('\n');
      if (newline != std::string::npos) {
        carry_.assign(block, newline + 1);
        block.resize(newline + 1);
        CutLines(block);
        return true;
      }
      if (block.size() > kLongestLine) {
        CutLine(block);
        return true;
      }
    }
    CutLines(block);
    return !block.empty();
  }

  bool AtEnd() const { return ended_ && carry_.empty(); }

 private:
  // What is behind kMaxLines is carried, in front of what is already; false where there are fewer.
  bool CutLines(std::string& block) {
    size_t end = 0;
    for (int64_t line = 0; line < kMaxLines; ++line) {
      end = block.find('\n', end);
      if (end == std::string::npos) return false;
      ++end;
    }
    carry_.insert(0, block, end);
    block.resize(end);
    return true;
  }

  // The block is nothing but the beginning of a line. What follows the line is carried.
  void CutLine(std::string& block) {
    block.resize(kLongestLine);
    size_t newline = std::string::npos, passed_over = 0;
    while (!ended_ && newline == std::string::npos) {
      carry_.clear();
      Fill(carry_);
      newline = carry_.find('\n');
      passed_over += carry_.size();
      if (passed_over > kMaxPassedOver) {
        throw Error(ErrorCode::kUsage, fmt::format("{}: not a tuning log: it has a line longer than {} MiB",
                                                   path_, passed_over >> 20));
      }
    }
    carry_.erase(0, newline == std::string::npos ? newline : newline + 1);
  }

  void Fill(std::string& block) {
    size_t filled = block.size();
    const size_t wanted = filled + fill_bytes_;
    fill_bytes_ = std::min(2 * fill_bytes_, kBlockBytes);
    block.resize(wanted);
    while (filled < wanted && !ended_) {
      const ssize_t got = read(fd_, block.data() + filled, wanted - filled);
      if (got < 0 && errno != EINTR) FailToRead(path_, "read");
      if (got == 0) ended_ = true;
      if (got > 0) filled += static_cast<size_t>(got);
    }
    block.resize(filled);
  }

  const std::string& path_;
  int fd_;
  bool ended_ = false;
  size_t fill_bytes_ = kFirstBlockBytes;
  std::string carry_;
};

struct Block {
  std::string text;
  std::vector<LogLine> lines;  // numbers count from 1 within the block
  int64_t count = 0;           // of lines, blank ones too
};

void ParseBlock(Block& block, RecordLineReader& reader) {
  std::string_view rest = block.text;
  block.count = 0;
  block.lines.clear();
  block.lines.reserve(1 + static_cast<size_t>(std::count(rest.begin(), rest.end(), '\n')));
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view text = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++block.count;
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    LogLine& line = block.lines.emplace_back();
    line.number = block.count;
    line.text = text;
    line.problem = reader.Read(text, line.record);
    if (line.problem.size() > kLongestProblem) line.problem.resize(kLongestProblem);
  }
}

void ParseBlocks(std::span<Block> blocks, std::vector<RecordLineReader>& readers) {
  std::vector<std::future<void>> others;
  for (size_t i = 1; i < blocks.size(); ++i)
    others.push_back(std::async(std::launch::async, [&, i] { ParseBlock(blocks[i], readers[i]); }));
  ParseBlock(blocks[0], readers[0]);
  for (std::future<void>& other : others) other.get();
}

// Returns how many of the blocks it filled; 0 at the end of the file.
size_t ReadAndParse(BlockReader& file, std::vector<Block>& blocks, std::vector<RecordLineReader>& readers) {
  size_t filled = 0;
  while (filled < blocks.size() && file.Next(blocks[filled].text)) ++filled;
  if (filled > 0) ParseBlocks(std::span(blocks.data(), filled), readers);
  return filled;
}

}  // namespace

void ScanLog(const std::string& path, const std::function<void(LogLine&)>& visit) {
  BlockReader file(path);
  std::vector<RecordLineReader> readers(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<Block> blocks(readers.size()), coming(readers.size());
  int64_t before = 0;  // lines of earlier blocks
  size_t filled = ReadAndParse(file, blocks, readers);
  while (filled > 0) {
    std::future<size_t> next;
    if (!file.AtEnd())
      next = std::async(std::launch::async, [&] { return ReadAndParse(file, coming, readers); });
    for (Block& block : std::span(blocks.data(), filled)) {
      for (LogLine& line : block.lines) {
        line.number += before;
        visit(line);
      }
      before += block.count;
    }
    filled = next.valid() ? next.get() : 0;
    blocks.swap(coming);
  }
}

}  // namespace tilesmith
