#include "tools/cli/machine.h"
#include "tools/cli/report.h"
#include "tools/cli/results_file.h"
#include "tools/commands/commands.h"
#include "tools/doctor/checkup.h"

namespace tilesmith {
namespace {

class DoctorCommand : public Command {
 public:
  DoctorCommand()
      : Command({.name = "doctor",
                 .purpose = "Find out whether this machine's timings can be trusted",
                 .examples = "tilesmith doctor\n"
                             "tilesmith doctor --threads 1 --json"}) {}
  void Declare(Args& args) override {
    DeclareMachineOptions(args, &machine_options_);
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    const DevicePtr machine = OpenMachine(machine_options_);
    RequireCpu(machine, texts().name);
    const PinnedTeam team(machine);
    Report report;
    Table& table = report.AddTable({"checks",
                                    "",
                                    {{"check", "check"},
                                     {"verdict", "verdict", 0},
                                     {"value", "value", 0},
                                     {"advice", "advice", 0},
                                     {"figures", ""}}});
    int64_t warnings = 0;
    for (const Finding& finding : Checkup(machine, team.cores_before())) {
      warnings += finding.advice.empty() ? 0 : 1;
      table.AddRow({TextCell(finding.check), TextCell(finding.advice.empty() ? "ok" : "warn"),
                    TextCell(finding.value), TextCell(finding.advice), Cell{finding.figures, ""}});
    }
    report.Fact("warnings", "warnings", CountCell(warnings));
    PrintResults(report, json_, machine->target());
    return 0;
  }

 private:
  MachineOptions machine_options_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeDoctorCommand() { return std::make_unique<DoctorCommand>(); }

}  // namespace tilesmith
