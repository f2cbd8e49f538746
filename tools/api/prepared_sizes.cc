#include "tools/api/prepared_sizes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "layouts/base/error.h"

namespace tilesmith {
namespace {

std::string TextOf(const InputShapes& shapes) {
  std::vector<std::string> texts;
  for (const Shape& shape : shapes) texts.push_back(ShapeToString(shape));
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

namespace {

size_t TensorBytes(const PreparedSize& size) {
  size_t bytes = size.network->memory.bytes;
  for (const std::vector<TensorInfo>* tensors : {&size.inputs, &size.outputs}) {
    for (const TensorInfo& tensor : *tensors) bytes += tensor.bytes;
  }
  return bytes;
}

PreparedSizePtr AsFirst(PreparedSize size) {
  size.bytes = tilesmith::PackedWeightBytes(*size.network) + TensorBytes(size);
  return std::make_shared<const PreparedSize>(std::move(size));
}

size_t MemoryBeside(const PreparedSize& first, const PreparedSize& size) {
  return tilesmith::PackedWeightBytes(std::array{first.network.get(), size.network.get()}) -
         tilesmith::PackedWeightBytes(*first.network) + TensorBytes(size);
}

}  // namespace

PreparedSizes::PreparedSizes(std::optional<PreparedSize> first, SizesLimit limit, PrepareSize prepare)
    : first_(first ? AsFirst(*std::move(first)) : nullptr),
      has_first_(first_ != nullptr),
      limit_(limit),
      prepare_(std::move(prepare)) {}

PreparedSizePtr PreparedSizes::For(const InputShapes& shapes) {
  return For(shapes, [&] { return prepare_(shapes, first_ == nullptr); });
}

PreparedSizePtr PreparedSizes::For(const InputShapes& shapes, const std::function<PreparedSize()>& make) {
  if (const PreparedSizePtr& known = first(); known && shapes == known->shapes) return known;
  for (const Shape& shape : shapes) {
    for (const int64_t size : shape) {
      if (size < 0) {
        throw Error(ErrorCode::kUsage,
                    fmt::format("inputs of {}: sizes must not be negative", TextOf(shapes)));
      }
    }
  }
  const std::lock_guard lock(mutex_);
  if (!first_) {
    first_ = AsFirst(make());
    has_first_.store(true, std::memory_order_release);
    if (limit_.count == 0) prepare_ = nullptr;  // and the model's file with it
  }
  if (shapes == first_->shapes) return first_;
  if (limit_.count == 0 || !prepare_) {
    throw Error(ErrorCode::kUsage,
                fmt::format("inputs of {}, where the model is loaded for {} only (LoadOptions::sizes)",
                            TextOf(shapes), TextOf(first_->shapes)));
  }
  if (const PreparedSizePtr* known = others_.Find(shapes)) return *known;
  const auto prepared = std::make_shared<PreparedSize>(make());
  prepared->bytes = MemoryBeside(*first_, *prepared);
  const size_t needed = first_->bytes + prepared->bytes;
  if (needed > limit_.bytes) {
    constexpr double kMebibyte = 1 << 20;
    throw LimitError(fmt::format(
        "inputs of {} need {:.0f} MiB together with the first size's, the limit is {:.0f} (max_memory)",
        TextOf(shapes), static_cast<double>(needed) / kMebibyte,
        static_cast<double>(limit_.bytes) / kMebibyte));
  }
  others_.MakeRoom(limit_, needed, [](const PreparedSizePtr& kept) { return kept->bytes; });
  return others_.Add(shapes, prepared);
}

size_t PreparedSizes::PackedWeightBytes() const {
  const std::lock_guard lock(mutex_);
  if (!first_) return 0;
  std::vector<const CompiledNetwork*> networks = {first_->network.get()};
  others_.ForEach([&](const PreparedSizePtr& kept) { networks.push_back(kept->network.get()); });
  return tilesmith::PackedWeightBytes(networks);
}

}  // namespace tilesmith
