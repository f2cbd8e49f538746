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

// Pieces of an image are tasks.
class ByteTableKernel : public Kernel {
 public:
  ByteTableKernel(const KernelRequest& request, const std::array<uint8_t, 256>& table)
      : dims_(BlockDimsOf(request.output, request.layout)),
        image_(BatchStride(request.output, request.layout)),
        pieces_(CeilDiv(image_, kPieceBytes)),
        table_(table) {}

  int64_t Tasks(int) const override { return dims_.images * pieces_; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t image = task / pieces_, at = task % pieces_ * kPieceBytes;
      const int64_t count = std::min(kPieceBytes, image_ - at);
      const uint8_t* const in = args.inputs[0].image<uint8_t>(image) + at;
      uint8_t* const out = args.output.image<uint8_t>(image) + at;
      for (int64_t i = 0; i < count; ++i) out[i] = table_[in[i]];
      ZeroPadding(dims_, out, at, count);
    }
  }

 private:
  static constexpr int64_t kPieceBytes = 16384;
  const BlockDims dims_;
  const int64_t image_, pieces_;
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
