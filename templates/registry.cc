// The lists of templates, best first. A new one is a line here.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "layouts/base/close_names.h"
#include "layouts/base/error.h"
#include "templates/amx_bf16/template.h"
#include "templates/amx_int8/config.h"
#include "templates/cuda_gather/template.h"
#include "templates/cuda_gemm/template.h"
#include "templates/cuda_winograd/template.h"
#include "templates/cudnn/template.h"
#include "templates/depthwise/template.h"
#include "templates/depthwise_pair/template.h"
#include "templates/direct/template.h"
#include "templates/direct_int8/config.h"
#include "templates/few_outputs/template.h"
#include "templates/grouped/template.h"
#include "templates/grouped_winograd/template.h"
#include "templates/matmul/template.h"
#include "templates/portable/template.h"
#include "templates/strassen/template.h"
#include "templates/winograd/template.h"
#include "templates/winograd_int8/config.h"

namespace tilesmith {
namespace {

std::vector<const ConvTemplate*> ForTarget(std::span<const ConvTemplate* const> templates,
                                           const Target& target) {
  std::vector<const ConvTemplate*> fitting;
  std::ranges::copy_if(templates, std::back_inserter(fitting), [&](const ConvTemplate* candidate) {
    return candidate->DeviceKind() == target.device;
  });
  return fitting;
}

std::vector<const ConvTemplate*> OfAllLists() {
  std::vector<const ConvTemplate*> all = AllConvTemplates();
  for (const auto& list : {Bf16ConvTemplates(), Int8ConvTemplates()})
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace

std::span<const ConvTemplate* const> ConvTemplates() {
  static const std::array templates = {
      &DirectTemplate(),        &WinogradTemplate(), &StrassenTemplate(),        &DepthwiseTemplate(),
      &DepthwisePairTemplate(), &GroupedTemplate(),  &GroupedWinogradTemplate(), &FewOutputsTemplate(),
      &MatMulTemplate(),        &PortableTemplate()};
  return templates;
}

std::span<const ConvTemplate* const> CudaConvTemplates() {
  static const std::array templates = {&CudaDirectTemplate(),   &CudaTensorTemplate(),
                                       &CudaWinogradTemplate(), &CudaDepthwiseTemplate(),
                                       &CudaGroupedTemplate(),  &CudaPortableTemplate()};
  return templates;
}

std::vector<const ConvTemplate*> AllConvTemplates() {
  std::vector<const ConvTemplate*> all(ConvTemplates().begin(), ConvTemplates().end());
  all.insert(all.end(), CudaConvTemplates().begin(), CudaConvTemplates().end());
  return all;
}

std::span<const ConvTemplate* const> Bf16ConvTemplates() {
  static const std::array templates = {&AmxBf16Template(),      &DirectBf16Template(),
                                       &WinogradBf16Template(), &DepthwiseBf16Template(),
                                       &GroupedBf16Template(),  &CudaTensorBf16Template()};
  return templates;
}

std::span<const ConvTemplate* const> Int8ConvTemplates() {
  static const std::array templates = {&AmxInt8Template(), &DirectInt8Template(), &WinogradInt8Template(),
                                       &CudaTensorInt8Template()};
  return templates;
}

std::vector<const ConvTemplate*> ConvTemplatesFor(const Target& target) {
  return ForTarget(AllConvTemplates(), target);
}

std::vector<const ConvTemplate*> ConvTemplatesFor(const Target& target, const ConvWorkload& workload) {
  return workload.bytes ? ForTarget(Int8ConvTemplates(), target) : ConvTemplatesFor(target);
}

const ConvTemplate* KnownConvTemplate(std::string_view name) {
  for (const ConvTemplate* candidate : OfAllLists()) {
    if (candidate->Name() == name) return candidate;
  }
  if (CudnnTemplate().Name() == name) return &CudnnTemplate();
  return nullptr;
}

const ConvTemplate& FindConvTemplate(std::string_view name) {
  if (const ConvTemplate* known = KnownConvTemplate(name)) return *known;
  std::vector<std::string> known;
  for (const ConvTemplate* candidate : OfAllLists()) known.emplace_back(candidate->Name());
  const std::string meant = MeantText(std::string(name), known);
  throw Error(ErrorCode::kUsage, fmt::format("unknown template \"{}\" ({}known: {})", name,
                                             meant.empty() ? "" : meant + " ", fmt::join(known, ", ")));
}

}  // namespace tilesmith
