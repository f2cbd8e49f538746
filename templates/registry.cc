// The list of templates, best first. A new one is a line here.
#include <fmt/ranges.h>

#include <array>

#include "layouts/base/error.h"
#include "templates/depthwise/depthwise_template.h"
#include "templates/depthwise_pair/depthwise_pair_template.h"
#include "templates/direct/direct_template.h"
#include "templates/few_outputs/few_outputs_template.h"
#include "templates/grouped/grouped_template.h"
#include "templates/grouped_winograd/grouped_winograd_template.h"
#include "templates/portable/portable_template.h"
#include "templates/strassen/strassen_template.h"
#include "templates/winograd/winograd_template.h"

namespace tilesmith {

std::span<const ConvTemplate* const> ConvTemplates() {
  static const PortableTemplate portable;
  static const std::array templates = {
      &DirectTemplate(),          &WinogradTemplate(),      &StrassenTemplate(),
      &DepthwiseTemplate(),       &DepthwisePairTemplate(), &GroupedTemplate(),
      &GroupedWinogradTemplate(), &FewOutputsTemplate(),    static_cast<const ConvTemplate*>(&portable),
  };
  return templates;
}

const ConvTemplate* KnownConvTemplate(std::string_view name) {
  for (const ConvTemplate* candidate : ConvTemplates()) {
    if (candidate->Name() == name) return candidate;
  }
  return nullptr;
}

const ConvTemplate& FindConvTemplate(std::string_view name) {
  if (const ConvTemplate* known = KnownConvTemplate(name)) return *known;
  std::vector<std::string_view> known;
  for (const ConvTemplate* candidate : ConvTemplates()) known.push_back(candidate->Name());
  throw Error(ErrorCode::kUsage,
              fmt::format("unknown template \"{}\" (known: {})", name, fmt::join(known, ", ")));
}

}  // namespace tilesmith
