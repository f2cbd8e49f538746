#include "layouts/shared_buffer.h"

#include <cstring>
#include <utility>

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

SharedBuffer Pooled(AlignedBuffer contents, BufferPool* pool) {
  return pool == nullptr ? SharedBuffer(std::move(contents)) : pool->Add(std::move(contents));
}

}  // namespace tilesmith
