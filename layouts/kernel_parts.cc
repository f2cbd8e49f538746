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

namespace {

// One of data is for these sources, too, and no other tensor has their addresses as long as they live.
std::string FullKey(const PartKey& key, std::span<const std::shared_ptr<const Tensor>> sources) {
  PartKey full = key;
  for (const auto& source : sources) full.Add(reinterpret_cast<intptr_t>(source.get()));
  return full.bytes();
}

}  // namespace

bool BufferPool::Known::IsFor(std::span<const std::shared_ptr<const Tensor>> now) const {
  return std::ranges::equal(sources, now,
                            [](const auto& then, const auto& tensor) { return then.lock() == tensor; });
}

std::optional<KernelPart> BufferPool::Find(const PartKey& key,
                                           std::span<const std::shared_ptr<const Tensor>> sources) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(FullKey(key, sources));
  if (found == by_key_.end() || !found->second.IsFor(sources)) return std::nullopt;
  const Known& known = found->second;
  KernelPart part{.functions = known.functions, .is_code = known.is_code};
  part.memory.contents_ = known.contents.lock();
  if (part.memory.contents_ == nullptr) return std::nullopt;
  if (part.is_code) UseCode(part.memory);
  return part;
}

void BufferPool::Keep(const PartKey& key, std::span<const std::shared_ptr<const Tensor>> sources,
                      const KernelPart& part) {
  const std::lock_guard lock(mutex_);
  if (by_key_.size() >= sweep_at_) ForgetFreed();
  by_key_.insert_or_assign(
      FullKey(key, sources),
      Known{part.memory.contents_, part.functions, part.is_code, {sources.begin(), sources.end()}});
  if (part.is_code) UseCode(part.memory);
}

void BufferPool::ForgetFreed() {
  std::erase_if(by_key_, [](const auto& entry) { return entry.second.contents.expired(); });
  sweep_at_ = std::max<size_t>(2 * by_key_.size(), 256);
}

void BufferPool::UseCode(const SharedBuffer& code) {
  constexpr size_t kMostCodeBytes = 16 << 20;
  const auto known = std::ranges::find(code_, code.contents_, &SharedBuffer::contents_);
  if (known != code_.end()) return code_.splice(code_.begin(), code_, known);
  code_.push_front(code);
  code_bytes_ += code.bytes().size();
  while (code_bytes_ > kMostCodeBytes && code_.size() > 1) {
    code_bytes_ -= code_.back().bytes().size();
    code_.pop_back();
  }
}

SharedBuffer KernelParts::NextData(size_t bytes, const std::function<AlignedBuffer()>& make,
                                   const PartKeyOf& key_of) {
  if (bytes == 0) return {};
  if (known_) {
    const SharedBuffer& memory = NextKnown(false).memory;
    if (memory.bytes().size() == bytes) return memory;
    throw Error(ErrorCode::kBadModel, fmt::format("part {} of a kernel has {} bytes, {} are expected", next_,
                                                  memory.bytes().size(), bytes));
  }
  BufferPool* const pool = sharing_.pool;
  const bool has_key = pool != nullptr && key_of && !sharing_.weights.empty();
  const PartKey key = has_key ? key_of() : PartKey();
  if (std::optional<KernelPart> known = has_key ? pool->Find(key, sharing_.weights) : std::nullopt) {
    return parts_.emplace_back(*std::move(known)).memory;
  }
  AlignedBuffer made = make();
  TILESMITH_CHECK(made.bytes() == bytes, "{} bytes, not {}", made.bytes(), bytes);
  parts_.push_back({.memory = pool ? pool->Add(std::move(made)) : SharedBuffer(std::move(made))});
  if (has_key) pool->Keep(key, sharing_.weights, parts_.back());
  return parts_.back().memory;
}

KernelPart KernelParts::NextCode(const std::function<KernelPart()>& make, const PartKeyOf& key_of) {
  if (known_) return NextKnown(true);
  BufferPool* const pool = sharing_.pool;
  const bool has_key = pool != nullptr && (key_of || !sharing_.kernel.empty());
  const PartKey key = !has_key ? PartKey() : key_of ? key_of() : PartKey(sharing_.kernel).Add(parts_.size());
  if (std::optional<KernelPart> known = has_key ? pool->Find(key, {}) : std::nullopt) {
    return parts_.emplace_back(*std::move(known));
  }
  parts_.push_back(make());
  if (has_key) pool->Keep(key, {}, parts_.back());
  return parts_.back();
}

const KernelPart& KernelParts::NextKnown(bool is_code) {
  if (next_ < parts_.size() && parts_[next_].is_code == is_code) return parts_[next_++];
  throw Error(ErrorCode::kBadModel,
              fmt::format("part {} of a kernel is missing, or is {}", next_, is_code ? "no code" : "code"));
}

SharedBuffer DataPart(KernelParts* parts, size_t bytes, const std::function<AlignedBuffer()>& make,
                      const PartKeyOf& key) {
  KernelParts own;
  return (parts ? parts : &own)->NextData(bytes, make, key);
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

KernelPart CodePart(KernelParts* parts, const std::function<KernelPart()>& make, const PartKeyOf& key) {
  return parts ? parts->NextCode(make, key) : make();
}

}  // namespace tilesmith
