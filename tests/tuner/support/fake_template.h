// A template that cannot be built but whose every config has a known time, and a measurer that tells it.
#pragma once

#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "layouts/base/check.h"
#include "templates/base/conv_template.h"
#include "tests/tuner/support/simulated_measurer.h"

namespace tilesmith {

class FakeTemplate : public ConvTemplate {
 public:
  enum class Size { kSmall, kHugeSparse };
  explicit FakeTemplate(Size size = Size::kSmall, std::string name = "fake", double scale = 1)
      : size_(size), name_(std::move(name)), scale_(scale) {}

  std::string_view Name() const override { return name_; }
  Support Supports(const ConvWorkload&, const Target&) const override { return Support::Yes(); }

  // Small: 4 x 3 blocks, tile and rows, where tile * rows is at most 32. Huge: eight more knobs that must
  // agree, so that about one config in thirty is valid.
  ConfigSpace Space(const ConvWorkload&, const Target&) const override {
    std::vector<Knob> knobs = {{"ic_block", {1, 8, 16, 0}, ""},
                               {"oc_block", {8, 16, 0}, ""},
                               {"tile", {1, 2, 4, 8, 16}, ""},
                               {"rows", {1, 2, 4, 8}, ""}};
    if (size_ == Size::kSmall) {
      return ConfigSpace(knobs, [](const Config& c) {
        return c.Get("tile") * c.Get("rows") > 32 ? "tile x rows exceeds 32" : "";
      });
    }
    for (char name = 'a'; name <= 'h'; ++name)
      knobs.push_back({std::string(1, name), {0, 1, 2, 3, 4, 5}, ""});
    return ConfigSpace(knobs, [](const Config& c) -> std::string {
      int64_t sum = 0;
      for (char name = 'a'; name <= 'h'; ++name) sum += c.Get(std::string(1, name));
      return sum % 31 == 0 ? "" : "a..h do not add up to a multiple of 31";
    });
  }

  Config Default(const ConvWorkload& workload, const Target& cpu) const override {
    return Space(workload, cpu).At(0);
  }
  LayoutPair Layouts(const ConvWorkload&, const Config& config) const override {
    return {LayoutOfBlockKnob(config.Get("ic_block")), LayoutOfBlockKnob(config.Get("oc_block"))};
  }
  std::vector<std::string_view> LayoutKnobs() const override { return {"ic_block", "oc_block"}; }
  LoopFeatures Features(const ConvWorkload&, const Config&, const Target&) const override { return {}; }
  std::unique_ptr<ConvKernel> Build(const ConvWorkload&, const Config&, const Target&,
                                    const ConvWeights&) const override {
    TILESMITH_CHECK(false, "a fake template is never built");
  }

  // Smooth in every knob, fastest at tile = 8, rows = 4, a..h in the middle; some blocks cost a little.
  double Seconds(const Config& config) const {
    double cost = 1;
    for (const auto& [name, value] : config.knobs()) {
      const double v = static_cast<double>(value);
      if (name == "tile") cost += 0.3 * std::abs(std::log2(v / 8));
      if (name == "rows") cost += 0.1 * std::abs(std::log2(v / 4));
      if (name.size() == 1) cost += 0.05 * std::abs(v - 3);
      if (name == "ic_block" && value != 16) cost += 0.01;
      if (name == "oc_block" && value != 16) cost += 0.02;
    }
    return cost * 1e-3 * scale_;
  }

 private:
  Size size_;
  std::string name_;
  double scale_;
};

// Answers at once with FakeTemplate::Seconds; fails the configs it is told to fail.
class FakeMeasurer : public SimulatedMeasurer {
 public:
  explicit FakeMeasurer(std::vector<const FakeTemplate*> templates) : templates_(std::move(templates)) {}

  TrialResult Measure(const TrialRequest& request) override {
    requests.push_back(request);
    TrialResult result;
    if (const auto fault = failures.find(request.config.ToString()); fault != failures.end()) {
      result.status = fault->second;
      result.detail = "told to fail";
      return result;
    }
    for (const FakeTemplate* fake : templates_) {
      if (fake->Name() == request.template_name) result.seconds = fake->Seconds(request.config);
    }
    result.early_stopped = result.seconds > request.stop_above_seconds;
    result.sample_seconds.assign(result.early_stopped ? 1 : 5, result.seconds);
    return result;
  }

  std::vector<TrialRequest> requests;
  std::map<std::string, TrialStatus> failures;  // by config

 private:
  std::vector<const FakeTemplate*> templates_;
};

}  // namespace tilesmith
