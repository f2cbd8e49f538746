#include "tools/cli/farm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "layouts/base/error.h"
#include "tuner/farm/farm_measurer.h"
#include "tuner/measure/process_measurer.h"

namespace tilesmith {

void DeclareFarm(Args& args, FarmOptions* options, bool all) {
  const std::string heading = args.Group("Machine");
  args.Text(
      "--farm", &options->url,
      "Measure on the workers of a farm instead: redis://HOST:PORT/DB or unix:///PATH, a password being "
      "in REDISCLI_AUTH",
      "URL");
  args.Text("--class", &options->class_name,
            all ? "Which machines of the farm, or all: a log for each class, LOG.CLASS.jsonl (default: its "
                  "only class)"
                : "Which machines of the farm (default: its only class)",
            "NAME");
  args.Group(heading);
}

FarmAddress FarmAddressOf(const std::string& url) {
  FarmAddress address = ParseFarmUrl(url);
  const char* const password = std::getenv("REDISCLI_AUTH");
  if (address.password.empty() && password != nullptr) address.password = password;
  return address;
}

std::vector<FarmClass> ChosenClasses(const FarmOptions& options) {
  if (!options.wanted()) throw Error(ErrorCode::kUsage, "--class is for --farm");
  Farm farm(FarmAddressOf(options.url), {}, nullptr);
  std::vector<FarmClass> classes;
  std::vector<std::string> names;
  for (const FarmWorker& worker : farm.Workers()) {
    if (!worker.alive) continue;
    if (classes.empty() || classes.back().name != worker.class_name) {
      classes.push_back({worker.class_name, worker.target, 0});
      names.push_back(worker.class_name);
    }
    FarmClass& own = classes.back();
    ++own.workers;
    own.target.cores = std::min(own.target.cores, worker.target.cores);
  }
  const std::string where = "farm " + farm.address().ToString();
  if (classes.empty()) throw Error(ErrorCode::kEnvironment, where + " has no workers");
  const std::string& name = options.class_name;
  if (name == "all") return classes;
  if (name.empty() && classes.size() > 1) {
    throw Error(ErrorCode::kUsage, fmt::format("{} has {} classes of machines, --class names one (known: {})",
                                               where, classes.size(), fmt::join(names, ", ")));
  }
  if (!name.empty()) std::erase_if(classes, [&](const FarmClass& one) { return one.name != name; });
  if (!classes.empty()) return classes;
  throw Error(ErrorCode::kEnvironment,
              fmt::format("{} has no workers of class {} (known: {})", where, name, fmt::join(names, ", ")));
}

DevicePtr OpenFarmMachine(const FarmClass& farm_class, const MachineOptions& options) {
  Target target = farm_class.target;
  if (target.version != ToolVersion()) {
    throw Error(ErrorCode::kEnvironment, fmt::format("class {} runs tilesmith {}, this is {}",
                                                     farm_class.name, target.version, ToolVersion()));
  }
  if (!options.max_isa.empty()) target = CapIsa(target, ParseIsa(options.max_isa, kAllIsas));
  if (options.threads > target.cores) {
    throw Error(ErrorCode::kUsage, fmt::format("--threads must be at most {}, the cores of class {}, got {}",
                                               target.cores, farm_class.name, options.threads));
  }
  return OpenDevice(target, options.threads > 0 ? static_cast<int>(options.threads) : target.cores);
}

std::unique_ptr<Measurer> MakeFarmMeasurer(const FarmOptions& options, const FarmClass& farm_class,
                                           const WorkSinks& sinks, const std::function<void()>& sync) {
  FarmRequest request;
  request.address = FarmAddressOf(options.url);
  request.class_name = farm_class.name;
  request.sync = sync;
  request.on_warning = sinks.on_warning;
  request.stop = sinks.stop;
  return std::make_unique<FarmMeasurer>(std::move(request));
}

Measuring OpenMeasuring(const FarmOptions& farm, const MachineOptions& machine, const WorkSinks& sinks) {
  if (!farm.wanted() && farm.class_name.empty()) {
    const std::vector<std::string> worker = {"/proc/self/exe", "measure-worker"};
    const DevicePtr opened = OpenMachine(machine);
    return {opened, std::make_unique<ProcessMeasurer>(WorkerFor(worker, opened->target()))};
  }
  if (farm.class_name == "all") throw Error(ErrorCode::kUsage, "--class all is for tune");
  const FarmClass chosen = ChosenClasses(farm).front();
  return {OpenFarmMachine(chosen, machine), MakeFarmMeasurer(farm, chosen, sinks, {})};
}

}  // namespace tilesmith
