#include "tuner/records/still_builds.h"

#include <fmt/format.h>

namespace tilesmith {

const BuildCheck::Answer& BuildCheck::AnswerOf(const ConvTemplate& conv_template,
                                               const ConvWorkload& workload) {
  const auto [place, added] = answers_.try_emplace({&conv_template, WorkloadToString(workload)});
  Answer& answer = place->second;
  if (!added) return answer;
  const Support support = conv_template.Supports(workload, cpu_);
  if (support.ok) {
    answer.space = conv_template.Space(workload, cpu_);
  } else {
    answer.refusal = "does not compute it: " + support.reason;
  }
  return answer;
}

std::string BuildCheck::WhyNot(const Record& record) {
  const ConvTemplate* conv_template = KnownConvTemplate(record.template_name);
  if (conv_template == nullptr) return fmt::format("there is no template \"{}\"", record.template_name);
  const auto of_template = [&](const std::string& reason) {
    return fmt::format("template {}: {}", record.template_name, reason);
  };
  const Answer& answer = AnswerOf(*conv_template, record.workload);
  if (!answer.refusal.empty()) return of_template(answer.refusal);
  const std::string invalid = answer.space.WhyInvalid(record.config);
  if (!invalid.empty()) return of_template(invalid);
  const LayoutPair layouts = conv_template->Layouts(record.workload, record.config);
  if (layouts == record.layouts) return "";
  return of_template(fmt::format("the config has layouts {} and {}, not {} and {}", layouts.in.ToString(),
                                 layouts.out.ToString(), record.layouts.in.ToString(),
                                 record.layouts.out.ToString()));
}

std::string WhyNotBuilt(const Record& record, const Target& cpu) { return BuildCheck(cpu).WhyNot(record); }

}  // namespace tilesmith
