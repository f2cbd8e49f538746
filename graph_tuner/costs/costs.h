// Where the graph tuner's prices come from. Convs are priced by their tuning records; everything else by a
// CostSource: measured on this machine and cached, or made up by a test.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph_tuner/costs/crossing_prices.h"
#include "layouts/base/target.h"
#include "layouts/layout.h"
#include "ops/base/op.h"
#include "templates/device/device.h"

namespace tilesmith {

// A layout-tolerant op in one layout: all its tensors are in the order of `layout`, each in its own type.
struct OpUse {
  OpPtr op;
  std::vector<Shape> inputs;
  Shape output;
  Layout layout;
  std::vector<DataType> input_types = {};  // empty: all are f32
  DataType output_type = DataType::kF32;
};

// All answers are seconds, finite and not negative, the same whenever asked again, and the same for layouts
// that are the same memory (SameMemory).
class CostSource {
 public:
  virtual ~CostSource() = default;
  // Converting a tensor; 0 when SameMemory.
  virtual double TransformSeconds(const Shape& shape, const Layout& from, const Layout& to) = 0;
  // Whether that answer, once given, is an estimate from other sizes.
  virtual bool IsInterpolated(const Shape& /*shape*/, const Layout& /*from*/, const Layout& /*to*/) const {
    return false;
  }
  // Copying a tensor as it is, into a slice of a concat.
  virtual double CopySeconds(const Shape& shape, const Layout& layout) = 0;
  virtual double OpSeconds(const OpUse& use) = 0;
  // What it costs that bytes change hands between threads. The same until SeeDistance.
  virtual CrossingPrices PricesOfCrossing() = 0;
  // Adds the prices of the distance that the cores have now, where there are none of it. Sources that do not
  // measure have none to add.
  virtual void SeeDistance() {}
};

// Notes what it is asked, answers 0, and can ask another source the same, each distinct question once. So a
// source that must measure is asked everything up front, with progress.
class CostQuestions final : public CostSource {
 public:
  double TransformSeconds(const Shape& shape, const Layout& from, const Layout& to) override;
  double CopySeconds(const Shape& shape, const Layout& layout) override;
  double OpSeconds(const OpUse& use) override;
  CrossingPrices PricesOfCrossing() override;

  size_t size() const { return questions_.size(); }
  // progress(done, total) is called before the first question and after each; may be empty.
  void Ask(CostSource& source, const std::function<void(size_t, size_t)>& progress) const;

 private:
  std::map<std::string, std::function<void(CostSource&)>> questions_;
};

struct CostOptions {
  std::string cache_path;    // what was measured before is read from here, what is new appended; or ""
  bool interpolate = false;  // transforms between two known sizes (TransformCosts, transform_costs.h)
  // The same for the prices of crossing, which are the machine's and no network's: a host may show each
  // network's tuning another distance of the cores.
  std::string machine_path = {};
};

// Measures on the device. Throws Error(kEnvironment) when the file cannot be read or written. `warnings`
// (may be null) receives a line for each line of the file that was skipped.
std::unique_ptr<CostSource> MeasuredCosts(DevicePtr device, const CostOptions& options,
                                          std::vector<std::string>* warnings);

}  // namespace tilesmith
