#include "tools/tune/graph_tune_job.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "layouts/base/text_file.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/results_file.h"
#include "tools/cli/streams.h"
#include "tools/commands/commands.h"

namespace tilesmith {
namespace {

// With standard input from a worker, whose end is this one's, too.
class GraphTuneJobCommand : public Command {
 public:
  std::string_view Name() const override { return "graph-tune-job"; }
  std::string_view Purpose() const override {
    return "Do a farm's graph-tune, for a worker, which starts this itself";
  }
  std::string_view Examples() const override { return "tilesmith graph-tune-job FOLDER"; }
  bool Hidden() const override { return true; }
  void Declare(Args& args) override { args.Positional("FOLDER", &folder_, "What the job has brought"); }

  int Run() override {
    IgnoreInterrupts();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pollfd worker = {STDIN_FILENO, POLLIN, 0};
    if (poll(&worker, 1, 0) > 0) throw Error(ErrorCode::kEnvironment, "the worker is gone");
    if (chdir(folder_.c_str()) != 0)
      throw Error(ErrorCode::kEnvironment, fmt::format("cannot enter {}: {}", folder_, std::strerror(errno)));
    Redirect(STDOUT_FILENO, graph_tune_files::kOutput);
    Redirect(STDERR_FILENO, graph_tune_files::kErrors);
    const GraphTuneJob job = GraphTuneJobFromText(ReadTextFile(graph_tune_files::kJob));
    WorkForCommand(job.command);
    setenv("COLUMNS", std::to_string(job.columns).c_str(), 1);
    std::vector<std::string> arguments = ArgumentsOf(job);
    arguments.emplace_back("--verbose");  // every stage is to be told
    SetVerbosity(arguments);
    return RunGuarded("tilesmith graph-tune", *MakeGraphTuneCommand(job.plan_shown), arguments);
  }

 private:
  static void Redirect(int fd, const char* name) {
    const int file = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0 || dup2(file, fd) < 0)
      throw Error(ErrorCode::kEnvironment, fmt::format("cannot write {}: {}", name, std::strerror(errno)));
    close(file);
  }

  std::string folder_;
};

}  // namespace

std::unique_ptr<Command> MakeGraphTuneJobCommand() { return std::make_unique<GraphTuneJobCommand>(); }

}  // namespace tilesmith
