// The processes of a simulated farm, to be killed by tests:
//   farm_process_for_tests worker URL CLASS TRIAL_MS [ID]
//   farm_process_for_tests tune URL CLASS LOG SEED     goes on with the log; prints the best when done
//   farm_process_for_tests measure URL CLASS TRIALS    prints how many seconds that many trials take//
//   farm_process_for_tests wire FROM-PORT TO-PORT DELAY_MS LOST    a slow and lossy network to 127.0.0.1
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "layouts/base/error.h"
#include "layouts/measure/clock.h"
#include "tests/tuner/support/farm/simulated_farm.h"
#include "tests/tuner/support/farm/slow_wire.h"
#include "tests/tuner/support/tune_one.h"
#include "tuner/measure/measurer.h"
#include "tuner/records/log.h"

namespace tilesmith {
namespace {

StopFlag stop = false;

int Work(const std::string& url, const std::string& class_name, double trial_seconds, const std::string& id) {
  SleepingMeasurer measurer(trial_seconds);
  const FarmService service = {ParseFarmUrl(url), QuickTiming(), FarmWorkerOf(id, class_name),
                               [](const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); },
                               &stop};
  ServeFarm(service, measurer);
  return 0;
}

int Tune(const std::string& url, const std::string& class_name, const std::string& path, uint64_t seed) {
  LogWriter log(path);
  FarmRequest farm = FarmRequestOf(ParseFarmUrl(url), class_name);
  farm.sync = [&] { log.Sync(); };
  farm.stop = &stop;
  FarmMeasurer measurer(std::move(farm));
  const FakeTemplate fake;
  TuneRequest request;
  request.workload = FarmSession().workload;
  request.cpu = FarmTarget();
  request.templates = {&fake};
  request.options.searcher = "random";
  request.options.batch = 32;
  request.options.seed = seed;
  request.options.retime_rounds = 0;
  if (std::filesystem::exists(path)) request.resume = ReadLog(path).records;
  NetworkSinks sinks;
  sinks.on_record = [&](const Record& record) { log.Append(record); };
  sinks.should_stop = [] { return IsStopped(&stop); };
  const TuneResult result = TuneOne(request, 100000, measurer, sinks);
  if (!result.best) return 4;
  std::printf("%s %.17g\n", result.best->config.ToString().c_str(), result.best->seconds);
  return 0;
}

int Measure(const std::string& url, const std::string& class_name, int trials) {
  FarmMeasurer measurer(FarmRequestOf(ParseFarmUrl(url), class_name));
  measurer.Begin(FarmSession());
  const FakeTemplate fake;
  const ConfigSpace space = fake.Space(FarmSession().workload, FarmTarget());
  int asked = 0;
  const auto next = [&]() -> std::optional<TrialRequest> {
    if (asked == trials) return std::nullopt;
    return TrialRequest{"fake", space.At(static_cast<uint64_t>(asked++) % space.size())};
  };
  const double begin = NowSeconds();
  RunTrials(measurer, next, [](size_t, const TrialResult&) {});
  std::printf("%.6f\n", NowSeconds() - begin);
  return 0;
}

int Run(const std::vector<std::string>& arguments) {
  if (arguments.size() < 4) return 2;
  const std::string &mode = arguments[0], &url = arguments[1], &class_name = arguments[2];
  if (mode == "worker") {
    const std::string id = arguments.size() > 4 ? arguments[4] : "w" + std::to_string(getpid());
    return Work(url, class_name, std::stod(arguments[3]) / 1e3, id);
  }
  if (mode == "tune") return Tune(url, class_name, arguments[3], std::stoull(arguments.at(4)));
  if (mode == "measure") return Measure(url, class_name, std::stoi(arguments[3]));
  if (mode == "wire") {
    RunSlowWire(
        {std::stoi(url), std::stoi(class_name), std::stod(arguments[3]) * 1e-3, std::stod(arguments.at(4))},
        stop);
    return 0;
  }
  return 2;
}

}  // namespace
}  // namespace tilesmith

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGTERM, [](int) { tilesmith::stop = true; });
  try {
    return tilesmith::Run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const tilesmith::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
}
