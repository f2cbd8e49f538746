#include "tools/onednn/onednn_twin.h"

#include <algorithm>
#include <optional>

#include "layouts/base/check.h"
#include "ops/base/quantization.h"
#include "ops/dense/softmax.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/binary.h"
#include "ops/movement/concat.h"
#include "ops/pool/pool.h"
#include "ops/pool/quantized_pool.h"

namespace tilesmith {
namespace {

using Twin = std::unique_ptr<OneDnnPrimitive>;

Twin Refuse(std::string* refusal, std::string reason) {
  if (refusal != nullptr) *refusal = std::move(reason);
  return nullptr;
}

Twin MakePool(const PoolWindow& w, const Shape& input, const Shape& output, const Layout& layout,
              std::string* refusal) {
  const bool padded = w.top != 0 || w.left != 0 || w.bottom != 0 || w.right != 0;
  if (w.kind == PoolKind::kAverage && w.count_include_pad && w.ceil_mode && padded) {
    return Refuse(refusal, "oneDNN counts the padding that rounding up adds, ONNX does not");
  }
  OneDnnPool pool{.input = input, .output = output};
  pool.max = w.kind == PoolKind::kMax;
  pool.count_include_pad = w.count_include_pad && padded;
  pool.kh = w.kh;
  pool.kw = w.kw;
  pool.sh = w.sh;
  pool.sw = w.sw;
  pool.ph = w.top;
  pool.pw = w.left;
  pool.dh = w.dh - 1;
  pool.dw = w.dw - 1;
  return MakeOneDnnPool(pool, layout, refusal);
}

Twin MakeGlobalPool(const GlobalPoolOp& op, const Shape& input, const Layout& layout, std::string* refusal) {
  OneDnnPool pool{.input = input, .output = {input[0], input[1], 1, 1}};
  pool.max = op.kind() == PoolKind::kMax;
  pool.kh = input[2];
  pool.kw = input[3];
  return MakeOneDnnPool(pool, layout, refusal);
}

// Which input of a multiplication is [N, C, 1, 1], the other one being [N, C, H, W].
std::optional<int> GateSlot(const BinaryOp* binary, std::span<const Shape> inputs) {
  if (binary == nullptr || binary->kind() != BinaryKind::kMul || inputs.size() != 2) return std::nullopt;
  for (const int slot : {1, 0}) {
    const Shape &gate = inputs[slot], &data = inputs[1 - slot];
    if (data.size() == 4 && data != gate && gate == Shape{data[0], data[1], 1, 1}) return slot;
  }
  return std::nullopt;
}

bool AllEqual(std::span<const Shape> shapes) {
  return std::ranges::all_of(shapes, [&](const Shape& shape) { return shape == shapes[0]; });
}

}  // namespace

Twin MakeOneDnnTwin(const Op& op, std::span<const Shape> inputs, const Layout& layout, std::string* refusal) {
  TILESMITH_CHECK(!inputs.empty(), "{}", op.Signature());
  const Shape& input = inputs[0];
  if (const auto* softmax = dynamic_cast<const SoftmaxOp*>(&op)) {
    if (layout.type() == DataType::kF32 && softmax->first_axis() == softmax->last_axis() &&
        !softmax->logarithm()) {
      return MakeOneDnnSoftmax(input, static_cast<int>(softmax->first_axis()), refusal);
    }
    return Refuse(refusal, "oneDNN's softmax has one axis, and is asked for in f32 alone");
  }
  if (op.IsView()) return Refuse(refusal, fmt::format("{} moves no data", op.Type()));
  if (input.size() != 4 && !layout.is_nchw()) {
    return Refuse(refusal, fmt::format("rank {} has no {}", input.size(), layout.ToString()));
  }
  if (const auto* pool = dynamic_cast<const QuantizedMaxPoolOp*>(&op))
    return MakePool(pool->window(), input, pool->InferShape(inputs), layout, refusal);
  if (const auto* concat = dynamic_cast<const ConcatOp*>(&op); concat != nullptr && concat->axis() == 1) {
    return MakeOneDnnConcat(inputs, layout, refusal);
  }
  if (IsByte(layout.type()))
    return Refuse(refusal, fmt::format("no oneDNN twin of {} in {}", op.Signature(), layout.ToString()));
  if (const auto* pool = dynamic_cast<const PoolOp*>(&op))
    return MakePool(pool->window(), input, pool->InferShape(inputs), layout, refusal);
  if (const auto* pool = dynamic_cast<const GlobalPoolOp*>(&op)) {
    return MakeGlobalPool(*pool, input, layout, refusal);
  }
  if (const auto* activation = dynamic_cast<const ActivationOp*>(&op)) {
    return MakeOneDnnActivation(input, activation->activation(), layout, refusal);
  }
  if (const auto* scale = dynamic_cast<const ScaleShiftOp*>(&op)) {
    return MakeOneDnnScaleShift(input, {scale->scale().data(), scale->shift().data(), scale->activation()},
                                layout, refusal);
  }
  const auto* binary = dynamic_cast<const BinaryOp*>(&op);
  if (const std::optional<int> slot = GateSlot(binary, inputs); slot.has_value()) {
    return MakeOneDnnGate(inputs[1 - *slot], *slot, layout, refusal);
  }
  const bool adds =
      dynamic_cast<const SumOp*>(&op) != nullptr || (binary != nullptr && binary->kind() == BinaryKind::kAdd);
  if (adds && AllEqual(inputs)) {
    return MakeOneDnnSum(input, static_cast<int>(inputs.size()), {}, layout, refusal);
  }
  return Refuse(refusal, fmt::format("no oneDNN twin of {}", op.Signature()));
}

}  // namespace tilesmith
