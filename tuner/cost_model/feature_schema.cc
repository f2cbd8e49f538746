#include "tuner/cost_model/feature_schema.h"

#include <array>
#include <cmath>

#include "layouts/base/check.h"

namespace tilesmith {
namespace {

constexpr std::array<std::string_view, 14> kTaskColumns = {"log_batch",
                                                           "log_input_channels",
                                                           "log_output_channels",
                                                           "log_output_height",
                                                           "log_output_width",
                                                           "kernel_h",
                                                           "kernel_w",
                                                           "stride",
                                                           "dilation",
                                                           "log_groups",
                                                           "fused_convs",
                                                           "cold_weights",
                                                           "threads",
                                                           "template"};

float Log(int64_t value) { return std::log2(static_cast<float>(std::max<int64_t>(value, 1))); }

// The place in the registry among those in f32, which come first; trees split on it as on any number.
float TemplateColumn(const ConvTemplate* conv_template) {
  const auto templates = AllConvTemplates();
  const auto found = std::find(templates.begin(), templates.end(), conv_template);
  const bool has_place = found != templates.end() && conv_template->Type() == DataType::kF32;
  return has_place ? static_cast<float>(found - templates.begin()) : kMissingFeature;
}

std::array<float, kTaskColumns.size()> TaskValues(const FeatureContext& context) {
  const ConvWorkload& w = *context.workload;
  return {Log(w.mb),
          Log(w.ic),
          Log(w.oc),
          Log(w.oh),
          Log(w.ow),
          static_cast<float>(w.kh),
          static_cast<float>(w.kw),
          static_cast<float>(w.sh),
          static_cast<float>(w.dh),
          Log(w.g),
          static_cast<float>(w.before.size()),
          context.conditions.cold_weights ? 1.0F : 0.0F,
          static_cast<float>(context.conditions.threads),
          TemplateColumn(context.conv_template)};
}

}  // namespace

size_t FeatureSchema::size() const { return FeatureNames().size() + kTaskColumns.size() + knobs_.size(); }

std::vector<std::string> FeatureSchema::Names() const {
  std::vector<std::string> names(FeatureNames().begin(), FeatureNames().end());
  names.insert(names.end(), kTaskColumns.begin(), kTaskColumns.end());
  for (const std::string& knob : knobs_) names.push_back("knob_" + knob);
  return names;
}

void FeatureSchema::Append(const FeatureContext& context, const Config& config, FeatureMatrix& matrix) const {
  TILESMITH_CHECK(matrix.columns == 0 || matrix.columns == size(), "a matrix of {} columns, not {}",
                  matrix.columns, size());
  matrix.columns = size();
  const LoopFeatures loops = context.conv_template->Features(*context.workload, config, *context.cpu);
  const std::vector<float> loop_values =
      FeatureVector(loops, *context.workload, *context.cpu, context.conditions.threads);
  matrix.values.insert(matrix.values.end(), loop_values.begin(), loop_values.end());
  const auto task_values = TaskValues(context);
  matrix.values.insert(matrix.values.end(), task_values.begin(), task_values.end());
  for (const std::string& knob : knobs_) {
    const std::optional<int64_t> value = config.Find(knob);
    matrix.values.push_back(value ? static_cast<float>(*value) : kMissingFeature);
  }
}

}  // namespace tilesmith
