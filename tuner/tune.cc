#include "tuner/tune.h"

#include <fmt/format.h>

#include <algorithm>

#include "layouts/base/error.h"

namespace tilesmith {

std::vector<const ConvTemplate*> TemplatesToTune(const ConvWorkload& workload, const Target& cpu,
                                                 const AccuracyLimits& accuracy, DataType type) {
  const std::vector<std::string>& forbidden = accuracy.forbidden_templates;
  std::vector<const ConvTemplate*> supported;
  for (const ConvTemplate* conv_template : ConvTemplatesFor(cpu, workload, type)) {
    if (std::find(forbidden.begin(), forbidden.end(), conv_template->Name()) != forbidden.end()) continue;
    if (conv_template->Supports(workload, cpu).ok) supported.push_back(conv_template);
  }
  if (supported.size() > 1 && supported.back()->Name() == "portable") supported.pop_back();
  return supported;
}

void RequireAtLeast(double least, const char* what, double value) {
  if (value >= least) return;
  throw Error(ErrorCode::kUsage, fmt::format("{} is {} (allowed: at least {})", what, value, least));
}

}  // namespace tilesmith
