#include "templates/amx/x86/strip_kernel.h"
#include "templates/amx_int8/x86/byte_strip_code.h"
#include "templates/int8/byte_conv.h"
#include "templates/int8/store.h"

namespace tilesmith::amx_int8 {
namespace {

// The input that a tile of pixels sees, as it is multiplied: bytes as they are stored, with or without a
// sign, zero points where padding is.
class CopiedBytes final : public amx::InputCopy {
 public:
  // zero_point: of the input's bytes.
  CopiedBytes(const Schedule& schedule, const Target& cpu, int32_t zero_point)
      : plan_(schedule.plan),
        rows_(plan_.conv, ByteImage(schedule.workload.input_shape(), schedule.in), Unflipped(zero_point),
              true, TILESMITH_DISPATCH_VNNI(cpu, WidenRow)) {}

  int64_t ThreadBytes() const override { return plan_.ThreadBytes(); }
  void Copy(const std::byte* image, const WindowTile& tile, std::byte* to) const override {
    const ElementRange channels{tile.group * plan_.group_in, plan_.group_in};
    plan_.ForEachWidenedPart(tile, [&](const WindowPlan::WidenedPart& part) {
      rows_.Widen({.data = image}, 0, channels, part.y, part.left, plan_.column_step, part.columns,
                  plan_.pixel_numbers, to + part.offset);
    });
  }

 private:
  // Bytes are multiplied as they are, so that nothing flips them, whatever their type.
  static Quantization Unflipped(int32_t zero_point) {
    return {.type = DataType::kU8, .scales = {1.0F}, .zero_points = {static_cast<uint8_t>(zero_point)}};
  }

  const WindowPlan plan_;
  const RowWidener rows_;
};

}  // namespace

std::unique_ptr<ConvKernel> BuildKernel(const Schedule& schedule, const Target& cpu,
                                        const ConvWeights& weights) {
  const QuantizedConvOp& op = ByteConvOf(schedule.workload, weights);
  const WindowPlan& plan = schedule.plan;
  const int32_t zero = op.params().input.zero_points[0];
  amx::StripParts parts{.name = "amx_int8", .code = {}, .copy = nullptr, .parameters = {}};
  parts.code = amx::StripFunctions(schedule, weights.parts, [&] {
    return std::make_unique<ByteStripCode>(schedule, QuantizedStore(op, schedule.out, cpu).common(), cpu);
  });
  if (!schedule.as_it_is) parts.copy = std::make_unique<CopiedBytes>(schedule, cpu, zero);
  const auto pack = [&](const PackedParameters::Memory& to) {
    const std::vector<int16_t> centered = op.CenteredWeights();
    const int64_t numbers = BlockWeightNumbers(plan), terms = std::ssize(centered) / plan.conv.oc;
    for (int64_t o = 0; o < plan.conv.oc; ++o) {
      const BlockLane at = BlockLaneOf(plan, o);
      const std::span<const int16_t> channel = std::span(centered).subspan(o * terms, terms);
      const int64_t lane = at.block * plan.lanes + at.lane;
      const int32_t bias = op.params().bias ? op.params().bias->data<int32_t>()[o] : 0;
      to.bias_ints()[lane] = BiasWithoutZero(bias, SumOfWeights(channel), zero);
      to.multipliers[lane] = op.multipliers()[o];
      auto* const packed = reinterpret_cast<int8_t*>(to.weights) + at.block * numbers;
      PackWindowWeights(plan, channel.data(), packed + at.lane * plan.word,
                        [](int16_t weight) { return static_cast<int8_t>(weight); });
    }
  };
  parts.parameters = PackedParameters(weights.parts, amx::ParameterSizes(plan, true), pack);
  return amx::MakeStripKernel(schedule, std::move(parts));
}

}  // namespace tilesmith::amx_int8
