#include "ops/quantize/quantized_binary.h"

#include <fmt/format.h>

#include <algorithm>

#include "layouts/base/check.h"
#include "layouts/base/error.h"
#include "ops/base/saved_op.h"
#include "ops/elementwise/binary.h"
#include "ops/quantize/byte_loops.h"
#include "ops/quantize/zero_padding.h"

namespace tilesmith {
namespace {

template <typename Byte>
class QuantizedBinaryKernel : public BlockKernel {
 public:
  using Loop = void (*)(const Byte*, const Byte*, Byte*, int64_t, const ByteBinary&);

  QuantizedBinaryKernel(const KernelRequest& request, const QuantizedBinaryParams& p, Loop loop)
      : BlockKernel(DimsOfBytes(request)),
        terms_{p.a.scales[0],      p.b.scales[0],           p.output.scales[0], p.a.zero_points[0],
               p.b.zero_points[0], p.output.zero_points[0], p.limits.low,       p.limits.high},
        loop_(loop) {}

 private:
  void RunPiece(const KernelArgs& args, const BlockPiece& piece) const override {
    Byte* const out = At<Byte>(args.output, piece);
    loop_(At<Byte>(args.inputs[0], piece), At<Byte>(args.inputs[1], piece), out, piece.pixels * dims().lanes,
          terms_);
    ZeroPadding(dims(), piece, out);
  }

  const ByteBinary terms_;
  const Loop loop_;
};

template <typename Byte>
std::unique_ptr<Kernel> KernelOfBytes(const KernelRequest& request, const QuantizedBinaryParams& params) {
  const auto loop = params.kind == BinaryKind::kAdd
                        ? TILESMITH_DISPATCH(request.cpu.isa, AddBytes<Byte>)
                        : TILESMITH_DISPATCH(request.cpu.isa, MultiplyBytes<Byte>);
  return std::make_unique<QuantizedBinaryKernel<Byte>>(request, params, loop);
}

}  // namespace

QuantizedBinaryOp::QuantizedBinaryOp(QuantizedBinaryParams params) : params_(std::move(params)) {
  const QuantizedBinaryParams& p = params_;
  TILESMITH_CHECK(p.kind == BinaryKind::kAdd || p.kind == BinaryKind::kMul);
  TILESMITH_CHECK(IsByte(p.output.type));
  for (const Quantization* q : {&p.a, &p.b, &p.output})
    TILESMITH_CHECK(q->per_tensor() && q->type == p.output.type);
  const StoredRange range = RangeOf(p.output.type);
  TILESMITH_CHECK(range.low <= p.limits.low && p.limits.low <= p.limits.high && p.limits.high <= range.high);
}

OpPtr QuantizedBinaryOp::Of(const Op& op, const ByteForm& form) {
  const auto* binary = dynamic_cast<const BinaryOp*>(&op);
  const bool known =
      binary != nullptr && (binary->kind() == BinaryKind::kAdd || binary->kind() == BinaryKind::kMul);
  if (!known || form.shapes.size() != 2 || form.shapes[0] != form.shapes[1]) return nullptr;
  for (const Quantization& input : form.inputs)
    if (input.type != form.output.type) return nullptr;
  return std::make_shared<QuantizedBinaryOp>(
      QuantizedBinaryParams{binary->kind(), form.inputs[0], form.inputs[1], form.output, form.limits});
}

std::string_view QuantizedBinaryOp::Type() const {
  return params_.kind == BinaryKind::kAdd ? "QuantizedAdd" : "QuantizedMul";
}

std::string QuantizedBinaryOp::Signature() const {
  return fmt::format("{}{}", Type(), Describe(params_.output));
}

Shape QuantizedBinaryOp::InferShape(std::span<const Shape> inputs) const {
  if (inputs.size() == 2 && inputs[0] == inputs[1]) return inputs[0];
  throw Error(ErrorCode::kBadModel, fmt::format("{} takes two inputs of one shape", Type()));
}

DataType QuantizedBinaryOp::OutputType(std::span<const DataType> inputs) const {
  if (KernelTakes(inputs)) return params_.output.type;
  throw Error(ErrorCode::kBadModel,
              fmt::format("{} takes inputs of type {}", Type(), DataTypeName(params_.output.type)));
}

Tensor QuantizedBinaryOp::Reference(std::span<const Tensor* const> inputs) const {
  const QuantizedBinaryParams& p = params_;
  const Tensor a = Dequantized(*inputs[0], p.a), b = Dequantized(*inputs[1], p.b);
  Tensor out(a.shape(), Layout::Nchw(p.output.type));
  VisitType(out.type(), [&](auto tag) {
    using T = typename decltype(tag)::Type;
    std::transform(a.floats(), a.floats() + a.size(), b.floats(), out.data<T>(), [&](float x, float y) {
      const float real = p.kind == BinaryKind::kAdd ? x + y : x * y;
      const int32_t stored =
          QuantizedValue(real, p.output.scales[0], p.output.zero_points[0], RangeOf(p.output.type));
      return static_cast<T>(std::clamp(stored, p.limits.low, p.limits.high));
    });
  });
  return out;
}

double QuantizedBinaryOp::Flops(std::span<const Shape> inputs) const { return 4 * ElementCount(inputs[0]); }

bool QuantizedBinaryOp::RunsIn(const Layout& layout, std::span<const Shape> inputs) const {
  return layout.is_nchw() || inputs[0].size() <= 4;
}

bool QuantizedBinaryOp::KernelTakes(std::span<const DataType> inputs) const {
  return std::ranges::all_of(inputs, [&](DataType type) { return type == params_.output.type; });
}

std::unique_ptr<Kernel> QuantizedBinaryOp::MakeKernel(const KernelRequest& request) const {
  return params_.output.type == DataType::kU8 ? KernelOfBytes<uint8_t>(request, params_)
                                              : KernelOfBytes<int8_t>(request, params_);
}

std::vector<SavedOp> QuantizedBinaryOps() { return {Saved<QuantizedBinaryOp>("QuantizedBinary")}; }

}  // namespace tilesmith
