#include "tools/cli/disassembly.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "layouts/base/error.h"
#include "templates/base/workload_data.h"
#include "tools/cli/system_files.h"

namespace tilesmith {
namespace {

// The bytes in a file, for as long as this lives.
class CodeFile {
 public:
  explicit CodeFile(std::span<const uint8_t> bytes) {
    const int fd = mkstemp(path_);
    const bool written =
        fd >= 0 && write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
    if (fd >= 0) close(fd);
    if (!written)
      throw Error(ErrorCode::kEnvironment, fmt::format("cannot write {}: {}", path_, std::strerror(errno)));
  }
  ~CodeFile() { unlink(path_); }
  CodeFile(const CodeFile&) = delete;
  CodeFile& operator=(const CodeFile&) = delete;
  const char* path() const { return path_; }

 private:
  char path_[32] = "/tmp/tilesmith-code-XXXXXX";
};

std::string OutputOf(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr)
    throw Error(ErrorCode::kEnvironment, fmt::format("cannot run {}: {}", command, std::strerror(errno)));
  std::string output;
  char part[1 << 14];
  while (const size_t got = std::fread(part, 1, sizeof(part), pipe)) output.append(part, got);
  if (pclose(pipe) != 0) throw Error(ErrorCode::kEnvironment, "failed: " + command);
  return output;
}

std::string HexText(std::span<const uint8_t> bytes) {
  constexpr size_t kPerLine = 16;
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += kPerLine) {
    text += fmt::format("{:8x}:", at);
    for (size_t i = at; i < std::min(at + kPerLine, bytes.size()); ++i)
      text += fmt::format(" {:02x}", bytes[i]);
    text += "\n";
  }
  return text;
}

}  // namespace

std::string DisassemblyText(const CodeBlob& code) {
  const std::optional<std::string> objdump = FindProgram("objdump");
  if (!objdump) return HexText(code.bytes) + "(objdump, of binutils, is not in PATH: bytes only)\n";
  const CodeFile file(code.bytes);
  const std::string text = OutputOf(
      fmt::format("'{}' -D -b binary -m i386:x86-64 -M intel --no-show-raw-insn {}", *objdump, file.path()));
  // What comes before the first instruction is about the file.
  const size_t section = text.find("<.data>:\n");
  return section == std::string::npos ? text : text.substr(text.find('\n', section) + 1);
}

void DumpConv(const ConvWorkload& workload, const std::string& template_name, const Config& config,
              const Target& cpu, const std::string& directory) {
  const WorkloadData zeros = MakeWorkloadData(workload, 0, [](Tensor&) {});
  const auto kernel = FindConvTemplate(template_name).Build(workload, config, cpu, zeros.operands().weights);
  WriteCodeDump(directory + "/" + WorkloadToString(workload), kernel->Code());
}

}  // namespace tilesmith
