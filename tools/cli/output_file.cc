#include "tools/cli/output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "tools/cli/streams.h"
#include "tuner/records/log.h"

namespace tilesmith {
namespace {

struct Format {
  OutputFormat format;
  std::string_view text;  // of lines of JSON as FileKind has it
};
constexpr Format kFormats[] = {{OutputFormat::kLog, "a tuning log"},
                               {OutputFormat::kPlan, "a plan"},
                               {OutputFormat::kCosts, "a file of costs"},
                               {OutputFormat::kCostModel, "a cost model"},
                               {OutputFormat::kMeasuredSpace, "a measured space"},
                               {OutputFormat::kAutoTvmLog, "a log of AutoTVM's"},
                               {OutputFormat::kJson, "JSON"},
                               {OutputFormat::kCsv, "a table in CSV"},
                               {OutputFormat::kPage, "a page of HTML"},
                               {OutputFormat::kNpz, "an .npz file"},
                               {OutputFormat::kCompiled, "a compiled network"},
                               {OutputFormat::kObject, "an object file"},
                               {OutputFormat::kHeader, "an object's header"},
                               {OutputFormat::kOnnx, "an ONNX file"}};

// The first line that is no comment has several fields, of text.
bool IsTable(std::string_view text) {
  constexpr std::string_view kOthers = "{[<";
  while (text.starts_with('#')) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  const std::string_view line = text.substr(0, text.find('\n'));
  const bool is_text =
      std::ranges::none_of(line, [](unsigned char c) { return c < ' ' && c != '\r' && c != '\t'; });
  return is_text && line.find(',') != std::string_view::npos &&
         kOthers.find(line.front()) == std::string_view::npos;
}

bool HoldsJson(const Format& format, std::string_view text) {
  if (!text.starts_with('{') && !text.starts_with('[')) return false;
  const nlohmann::json line = nlohmann::json::parse(text.substr(0, text.find('\n')), nullptr, false);
  // What is printed over several lines has a bracket first; another line that cannot be read is damaged, and
  // may have been of any kind.
  if (line.is_discarded() && text.find_first_of("{[\n", 1) != 1) return true;
  const std::string kind = FileKind(line);
  return format.format == OutputFormat::kJson ? kind.empty() : kind.starts_with(format.text);
}

bool Holds(const Format& format, std::string_view text) {
  constexpr char kVersionField = '\x08';
  switch (format.format) {
    case OutputFormat::kOnnx:
      return text.starts_with(kVersionField);
    case OutputFormat::kNpz:
      return text.starts_with("PK");
    case OutputFormat::kCompiled:
      return text.starts_with("TSMITHC\n");
    case OutputFormat::kObject:
      return text.starts_with(
          "\x7f"
          "ELF");
    case OutputFormat::kHeader:
      return text.starts_with("/* tilesmith ");
    case OutputFormat::kPage:
      return text.starts_with("<!DOCTYPE html");
    case OutputFormat::kCsv:
      return IsTable(text);
    default:
      return HoldsJson(format, text);
  }
}

// Of a file's beginning, blank lines left out. "" where there is none to read.
std::string Beginning(const std::string& path) {
  constexpr size_t kBytes = size_t{1} << 20;
  std::error_code hidden;
  if (!std::filesystem::is_regular_file(path, hidden)) return "";
  std::ifstream file(path, std::ios::binary);
  std::string text(kBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text.erase(0, std::min(text.find_first_not_of("\r\n"), text.size()));
}

}  // namespace

void RequireFormat(const std::string& path, OutputFormat format) {
  const Format& wanted = *std::ranges::find(kFormats, format, &Format::format);
  const std::string text = Beginning(path);
  if (text.empty() || Holds(wanted, text)) return;
  throw Error(
      ErrorCode::kUsage,
      fmt::format("{} holds something else than {} and stays as it is: name another file, or remove it", path,
                  wanted.text));
}

void RequireReplaceable(const std::string& path, OutputFormat format,
                        const std::vector<std::string>& others) {
  RequireWritable(path, others);
  RequireFormat(path, format);
}

void RequireDifferent(const std::vector<std::string>& outputs) {
  std::error_code hidden;
  std::vector<std::filesystem::path> files;
  for (const std::string& one : outputs) {
    const bool device =
        std::filesystem::exists(one, hidden) && !std::filesystem::is_regular_file(one, hidden);
    if (one.empty() || device) continue;
    const auto file = std::filesystem::weakly_canonical(std::filesystem::absolute(one, hidden), hidden);
    if (std::ranges::find(files, file) != files.end())
      throw Error(ErrorCode::kUsage, fmt::format("{} is named for two outputs", one));
    files.push_back(file);
  }
}

void ReplaceFile(const std::string& path, const std::function<void()>& write) {
  std::error_code hidden;
  const bool existed =
      std::filesystem::is_regular_file(path, hidden) && std::filesystem::file_size(path, hidden) > 0;
  write();
  if (existed) PrintNote(fmt::format("{} existed and was replaced\n", path));
}

ScratchFolder::ScratchFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "tilesmith-peer-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr)
    throw Error(ErrorCode::kEnvironment, fmt::format("cannot make a folder like {}", name));
  folder_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
}

}  // namespace tilesmith
