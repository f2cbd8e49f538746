// Layouts: where element (n, c, h, w) of an activation tensor lies in memory.
//
// There is one family, NCHW[x]c: channels are cut into ceil(C / x) blocks of x, and
//
//     offset(n, c, h, w) = ((n * blocks + c / x) * H * W + h * W + w) * x + c % x          (in elements)
//
// NCHW is x = 1; NHWC is a single block holding all channels, x = C. Channels that x does not divide are
// padded up with zeros, and those zeros are an invariant: every op that writes a tensor writes them.
//
// A layout includes the elements' type. It is written behind a colon, "NCHW16c:bf16"; without one it is f32.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "layouts/base/sizes.h"
#include "layouts/data_type.h"

namespace tilesmith {

using Shape = std::vector<int64_t>;  // logical sizes, outermost first; activations are {N, C, H, W}

class Layout {
 public:
  constexpr Layout() = default;  // NCHW of f32
  static constexpr Layout Nchw(DataType type = DataType::kF32) { return Layout(1, type); }
  static constexpr Layout Nhwc(DataType type = DataType::kF32) { return Layout(kAllChannels, type); }
  // Channels in a block, at most.
  static constexpr int64_t kMaxBlock = 1 << 16;
  // NCHW[block]c, 1 <= block <= kMaxBlock.
  static Layout Blocked(int64_t block, DataType type = DataType::kF32);
  // "NCHW", "NHWC" or "NCHW16c", and ":" with the name of a type (data_type.h) where that is not f32. Throws
  // Error(kUsage) naming the text and the allowed forms, range of blocks and types.
  static Layout Parse(std::string_view text);
  std::string ToString() const;

  // Whatever the type.
  bool is_nchw() const { return block_ == 1; }
  bool is_nhwc() const { return block_ == kAllChannels; }
  DataType type() const { return type_; }
  int64_t element_bytes() const { return ElementBytes(type_); }
  // The same order of elements of another type.
  Layout WithType(DataType type) const { return Layout(block_, type); }

  // The block size x for a tensor of `channels` channels.
  int64_t BlockFor(int64_t channels) const { return is_nhwc() ? channels : block_; }
  int64_t Blocks(int64_t channels) const;
  // Throws Error(kBadModel) where the result does not fit 64 bits.
  int64_t PaddedChannels(int64_t channels) const {
    return (Checked(Blocks(channels)) * BlockFor(channels)).value();
  }

  friend bool operator==(const Layout&, const Layout&) = default;
  friend auto operator<=>(const Layout&, const Layout&) = default;

 private:
  static constexpr int64_t kAllChannels = 0;
  constexpr Layout(int64_t block, DataType type) : block_(block), type_(type) {}
  int64_t block_ = 1;
  DataType type_ = DataType::kF32;
};

// N, C, H, W of an activation; trailing dimensions a lower rank lacks are 1. Precondition: rank <= 4.
struct Dims4 {
  int64_t n = 1, c = 1, h = 1, w = 1;
};
Dims4 ToDims4(const Shape& shape);

// Throws Error(kBadModel), naming shape and limit, unless 0 <= every size, the rank is at most kMaxRank, and
// the product of the sizes, those of 0 left out, is at most limits.tensor_elements. Strides of such a tensor,
// and offsets in it, cannot overflow.
void CheckShape(const Shape& shape, const SizeLimits& limits);

// Product of all sizes; 1 for a scalar. This and the next four throw Error(kBadModel) where the result does
// not fit 64 bits or a size is negative.
int64_t ElementCount(const Shape& shape);
// Elements stored for `shape` in `layout`, padding included, and the bytes they take.
int64_t PaddedElementCount(const Shape& shape, const Layout& layout);
int64_t PaddedBytes(const Shape& shape, const Layout& layout);
// Elements, and bytes, from one image of the batch to the next.
int64_t BatchStride(const Shape& shape, const Layout& layout);
int64_t BatchBytes(const Shape& shape, const Layout& layout);
// Offset of one element, by the formula above.
int64_t ElementOffset(const Dims4& dims, const Layout& layout, const Dims4& index);

// Whether `a` and `b`, of one type, put every element of `shape` (and its padding) in the same place, so that
// a transform between them is a no-op: 16 channels in NHWC and NCHW16c, or one pixel in NCHW and NCHW8c.
bool SameMemory(const Shape& shape, const Layout& a, const Layout& b);

// "1x64x56x56".
std::string ShapeToString(const Shape& shape);

}  // namespace tilesmith
