// Measuring on this machine, or on those of a farm (tuner/farm): what --farm and --class ask for.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/cli/args.h"
#include "tools/cli/machine.h"
#include "tools/cli/progress.h"
#include "tuner/farm/farm.h"
#include "tuner/measure/measurer.h"

namespace tilesmith {

struct FarmOptions {
  std::string url;         // "": this machine
  std::string class_name;  // "": the farm's only one
  bool wanted() const { return !url.empty(); }
};
// With `all`, --class may name them all.
void DeclareFarm(Args& args, FarmOptions* options, bool all = false);

// Where the URL says, with the password of the environment variable REDISCLI_AUTH where the URL has none.
FarmAddress FarmAddressOf(const std::string& url);

// Equal machines, by their own word.
struct FarmClass {
  std::string name;
  Target target;
  int workers = 0;  // alive
};
// The classes that the options ask for. Throws Error(kUsage) for a class without --farm and where a class has
// to be named, and Error(kEnvironment) where no worker serves it.
std::vector<FarmClass> ChosenClasses(const FarmOptions& options);
// Such a machine, to choose for and not to run on. Throws as OpenMachine.
DevicePtr OpenFarmMachine(const FarmClass& farm_class, const MachineOptions& options);
// `sync` as in FarmRequest. What `sinks` refer to outlives the result.
std::unique_ptr<Measurer> MakeFarmMeasurer(const FarmOptions& options, const FarmClass& farm_class,
                                           const WorkSinks& sinks, const std::function<void()>& sync);

// What commands measure with that do nothing else: the machine, and the measurer for it.
struct Measuring {
  DevicePtr machine;
  std::unique_ptr<Measurer> measurer;
};
// Throws as the functions above.
Measuring OpenMeasuring(const FarmOptions& farm, const MachineOptions& machine, const WorkSinks& sinks);

}  // namespace tilesmith
