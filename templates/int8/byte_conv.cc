#include "templates/int8/byte_conv.h"

#include "layouts/base/check.h"
#include "layouts/base/sizes.h"

namespace tilesmith {
namespace {

std::vector<int64_t> BlocksOf(int64_t channels) {
  std::vector<int64_t> blocks = {1};
  for (const int64_t block : BlocksOfVectors(channels, 8)) blocks.push_back(block);
  blocks.push_back(0);
  return blocks;
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

}  // namespace tilesmith
