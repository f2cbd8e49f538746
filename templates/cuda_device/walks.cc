#include "templates/cuda_device/walks.h"

#include <algorithm>
#include <bit>

#include "templates/cuda/text.h"

namespace tilesmith::cuda {

std::string WalksText(const Activation& activation) {
  return ProgramText().Activate(activation).File("walks.cu").Take();
}

Axes AxesOf(const Shape& shape, const Layout& layout) {
  Axes axes(shape.size());
  int64_t stride = 1;
  const bool last = layout.is_nhwc() && shape.size() > 2;
  if (last) axes[1] = {shape[1], 1}, stride = shape[1];
  for (size_t i = shape.size(); i-- > 1;) {
    if (last && i == 1) continue;
    axes[i] = {shape[i], stride};
    stride *= shape[i];
  }
  if (!shape.empty()) axes[0] = {shape[0], kImages};
  return axes;
}

void AddWalk(ProgramBuilder& builder, const Axes& given, std::vector<int64_t>& numbers) {
  Axes axes;
  for (const Axis& axis : given) {
    if (axis.size == 1) continue;
    if (!axes.empty() && axes.back().stride != kImages && axis.stride != kImages &&
        axes.back().stride == axis.size * axis.stride) {
      axes.back() = {axes.back().size * axis.size, axis.stride};
    } else {
      axes.push_back(axis);
    }
  }
  builder.Need(axes.size() <= kAxes);
  axes.resize(std::min(axes.size(), kAxes));
  numbers.push_back(static_cast<int64_t>(axes.size()));
  axes.resize(kAxes);
  for (const Axis& axis : axes) numbers.push_back(axis.size);
  for (const Axis& axis : axes) numbers.push_back(axis.stride);
}

int64_t SizeOf(const Axes& axes) {
  int64_t size = 1;
  for (const Axis& axis : axes) size *= axis.size;
  return size;
}

int64_t LanesFor(int64_t count) {
  return std::clamp(
      static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(count / 4, 1)))),
      int64_t{1}, ProgramBuilder::kThreads);
}
void AddGroups(ProgramBuilder& builder, std::string function, Checked groups, int64_t lanes,
               std::span<const int64_t> numbers, const CudaOperand& input) {
  builder.NeedImage(groups * lanes);
  builder.Launch(std::move(function), groups * lanes, numbers, {input}).shared_bytes =
      ProgramBuilder::kThreads * kFloatBytes;
}

void AddSoftmax(ProgramBuilder& builder, const SoftmaxGroups& s, const CudaOperand& input,
                CudaOperand output) {
  const int64_t groups = SizeOf(s.outer), count = SizeOf(s.inner), lanes = LanesFor(count);
  std::vector<int64_t> numbers = {groups, count, lanes, s.logarithm, s.causal_rows};
  for (int i = 0; i < 2; ++i) {
    AddWalk(builder, s.outer, numbers);
    AddWalk(builder, s.inner, numbers);
  }
  AddGroups(builder, "softmax", groups, lanes, numbers, input);
  builder.last().output = output;
}

}  // namespace tilesmith::cuda
