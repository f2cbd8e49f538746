#include "tools/cli/results_file.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <utility>

#include "layouts/base/text_file.h"
#include "layouts/base/visible.h"
#include "ops/onnx/onnx_import.h"
#include "tools/cli/machine.h"
#include "tools/cli/streams.h"
#include "tools/onednn/onednn.h"
#include "tuner/cost_model/boosted_trees.h"
#include "tuner/records/record.h"

namespace tilesmith {
namespace {

// An argument as a shell takes it.
std::string Quoted(const std::string& argument) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) return argument;
  std::string quoted = "'";
  for (const char c : argument) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// "": this process's own.
std::string& CommandToShow() {
  static std::string command;
  return command;
}

// Without the user and the password that a URL may have.
std::string WithoutPassword(std::string argument) {
  const size_t scheme = argument.find("://");
  const size_t at = argument.rfind('@');
  if (scheme != std::string::npos && at != std::string::npos && at > scheme)
    argument.erase(scheme + 3, at + 1 - (scheme + 3));
  return argument;
}

}  // namespace

void WorkForCommand(std::string command) { CommandToShow() = std::move(command); }

std::string OwnCommand() {
  if (!CommandToShow().empty()) return VisibleLine(CommandToShow());
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string arguments{std::istreambuf_iterator<char>(file), {}};
  std::string command = "tilesmith";
  for (size_t begin = arguments.find('\0') + 1; begin != 0 && begin < arguments.size();) {
    const size_t end = std::min(arguments.find('\0', begin), arguments.size());
    command += " " + Quoted(WithoutPassword(arguments.substr(begin, end - begin)));
    begin = end + 1;
  }
  return VisibleLine(command);
}
std::string MachineText(const Target& target) {
  if (target.device != kCpuDevice) {
    return fmt::format("{}, {} {:.1f}, {} KiB of shared memory, {} KiB L2, {} multiprocessors{}",
                       target.model, target.device, target.compute / 10.0, target.l1d_bytes >> 10,
                       target.l2_bytes >> 10, target.cores, target.tf32 ? ", products in TF32" : "");
  }
  return fmt::format("{}, {}, {} KiB L1d, {} KiB L2, {} KiB L3, {} cores{}", target.model,
                     IsaName(target.isa), target.l1d_bytes >> 10, target.l2_bytes >> 10,
                     target.l3_bytes >> 10, target.cores, target.reproducible ? ", reproducible" : "");
}

std::string ResultsText(const Table& table, std::string_view title, std::string_view machine) {
  return fmt::format("# title: {}\n# machine: {}\n# date: {}\n# commit: {}\n# command: {}\n{}", title,
                     machine, UtcNow().substr(0, 10), CommitOfBuild(), OwnCommand(), table.ToCsv());
}

void WriteResults(const std::string& path, const Table& table, std::string_view title,
                  std::string_view machine) {
  WriteTextFile(path, ResultsText(table, title, machine));
}

void AddOrigin(Report& details, const Target& cpu) {
  details.Fact("version", "", TextCell(cpu.version));
  details.Fact("commit", "", TextCell(std::string(CommitOfBuild())));
  details.Fact("date", "", TextCell(UtcNow()));
  details.Fact("command", "", TextCell(OwnCommand()));
  details.Fact("machine", "", TextCell(MachineText(cpu)));
}

void PrintResults(Report& report, bool json, const Target& cpu) {
  if (json) AddOrigin(report.details(), cpu);
  report.Print(json);
}

std::string VersionText() {
  const Target cpu = CappedCpu("");
  return fmt::format(
      "tilesmith {} (commit {})\n"
      "instructions: {}, of {}\n"
      "libraries: oneDNN {}, XGBoost {}, protobuf {}; compiled by GCC {}\n",
      TILESMITH_VERSION, CommitOfBuild(), IsaName(cpu.isa), cpu.model, OneDnnVersion(), XgboostVersion(),
      ProtobufVersion(), __VERSION__);
}

}  // namespace tilesmith
