#include "graph_tuner/costs/costs.h"

#include <fmt/format.h>

#include "graph_tuner/costs/costs_file.h"
#include "graph_tuner/costs/crossing_costs.h"
#include "graph_tuner/costs/op_costs.h"
#include "graph_tuner/costs/transform_costs.h"

namespace tilesmith {
namespace {

class Measured final : public CostSource {
 public:
  Measured(const DevicePtr& device, const CostOptions& options)
      : file_(options.cache_path, device->target(), device->threads()),
        machine_(options.machine_path, device->target(), device->threads()),
        transforms_(file_, TransformMeasure(device), options.interpolate),
        ops_(file_, OpMeasure(device)),
        crossings_(file_, machine_, CrossingMeasureOf(*device)) {}

  double TransformSeconds(const Shape& shape, const Layout& from, const Layout& to) override {
    return transforms_.Seconds(shape, from, to);
  }
  bool IsInterpolated(const Shape& shape, const Layout& from, const Layout& to) const override {
    return transforms_.IsInterpolated(shape, from, to);
  }
  double CopySeconds(const Shape& shape, const Layout& layout) override {
    return transforms_.CopySeconds(shape, layout);
  }
  double OpSeconds(const OpUse& use) override { return ops_.Seconds(use); }
  CrossingPrices PricesOfCrossing() override { return crossings_.Prices(); }
  void SeeDistance() override { crossings_.SeeDistance(); }

  const CostFile& file() const { return file_; }

 private:
  CostFile file_, machine_;
  TransformCosts transforms_;
  OpCosts ops_;
  CrossingCosts crossings_;
};

}  // namespace

double CostQuestions::TransformSeconds(const Shape& shape, const Layout& from, const Layout& to) {
  questions_.try_emplace(
      fmt::format("transform {} {} {}", ShapeToString(shape), from.ToString(), to.ToString()),
      [=](CostSource& source) { source.TransformSeconds(shape, from, to); });
  return 0;
}

double CostQuestions::CopySeconds(const Shape& shape, const Layout& layout) {
  questions_.try_emplace(fmt::format("copy {} {}", ShapeToString(shape), layout.ToString()),
                         [=](CostSource& source) { source.CopySeconds(shape, layout); });
  return 0;
}

double CostQuestions::OpSeconds(const OpUse& use) {
  questions_.try_emplace(fmt::format("op {} {}", OpUseText(use), use.layout.ToString()),
                         [=](CostSource& source) { source.OpSeconds(use); });
  return 0;
}

CrossingPrices CostQuestions::PricesOfCrossing() {
  questions_.try_emplace("crossing", [](CostSource& source) { source.PricesOfCrossing(); });
  return {};
}

void CostQuestions::Ask(CostSource& source, const std::function<void(size_t, size_t)>& progress) const {
  size_t done = 0;
  if (progress) progress(done, size());
  for (const auto& [text, ask] : questions_) {
    ask(source);
    if (progress) progress(++done, size());
  }
}

std::unique_ptr<CostSource> MeasuredCosts(DevicePtr device, const CostOptions& options,
                                          std::vector<std::string>* warnings) {
  auto costs = std::make_unique<Measured>(device, options);
  if (warnings) *warnings = costs->file().warnings();
  return costs;
}

}  // namespace tilesmith
