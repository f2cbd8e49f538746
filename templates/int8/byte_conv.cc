#include "templates/int8/byte_conv.h"

#include <algorithm>
#include <utility>

#include "layouts/base/check.h"
#include "layouts/base/sizes.h"
#include "templates/direct_int8/config.h"
#include "templates/winograd_int8/config.h"

namespace tilesmith {
namespace {

std::vector<int64_t> BlocksOf(int64_t channels) {
  std::vector<int64_t> blocks = {1};
  for (const int64_t block : BlocksOfVectors(channels, 8)) blocks.push_back(block);
  blocks.push_back(0);
  return blocks;
}

// The template's default with both layouts in the order of `layout`, which its space may lack.
Config DefaultIn(const ConvTemplate& conv_template, const ConvWorkload& w, const Layout& layout,
                 const Target& target) {
  Config config = conv_template.Default(w, target);
  for (const std::string_view knob : conv_template.LayoutKnobs())
    config.Set(knob, layout.is_nhwc() ? 0 : layout.BlockFor(w.ic));
  return config;
}

}  // namespace

std::vector<Knob> ByteLayoutKnobs(const ConvWorkload& w) {
  return {{"ic_block", BlocksOf(w.ic), "x of the input's layout NCHW[x]c; 0 is NHWC"},
          {"oc_block", BlocksOf(w.oc), "x of the output's layout NCHW[x]c; 0 is NHWC"}};
}

const QuantizedConvOp& ByteConvOf(const ConvWorkload& workload, const ConvWeights& weights) {
  TILESMITH_CHECK(weights.quantized != nullptr && weights.quantized->workload() == workload, "{}",
                  WorkloadToString(workload));
  return *weights.quantized;
}

bool MultipliesBytes(const ConvWorkload& w, const Target& cpu) {
  return cpu.vnni && w.bytes->weights == DataType::kI8 && !IsDepthwise(w);
}

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

}  // namespace tilesmith
