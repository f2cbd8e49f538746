// A serialized TensorProto, as ONNX's test data has them.
#include "ops/onnx/onnx_import.h"
#include "tests/fuzz/targets/onnx_proto.h"
#include "tests/fuzz/targets/targets.h"

namespace tilesmith::fuzz {
namespace {

void Run(const std::string& input) {
  const Tensor tensor = ParseOnnxTensor(TensorBytes(input), "tensor.pb");
  Require(tensor.size() >= 0, "a tensor has a size");
}

}  // namespace

FuzzTarget OnnxTensorTarget() {
  return {.name = "onnx_tensor",
          .reads = "a tensor of ONNX's test data (.pb)",
          .run = Run,
          .mutate = MutateTensor,
          .words = {},
          .short_runs = 8000};
}

}  // namespace tilesmith::fuzz
