// The list of templates. A new one is a line here.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "layouts/base/close_names.h"
#include "layouts/base/error.h"
#include "templates/amx_bf16/config.h"
#include "templates/amx_int8/config.h"
#include "templates/cuda_gather/config.h"
#include "templates/cuda_gemm/config.h"
#include "templates/cuda_winograd/config.h"
#include "templates/cudnn/config.h"
#include "templates/depthwise/config.h"
#include "templates/depthwise_pair/config.h"
#include "templates/direct/config.h"
#include "templates/direct_int8/config.h"
#include "templates/few_outputs/config.h"
#include "templates/grouped/config.h"
#include "templates/grouped_winograd/config.h"
#include "templates/int8/byte_conv.h"
#include "templates/matmul/config.h"
#include "templates/portable/config.h"
#include "templates/portable_winograd/config.h"
#include "templates/strassen/config.h"
#include "templates/winograd/config.h"
#include "templates/winograd_int8/config.h"

namespace tilesmith {

std::span<const ConvTemplate* const> AllConvTemplates() {
  static const std::array templates = {
      // In f32.
      &DirectTemplate(), &WinogradTemplate(), &StrassenTemplate(), &DepthwiseTemplate(),
      &DepthwisePairTemplate(), &GroupedTemplate(), &GroupedWinogradTemplate(), &FewOutputsTemplate(),
      &MatMulTemplate(), &PortableWinogradTemplate(), &PortableTemplate(), &CudaDirectTemplate(),
      &CudaTensorTemplate(), &CudaWinogradTemplate(), &CudaDepthwiseTemplate(), &CudaGroupedTemplate(),
      &CudaPortableTemplate(),
      // In bf16.
      &AmxBf16Template(), &DirectBf16Template(), &WinogradBf16Template(), &DepthwiseBf16Template(),
      &GroupedBf16Template(), &CudaTensorBf16Template(),
      // Of bytes.
      &AmxInt8Template(), &DirectInt8Template(), &WinogradInt8Template(), &CudaTensorInt8Template()};
  return templates;
}

std::vector<const ConvTemplate*> ConvTemplates(std::string_view device, DataType type) {
  std::vector<const ConvTemplate*> fitting;
  for (const ConvTemplate* candidate : AllConvTemplates())
    if (candidate->DeviceKind() == device && candidate->Type() == type) fitting.push_back(candidate);
  return fitting;
}

std::vector<const ConvTemplate*> ConvTemplatesFor(const Target& target, const ConvWorkload& workload,
                                                  DataType type) {
  return ConvTemplates(target.device, workload.bytes && type == DataType::kF32 ? DataType::kI8 : type);
}

bool HasTemplates(const Target& target, DataType type) {
  return std::ranges::any_of(ConvTemplates(target.device, type),
                             [&](const ConvTemplate* one) { return one->RunsOn(target).ok; });
}

namespace {

// The template's default with both layouts in the order of `layout`, which its space may lack.
Config DefaultIn(const ConvTemplate& conv_template, const ConvWorkload& w, const Layout& layout,
                 const Target& target) {
  Config config = conv_template.Default(w, target);
  for (const std::string_view knob : conv_template.LayoutKnobs())
    config.Set(knob, layout.is_nhwc() ? 0 : layout.BlockFor(w.ic));
  return config;
}

}  // namespace

std::optional<UntunedConv> UntunedByteConv(const ConvWorkload& w, const Layout& layout,
                                           const Target& target) {
  std::vector<const ConvTemplate*> templates = ConvTemplatesFor(target, w);
  std::ranges::stable_partition(templates, [&](const ConvTemplate* conv_template) {
    return conv_template == &WinogradInt8Template() && winograd_int8::Pays(w);
  });
  for (const ConvTemplate* conv_template : templates) {
    if (!conv_template->Supports(w, target).ok) continue;
    Config config = DefaultIn(*conv_template, w, layout, target);
    if (conv_template->Space(w, target).WhyInvalid(config).empty())
      return UntunedConv{conv_template, std::move(config)};
  }
  // Its knobs are of blocks that are worth measuring, its kernels take blocks of any size.
  const ConvTemplate& any = DirectInt8Template();
  if (!any.Supports(w, target).ok) return std::nullopt;
  return UntunedConv{&any, DefaultIn(any, w, layout, target)};
}

const ConvTemplate* KnownConvTemplate(std::string_view name) {
  for (const ConvTemplate* candidate : AllConvTemplates())
    if (candidate->Name() == name) return candidate;
  return CudnnTemplate().Name() == name ? &CudnnTemplate() : nullptr;
}

const ConvTemplate& FindConvTemplate(std::string_view name) {
  if (const ConvTemplate* known = KnownConvTemplate(name)) return *known;
  std::vector<std::string> known;
  for (const ConvTemplate* candidate : AllConvTemplates()) known.emplace_back(candidate->Name());
  const std::string meant = MeantText(std::string(name), known);
  throw Error(ErrorCode::kUsage, fmt::format("unknown template \"{}\" ({}known: {})", name,
                                             meant.empty() ? "" : meant + " ", fmt::join(known, ", ")));
}

}  // namespace tilesmith
