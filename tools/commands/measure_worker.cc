#include <unistd.h>

#include "tools/cli/interrupt.h"
#include "tools/cli/machine.h"
#include "tools/commands/commands.h"
#include "tuner/measure/worker.h"

namespace tilesmith {
namespace {

class MeasureWorkerCommand : public Command {
 public:
  MeasureWorkerCommand()
      : Command({.name = "measure-worker",
                 .purpose = "Measure trials for a tuner, which starts this itself",
                 .examples = "tilesmith measure-worker",
                 .hidden = true}) {}
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
