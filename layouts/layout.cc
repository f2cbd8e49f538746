#include "layouts/layout.h"

#include <fmt/format.h>

#include <charconv>

#include "layouts/base/check.h"
#include "layouts/base/settings.h"

namespace tilesmith {

Layout Layout::Blocked(int64_t block, DataType type) {
  TILESMITH_CHECK(block >= 1 && block <= kMaxBlock, "block {}", block);
  return Layout(block, type);
}

Layout Layout::Parse(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view order = text.substr(0, colon);
  const DataType type =
      colon == std::string_view::npos ? DataType::kF32 : ParseDataType(text.substr(colon + 1));
  if (order == "NCHW") return Nchw(type);
  if (order == "NHWC") return Nhwc(type);
  constexpr std::string_view kPrefix = "NCHW";
  if (order.starts_with(kPrefix) && order.ends_with("c")) {
    const char* first = order.data() + kPrefix.size();
    const char* last = order.data() + order.size() - 1;
    int64_t block = 0;
    const auto [end, error] = std::from_chars(first, last, block);
    if (error == std::errc() && end == last && block >= 1 && block <= kMaxBlock) return Layout(block, type);
  }
  throw Error(
      ErrorCode::kUsage,
      fmt::format("unknown layout \"{}\" (allowed: NCHW, NHWC, NCHW[x]c such as NCHW16c, x from 1 to {})",
                  text, kMaxBlock));
}

std::string Layout::ToString() const {
  std::string text = is_nchw() ? "NCHW" : is_nhwc() ? "NHWC" : fmt::format("NCHW{}c", block_);
  if (type_ != DataType::kF32) text += fmt::format(":{}", DataTypeName(type_));
  return text;
}

int64_t Layout::Blocks(int64_t channels) const {
  const int64_t block = BlockFor(channels);
  return block == 0 ? 0 : CeilDiv(channels, block);
}

Dims4 ToDims4(const Shape& shape) {
  TILESMITH_CHECK(shape.size() <= 4, "rank {}", shape.size());
  Dims4 dims;
  int64_t* const fields[] = {&dims.n, &dims.c, &dims.h, &dims.w};
  for (size_t i = 0; i < shape.size(); ++i) *fields[i] = shape[i];
  return dims;
}

namespace {

[[noreturn]] void ThrowNegative(const Shape& shape) {
  throw Error(ErrorCode::kBadModel, fmt::format("the shape {} has a negative size", ShapeToString(shape)));
}

}  // namespace

void CheckShape(const Shape& shape, const SizeLimits& limits) {
  if (std::ssize(shape) > kMaxRank)
    throw Error(ErrorCode::kBadModel,
                fmt::format("a tensor of {} dimensions (at most {} are supported)", shape.size(), kMaxRank));
  int64_t count = 1;
  for (const int64_t size : shape) {
    if (size < 0) ThrowNegative(shape);
    if (size == 0) continue;
    if (count > limits.tensor_elements / size) {
      throw LimitError(fmt::format("a tensor {} has more than {} elements, the limit set for one ({})",
                                   ShapeToString(shape), limits.tensor_elements, settings::kMaxElements));
    }
    count *= size;
  }
}

int64_t ElementCount(const Shape& shape) {
  Checked count = 1;
  for (const int64_t size : shape) {
    if (size < 0) ThrowNegative(shape);
    count *= size;
  }
  return count.value();
}

int64_t PaddedElementCount(const Shape& shape, const Layout& layout) {
  if (layout.is_nchw()) return ElementCount(shape);
  return (Checked(ToDims4(shape).n) * BatchStride(shape, layout)).value();
}

int64_t PaddedBytes(const Shape& shape, const Layout& layout) {
  return (Checked(PaddedElementCount(shape, layout)) * layout.element_bytes()).value();
}

int64_t BatchStride(const Shape& shape, const Layout& layout) {
  if (layout.is_nchw())
    return shape.empty() || shape[0] == 0 ? ElementCount(shape) : ElementCount(shape) / shape[0];
  const Dims4 dims = ToDims4(shape);
  return (Checked(layout.PaddedChannels(dims.c)) * dims.h * dims.w).value();
}

int64_t BatchBytes(const Shape& shape, const Layout& layout) {
  return (Checked(BatchStride(shape, layout)) * layout.element_bytes()).value();
}

int64_t ElementOffset(const Dims4& dims, const Layout& layout, const Dims4& index) {
  const int64_t block = layout.BlockFor(dims.c);
  const int64_t plane = index.n * layout.Blocks(dims.c) + index.c / block;
  return (plane * dims.h * dims.w + index.h * dims.w + index.w) * block + index.c % block;
}

bool SameMemory(const Shape& shape, const Layout& a, const Layout& b) {
  if (a == b) return true;
  if (shape.size() > 4 || a.type() != b.type()) return false;
  const Dims4 dims = ToDims4(shape);
  if (a.PaddedChannels(dims.c) != b.PaddedChannels(dims.c)) return false;
  return a.BlockFor(dims.c) == b.BlockFor(dims.c) || dims.h * dims.w == 1;
}

std::string ShapeToString(const Shape& shape) { return fmt::format("{}", fmt::join(shape, "x")); }

}  // namespace tilesmith
