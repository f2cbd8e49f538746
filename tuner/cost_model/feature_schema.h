// What a cost model sees of a config: the loop features every template states, the workload, the conditions,
// and the knobs by name. Sizes are logarithms; a knob the config's template does not have is missing (NaN).
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "layouts/base/target.h"
#include "templates/base/conv_template.h"
#include "tuner/records/record.h"

namespace tilesmith {

// Row-major.
struct FeatureMatrix {
  size_t columns = 0;
  std::vector<float> values;
  size_t rows() const { return columns == 0 ? 0 : values.size() / columns; }
};

constexpr float kMissingFeature = std::numeric_limits<float>::quiet_NaN();

// Raised when a column changes its meaning; loop features have a version of their own (loop_features.h).
constexpr int kSchemaVersion = 1;

// A task as the features need it: everything but the config. The pointers must outlive it.
struct FeatureContext {
  const ConvTemplate* conv_template = nullptr;
  const ConvWorkload* workload = nullptr;
  const Target* cpu = nullptr;
  MeasureConditions conditions;
};

class FeatureSchema {
 public:
  FeatureSchema() = default;
  // With a column for each of these knobs, after those that all schemas have.
  explicit FeatureSchema(std::vector<std::string> knobs) : knobs_(std::move(knobs)) {}

  size_t size() const;
  std::vector<std::string> Names() const;
  const std::vector<std::string>& knobs() const { return knobs_; }
  // Appends one row. Preconditions: the template supports the workload, the config is valid in its space, and
  // the matrix is empty or of this schema.
  void Append(const FeatureContext& context, const Config& config, FeatureMatrix& matrix) const;

 private:
  std::vector<std::string> knobs_;
};

}  // namespace tilesmith
