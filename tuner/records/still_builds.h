// Records outlive what they were made with: templates come and go, and their knobs change. None is to be
// believed in before it is known that its config can be built.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "tuner/records/record.h"

namespace tilesmith {

// Remembers the spaces of the workloads it was asked about. One thread at a time.
class BuildCheck {
 public:
  explicit BuildCheck(Target cpu) : cpu_(std::move(cpu)) {}

  // Why today's templates do not build the record's config on this CPU: the template is not there any more,
  // it refuses the workload, the config is not of its space, or it has other layouts than the record says. ""
  // when they do.
  std::string WhyNot(const Record& record);

 private:
  struct Answer {
    std::string refusal;  // of the workload; "" when the space is there
    ConfigSpace space;
  };
  const Answer& AnswerOf(const ConvTemplate& conv_template, const ConvWorkload& workload);

  Target cpu_;
  std::map<std::pair<const ConvTemplate*, std::string>, Answer> answers_;
};

// BuildCheck::WhyNot for a single record.
std::string WhyNotBuilt(const Record& record, const Target& cpu);

}  // namespace tilesmith
