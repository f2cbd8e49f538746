#include "layouts/kernel_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "layouts/base/check.h"

namespace tilesmith {

SharedBuffer::SharedBuffer(AlignedBuffer contents)
    : contents_(std::make_shared<const AlignedBuffer>(std::move(contents))) {}

std::span<const std::byte> SharedBuffer::bytes() const {
  if (contents_ == nullptr) return {};
  return {static_cast<const std::byte*>(contents_->data()), contents_->bytes()};
}

// Different weights of one size differ within their first bytes, so that looking through all of them costs
// little.
SharedBuffer BufferPool::Add(AlignedBuffer contents) {
  SharedBuffer added(std::move(contents));
  const std::span<const std::byte> bytes = added.bytes();
  if (bytes.empty()) return added;
  const std::lock_guard lock(mutex_);
  auto [at, end] = by_size_.equal_range(bytes.size());
  while (at != end) {
    SharedBuffer known;
    known.contents_ = at->second.lock();
    if (known.contents_ == nullptr) {
      at = by_size_.erase(at);
      continue;
    }
    if (std::memcmp(known.data(), bytes.data(), bytes.size()) == 0) return known;
    ++at;
  }
  by_size_.emplace(bytes.size(), added.contents_);
  return added;
}

SharedBuffer KernelParts::NextData(size_t bytes, const std::function<AlignedBuffer()>& make) {
  if (bytes == 0) return {};
  if (known_) {
    const SharedBuffer& memory = NextKnown(false).memory;
    if (memory.bytes().size() == bytes) return memory;
    throw Error(ErrorCode::kBadModel, fmt::format("part {} of a kernel has {} bytes, {} are expected", next_,
                                                  memory.bytes().size(), bytes));
  }
  AlignedBuffer made = make();
  TILESMITH_CHECK(made.bytes() == bytes, "{} bytes, not {}", made.bytes(), bytes);
  parts_.push_back({.memory = pool_ ? pool_->Add(std::move(made)) : SharedBuffer(std::move(made))});
  return parts_.back().memory;
}

KernelPart KernelParts::NextCode(const std::function<KernelPart()>& make) {
  if (known_) return NextKnown(true);
  parts_.push_back(make());
  return parts_.back();
}

const KernelPart& KernelParts::NextKnown(bool is_code) {
  if (next_ < parts_.size() && parts_[next_].is_code == is_code) return parts_[next_++];
  throw Error(ErrorCode::kBadModel,
              fmt::format("part {} of a kernel is missing, or is {}", next_, is_code ? "no code" : "code"));
}

SharedBuffer DataPart(KernelParts* parts, size_t bytes, const std::function<AlignedBuffer()>& make) {
  KernelParts own;
  return (parts ? parts : &own)->NextData(bytes, make);
}

SharedBuffer FloatsPart(KernelParts* parts, const float* values, int64_t count, int64_t floats,
                        float otherwise) {
  const auto bytes = static_cast<size_t>(floats) * sizeof(float);
  return DataPart(parts, bytes, [&] {
    AlignedBuffer buffer(bytes);
    values != nullptr ? std::copy_n(values, count, buffer.floats())
                      : std::fill_n(buffer.floats(), count, otherwise);
    return buffer;
  });
}

KernelPart CodePart(KernelParts* parts, const std::function<KernelPart()>& make) {
  return parts ? parts->NextCode(make) : make();
}

}  // namespace tilesmith
