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

// The preset in these layouts; nullopt where that is no valid config.
std::optional<Config> DefaultIn(const ConvTemplate& conv_template, const ConvWorkload& w,
                                const LayoutPair& layouts, const Target& target) {
  if (!conv_template.Supports(w, target).ok) return std::nullopt;
  const ConfigSpace space = conv_template.Space(w, target);
  std::optional<Config> config =
      conv_template.WithLayouts(w, space, conv_template.Default(w, target), layouts);
  return config && space.WhyInvalid(*config).empty() ? config : std::nullopt;
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
  const LayoutPair layouts = {layout.WithType(w.input_type()), layout.WithType(w.output_type())};
  std::vector<const ConvTemplate*> templates = ConvTemplatesFor(target, w);
  std::ranges::stable_partition(templates, [&](const ConvTemplate* conv_template) {
    return conv_template == &WinogradInt8Template() && winograd_int8::Pays(w);
  });
  for (const ConvTemplate* conv_template : templates)
    if (auto config = DefaultIn(*conv_template, w, layouts, target))
      return UntunedConv{conv_template, *std::move(config)};
  // Its knobs are of blocks that are worth measuring, its kernels take blocks of any size.
  const ConvTemplate& any = DirectInt8Template();
  if (!any.Supports(w, target).ok) return std::nullopt;
  Config config = any.Default(w, target);
  for (const std::string_view knob : any.LayoutKnobs())
    config.Set(knob, layout.is_nhwc() ? 0 : layout.BlockFor(w.ic));
  return UntunedConv{&any, std::move(config)};
}

}  // namespace tilesmith
