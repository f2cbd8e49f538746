// Where the graph tuner's prices come from. Convs are priced by their tuning records; everything else by a
// CostSource: measured on this machine and cached, or made up by a test.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "graph_tuner/costs/costs_file.h"
#include "graph_tuner/costs/crossing_costs.h"
#include "layouts/base/target.h"
#include "layouts/layout.h"
#include "layouts/tensor.h"
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
  bool interpolate = false;  // transforms between two known sizes (TransformCosts)
  // The same for the prices of crossing, which are the machine's and no network's: a host may show each
  // network's tuning another distance of the cores.
  std::string machine_path = {};
};

// Measures on the device. Throws Error(kEnvironment) when the file cannot be read or written. `warnings`
// (may be null) receives a line for each line of the file that was skipped.
std::unique_ptr<CostSource> MeasuredCosts(DevicePtr device, const CostOptions& options,
                                          std::vector<std::string>* warnings);

// Values that are neither zero nor denormal, the same every time; padding stays zero.
Tensor TimingInput(const Shape& shape, const Layout& layout);

// Signature, input shapes and output shape; not the layout.
std::string OpUseText(const OpUse& use);

// What ops other than convs cost in each layout they run in, each distinct one measured once per machine.
class OpCosts {
 public:
  using Measure = std::function<double(const OpUse&)>;

  // `file` must outlive this.
  OpCosts(CostFile& file, Measure measure) : file_(file), measure_(std::move(measure)) {}

  // Precondition: use.op->RunsIn(use.layout, use.inputs).
  double Seconds(const OpUse& use);

 private:
  // All of an OpUse but the op.
  using Use = std::tuple<std::vector<Shape>, Shape, Layout, std::vector<DataType>, DataType>;

  double FromFile(const OpUse& use);

  CostFile& file_;
  Measure measure_;
  std::map<std::weak_ptr<const Op>, std::map<Use, double>, std::owner_less<>> known_;
};

// What layout transforms and copies of a tensor cost, each distinct one measured once per machine; or, when
// asked to, estimated from two that were.
class TransformCosts {
 public:
  // Seconds to write the tensor in `to`, reading it in `from`; equal layouts mean a copy.
  using Measure = std::function<double(const Shape& shape, const Layout& from, const Layout& to)>;

  // `file` must outlive this. With `interpolate`, a transform of n elements that the file lacks, but of which
  // it has the same pair of layouts for fewer and for more elements, at most kInterpolationSpan times apart,
  // costs what the line through the nearest two says at n. Estimates are not added to the file.
  TransformCosts(CostFile& file, Measure measure, bool interpolate = false)
      : file_(file), measure_(std::move(measure)), interpolate_(interpolate) {}

  // 0 when SameMemory. Preconditions: rank <= 4, or both layouts NCHW.
  double Seconds(const Shape& shape, const Layout& from, const Layout& to);
  double CopySeconds(const Shape& shape, const Layout& layout);
  // Whether Seconds has estimated this transform.
  bool IsInterpolated(const Shape& shape, const Layout& from, const Layout& to) const;

  static constexpr double kInterpolationSpan = 8;

 private:
  double FromFile(const Shape& shape, const Layout& from, const Layout& to);
  std::optional<double> Interpolate(const Shape& shape, const Layout& from, const Layout& to) const;

  CostFile& file_;
  Measure measure_;
  bool interpolate_;
  std::map<CostKey, double> estimates_;  // once given they stay, whatever is measured later
  std::map<std::tuple<Shape, Layout, Layout>, double> known_;
};

}  // namespace tilesmith
