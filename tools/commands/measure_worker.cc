#include <unistd.h>

#include "tools/cli/interrupt.h"
#include "tools/cli/machine.h"
#include "tools/commands/commands.h"
#include "tuner/measure/worker.h"

namespace tilesmith {
namespace {

class MeasureWorkerCommand : public Command {
 public:
  std::string_view Name() const override { return "measure-worker"; }
  std::string_view Purpose() const override { return "Measure trials for a tuner, which starts this itself"; }
  std::string_view Examples() const override { return "tilesmith measure-worker"; }
  bool Hidden() const override { return true; }
  void Declare(Args& args) override {
    DeclareTarget(args, &machine_.target);
    DeclareRounding(args, &machine_.precision);
  }
  int Run() override {
    IgnoreInterrupts();
    return MeasureWorkerMain(STDIN_FILENO, STDOUT_FILENO,
                             machine_.target == kCpuDevice ? DetectCpu() : ChosenTarget(machine_));
  }

 private:
  MachineOptions machine_;
};

}  // namespace

std::unique_ptr<Command> MakeMeasureWorkerCommand() { return std::make_unique<MeasureWorkerCommand>(); }

}  // namespace tilesmith
