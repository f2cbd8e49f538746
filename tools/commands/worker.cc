#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <random>

#include "layouts/base/error.h"
#include "layouts/measure/core_placement.h"
#include "templates/base/fma_peak.h"
#include "tools/cli/farm.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/report.h"
#include "tools/cli/results_file.h"
#include "tools/cli/streams.h"
#include "tools/commands/commands.h"
#include "tools/commands/graph_tune_farm.h"
#include "tuner/farm/farm_worker.h"
#include "tuner/measure/process_measurer.h"

namespace tilesmith {
namespace {

constexpr double kSlowShare = 0.9;  // of the class's median peak

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

// Workers are called after their hosts, as far as names go.
std::string NewWorkerId(const std::string& host) {
  std::string id;
  for (const char c : host.substr(0, 40)) id += IsFarmName(std::string_view(&c, 1)) ? c : '-';
  std::random_device random;
  return fmt::format("{}-{}-{:04x}", id, getpid(), random() & 0xffff);
}

class WorkerCommand : public Command {
 public:
  WorkerCommand()
      : Command({.name = "worker",
                 .purpose = "Measure trials on this machine for a farm, or show the farm's workers",
                 .examples = "tilesmith worker --farm redis://queue:6379/0\n"
                             "tilesmith worker --farm redis://queue:6379/0 --class rack7\n"
                             "tilesmith worker --farm redis://queue:6379/0 --list"}) {}
  void Declare(Args& args) override {
    args.Text("--farm", &url_,
              "The farm's Redis: redis://HOST:PORT/DB or unix:///PATH, a password being in REDISCLI_AUTH",
              "URL");
    args.Text("--class", &class_, "What equal machines are called (default: after CPU and instructions)",
              "NAME");
    DeclareTarget(args, &target_);
    DeclareRounding(args, &precision_);
    args.Flag("--list", &list_, "Show the workers instead");
    args.Flag("--json", &json_, "Print the list as JSON");
  }

  int Run() override {
    if (url_.empty()) throw Error(ErrorCode::kUsage, "--farm URL is required");
    const FarmAddress address = FarmAddressOf(url_);
    if (list_) return List(address);
    if (class_ == "all" || (!class_.empty() && !IsFarmName(class_))) {
      throw Error(
          ErrorCode::kUsage,
          fmt::format("--class must be 1 to 64 letters, digits and .-_ (and not all), got {}", class_));
    }
    return Serve(address);
  }

 private:
  int Serve(const FarmAddress& address) const {
    FarmService service;
    service.address = address;
    service.worker = Describe();
    service.on_event = [](const std::string& text) { PrintNote(text + "\n"); };
    service.stop = &InterruptFlag();
    service.jobs = {{kGraphTuneJob, DoGraphTuneJob}};
    CatchInterrupts();
    WarnOfOthers(service);
    ProcessMeasurer measurer(WorkerFor({"/proc/self/exe", "measure-worker"}, service.worker.target));
    RequireMeasuring(measurer, service.worker.target);
    PrintNote(fmt::format("worker {} of class {} serves {}\n", service.worker.id, service.worker.class_name,
                          address.ToString()));
    ServeFarm(service, measurer);
    return 0;
  }

  FarmWorker Describe() const {
    FarmWorker worker;
    worker.host = HostName();
    worker.id = NewWorkerId(worker.host);
    MachineOptions options;
    options.wait = "yield";
    options.target = target_;
    options.precision = precision_;
    const DevicePtr machine = OpenMachine(options);
    worker.target = machine->target();
    worker.class_name = class_.empty() ? DefaultClass(worker.target) : class_;
    if (worker.target.device != kCpuDevice) return worker;
    const PinnedTeam team(machine);
    worker.peak_flops = MeasureFmaPeak(worker.target, machine->threads());
    worker.cores = SeePlacement(machine->threads());
    return worker;
  }

  // A worker whose trials cannot run is none.
  static void RequireMeasuring(Measurer& measurer, const Target& target) {
    MeasureSession session;
    session.workload = ParseWorkload("ic16ih4oc16oh4kh1");
    session.cpu = target;
    session.conditions.threads = 1;
    measurer.Begin(session);
  }

  static void WarnOfOthers(const FarmService& service) {
    Farm farm(service.address, service.timing, nullptr);
    for (const FarmWorker& other : farm.Workers()) {
      if (!other.alive || other.host != service.worker.host) continue;
      PrintNote(
          fmt::format("warning: worker {} serves on this machine, too: they disturb each other\n", other.id));
    }
  }

  static double MedianPeak(const std::vector<FarmWorker>& workers, const std::string& class_name) {
    std::vector<double> peaks;
    for (const FarmWorker& worker : workers) {
      if (worker.alive && worker.class_name == class_name) peaks.push_back(worker.peak_flops);
    }
    if (peaks.empty()) return 0;
    std::ranges::sort(peaks);
    return peaks[peaks.size() / 2];
  }

  int List(const FarmAddress& address) const {
    Farm farm(address, {}, nullptr);
    const std::vector<FarmWorker> workers = farm.Workers();
    Report report;
    Table& table = report.AddTable({"workers",
                                    "",
                                    {{"worker", "worker"},
                                     {"class", "class"},
                                     {"cpu", "CPU", 3},
                                     {"isa", "ISA", 3},
                                     {"cores", "cores", 2},
                                     {"version", "version", 3},
                                     {"peak_flops", "peak GFLOP/s", 2},
                                     {"barrier_seconds", "barrier ns", 3},
                                     {"trials", "trials"},
                                     {"trials_per_second", "trials/s"},
                                     {"failures", "failures"},
                                     {"refused", "refused", 2},
                                     {"seen_seconds", "seen"},
                                     {"doing", "does", 2},
                                     {"note", "note", 2}}});
    int64_t alive = 0;
    for (const FarmWorker& worker : workers) {
      alive += worker.alive;
      table.AddRow(Row(worker, MedianPeak(workers, worker.class_name)));
    }
    report.Fact("farm", "farm", TextCell(address.ToString()));
    report.Fact("alive", "alive", CountCell(alive));
    PrintResults(report, json_, DetectCpu());
    return 0;
  }

  static std::vector<Cell> Row(const FarmWorker& worker, double median_peak) {
    std::string note;
    if (worker.alive && worker.peak_flops < kSlowShare * median_peak)
      note = fmt::format("slow: {:.0f}% of its class", 100 * worker.peak_flops / median_peak);
    const Target& target = worker.target;
    return {TextCell(worker.id),
            TextCell(worker.class_name),
            TextCell(target.model),
            TextCell(std::string(IsaName(target.isa))),
            CountCell(target.cores),
            TextCell(target.version),
            Cell{worker.peak_flops, fmt::format("{:.0f}", worker.peak_flops * 1e-9)},
            Cell{worker.cores.barrier_seconds, fmt::format("{:.0f}", worker.cores.barrier_seconds * 1e9)},
            CountCell(worker.trials),
            RealCell(worker.trials_per_second, 1),
            CountCell(worker.failures),
            CountCell(worker.refused),
            Cell{worker.silent_seconds, fmt::format("{:.0f} s ago", worker.silent_seconds)},
            TextCell(worker.alive ? worker.doing : "gone"),
            TextCell(note)};
  }

  std::string url_, class_, target_ = kCpuDevice;
  Precision precision_ = Precision::kF32;
  bool list_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeWorkerCommand() { return std::make_unique<WorkerCommand>(); }

}  // namespace tilesmith
