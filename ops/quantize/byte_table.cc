#include "ops/quantize/byte_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "layouts/base/check.h"
#include "layouts/base/error.h"
#include "ops/base/saved_op.h"
#include "ops/elementwise/activations.h"
#include "ops/quantize/quantize.h"
#include "ops/quantize/zero_padding.h"

namespace tilesmith {
namespace {

class ByteTableKernel : public BlockKernel {
 public:
  ByteTableKernel(const KernelRequest& request, const std::array<uint8_t, 256>& table)
      : BlockKernel(DimsOfBytes(request)), table_(table) {}

 private:
  void RunPiece(const KernelArgs& args, const BlockPiece& piece) const override {
    const auto* const in = At<uint8_t>(args.inputs[0], piece);
    auto* const out = At<uint8_t>(args.output, piece);
    for (int64_t i = 0; i < piece.pixels * dims().lanes; ++i) out[i] = table_[in[i]];
    ZeroPadding(dims(), piece, out);
  }

  const std::array<uint8_t, 256> table_;
};

}  // namespace

ByteTableOp::ByteTableOp(const Activation& function, Quantization input, Quantization output,
                         StoredRange limits)
    : function_(ActivationToString(function)), input_(input.type), output_(output.type) {
  TILESMITH_CHECK(IsByte(input_) && input.per_tensor() && IsByte(output_) && output.per_tensor());
  const StoredRange range = RangeOf(output_);
  TILESMITH_CHECK(range.low <= limits.low && limits.low <= limits.high && limits.high <= range.high);
  const StoredRange all = RangeOf(input_);
  for (int32_t stored = all.low; stored <= all.high; ++stored) {
    const float real = static_cast<float>(stored - input.zero_points[0]) * input.scales[0];
    const int32_t value =
        QuantizedValue(function.Apply(real), output.scales[0], output.zero_points[0], range);
    table_[static_cast<uint8_t>(stored)] = static_cast<uint8_t>(std::clamp(value, limits.low, limits.high));
  }
}

OpPtr ByteTableOp::Of(const Op& op, const ByteForm& form) {
  const auto* activation = dynamic_cast<const ActivationOp*>(&op);
  if (activation == nullptr && dynamic_cast<const DequantizeLinearOp*>(&op) == nullptr) return nullptr;
  return std::make_shared<ByteTableOp>(activation ? activation->activation() : Activation(), form.inputs[0],
                                       form.output, form.limits);
}

std::string ByteTableOp::Signature() const {
  return fmt::format("{}{}{} {} {}", Type(), function_.empty() ? "" : " ", function_, DataTypeName(input_),
                     DataTypeName(output_));
}

DataType ByteTableOp::OutputType(std::span<const DataType> inputs) const {
  if (KernelTakes(inputs)) return output_;
  throw Error(ErrorCode::kBadModel,
              fmt::format("{} takes {}, it got {}", Type(), DataTypeName(input_), DataTypeName(inputs[0])));
}

Tensor ByteTableOp::Reference(std::span<const Tensor* const> inputs) const {
  Tensor out(inputs[0]->shape(), Layout::Nchw(output_));
  std::transform(inputs[0]->raw(), inputs[0]->raw() + out.size(), out.raw(),
                 [&](std::byte x) { return std::byte{table_[std::to_integer<uint8_t>(x)]}; });
  return out;
}

bool ByteTableOp::RunsIn(const Layout& layout, std::span<const Shape> inputs) const {
  return layout.is_nchw() || inputs[0].size() <= 4;
}

std::unique_ptr<Kernel> ByteTableOp::MakeKernel(const KernelRequest& request) const {
  return std::make_unique<ByteTableKernel>(request, table_);
}

std::vector<SavedOp> ByteTableOps() { return {Saved<ByteTableOp>("ByteTable")}; }

}  // namespace tilesmith
