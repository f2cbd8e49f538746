// The inner loops of quantised convolution over pixels, built for each instruction set
// (quantized_conv_isa.cc), and rows on their way into and out of them (quantized_rows_isa.cc). direct_int8
// has files of its own for few outputs (quantized_dots_isa.cc) and small groups (quantized_groups_isa.cc).
//
// Bytes with a sign are bytes without one whose top bit is flipped, as is their zero point: nothing here
// depends on the type. Numbers are multiplied a word at a time, four bytes of them, and the sum of a word's
// products is one instruction: two numbers of 16 bits, which hold the input minus its zero point, or with
// VNNI four bytes, the input's without a sign and the weights' with one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "layouts/base/isa_dispatch.h"

namespace tilesmith {

// Smaller ones have an integer of 32 bits, which is what instructions make of others that cannot be relied
// on.
constexpr double kMaxSteps = 1 << 30;

// Output channels that are computed together: two vectors of sums.
constexpr int64_t QuantizedConvLanes(Isa isa) {
  return isa == Isa::kAvx512 ? 32 : isa == Isa::kAvx2 ? 16 : 8;
}

// Pixels whose sums have room in registers, beside the vectors of weights and one word of the input.
constexpr int64_t QuantizedConvTilePixels(Isa isa, bool vnni) {
  return vnni ? 12 : isa == Isa::kAvx512 ? 8 : isa == Isa::kAvx2 ? 6 : 4;
}

// Words of a run between which ConvolveDense fetches some of the next weights.
constexpr int64_t kDensePartWords = 16;
constexpr int64_t kLineBytes = 64;

// A row of the input in some channels. Steps are in elements: in a plain layout channels lie apart and
// columns are adjacent, in others the other way round.
struct WidenedRow {
  const uint8_t* in = nullptr;
  int64_t in_step = 1, channel_step = 1;
  void* out = nullptr;
  int64_t out_step = 1;  // numbers from column to column; channels are adjacent
  int64_t columns = 0, channels = 0;
  uint8_t flip = 0;
  int16_t zero = 0;
};

// A residual that is added to the convolution's own result before it is rounded (ResidualTerms):
//   steps = fma(byte ^ flip, factor, clamp(fma(sum, multiplier, offset), low, high))
struct QuantizedSumTerms {
  const uint8_t* residual = nullptr;  // or null
  int64_t step = 0;                   // from pixel to pixel
  float offset = 0, low = 0, high = 0, factor = 1;
  uint8_t flip = 0;
};

// Sums of pixels in one block of channels, and the bytes that stand for them.
struct QuantizedPixels {
  const std::byte* input = nullptr;
  const int32_t* offsets = nullptr;  // bytes from `input` to where each pixel's window begins
  int64_t count = 0;
  int64_t tile_pixels = 1;        // how many are computed at once, at most QuantizedConvTilePixels
  const int32_t* runs = nullptr;  // bytes from there to each of the window's runs, of `words` words each
  const int32_t* run_weights = nullptr;  // of ConvolveDense: bytes from `weights` to each run's
  int64_t run_count = 0, words = 0;
  int64_t group_words = 0;             // of ConvolveGroups: words of a pixel in each group
  const std::byte* weights = nullptr;  // [run][word][lane], words; some functions have another order
  // What ConvolveDense fetches into the second level's cache meanwhile: bytes of a tile, and lines of each
  // kDensePartWords words of a run.
  const std::byte* next_weights = nullptr;
  int64_t next_step = 0, next_lines = 0;
  const int32_t* bias = nullptr;  // [lane], as are the multipliers
  const float* multipliers = nullptr;
  QuantizedSumTerms sum = {};
  int32_t zero = 0, low = 0, high = 255;  // of bytes without a sign
  bool bounded = false;                   // no step that is rounded is as large as kMaxSteps
  uint8_t flip = 0;
  uint8_t* out = nullptr;   // `channels` lanes of a pixel, with AVX-512; otherwise all; so of the residual
  int64_t out_step = 0;     // from pixel to pixel
  int64_t channels = 0;     // 1 to the number of lanes
  float* reals = nullptr;   // instead of `out`: sums times multipliers, all lanes, pixels adjacent
  int32_t* sums = nullptr;  // instead of both: the sums, likewise

  // Goes on to the pixels behind the first `pixels`, whose reals have so many lanes. Precondition: sums is
  // null.
  void Advance(int64_t pixels, int64_t lanes) {
    offsets += pixels;
    if (out != nullptr) out += pixels * out_step;
    if (sum.residual != nullptr) sum.residual += pixels * sum.step;
    if (reals != nullptr) reals += pixels * lanes;
  }
};

// out[x * out_step + c] = (in[x * in_step + c * channel_step] ^ flip) - zero; with VNNI `zero` is 0, and
// columns of three channels that have room for four may get a 0 behind them.
TILESMITH_DECLARE_VNNI(void WidenRow(const WidenedRow& row))
// The words (in[i], in[i + distance], ...) of i < count, numbers.
TILESMITH_DECLARE_VNNI(void GatherWords(const void* in, int64_t distance, int64_t count, void* out))
// Every lane reads the same words: sum += in[k] * weights[k][lane], the sum of the products of two words.
TILESMITH_DECLARE_VNNI(void ConvolveDense(const QuantizedPixels& pixels))
// Every lane has words of its own, a run is one for each: in[lane] in the place of in[k].
TILESMITH_DECLARE_VNNI(void ConvolveDepthwise(const QuantizedPixels& pixels))

// With AVX-512 VNNI, for at most kMostDots channels, whose lanes would be idle otherwise: sums of 64 products
// in 16 lanes, kDotPixels pixels at a time whatever tile_pixels says. Weights: [run][channel][DotRunBytes]
// bytes, zeros behind a run's. Precondition: sums is null.
inline constexpr int64_t kMostDots = 4, kDotPixels = 4;
constexpr int64_t DotRunBytes(int64_t words) { return (4 * words + 63) / 64 * 64; }

// With AVX-512 VNNI, for groups of 4, 8 or 16 channels, in and out, of which a pixel has kGroupedPixelBytes
// together: GroupedPixels pixels at a time whatever tile_pixels says. Weights: [run][pixel of it][t][lane],
// words in 16 lanes, t < group_words. Output number `o` of the block is computed in lane GroupedLane; the
// word of its own group (lane ^ t) % group_words lies in lane ^ t. Precondition: sums is null.
inline constexpr int64_t kGroupedPixelBytes = 16;
constexpr int GroupedPixels(int64_t group_words) { return group_words == 4 ? 6 : 12; }
constexpr int64_t GroupedLane(int64_t group_words, int64_t o) {
  const int64_t group_lanes = 4 * group_words, in_group = o % group_lanes;
  return in_group / group_words * 4 + o / group_lanes * group_words + in_group % group_words;
}
#ifdef TILESMITH_X86
namespace avx512_vnni {
void ConvolveDots(const QuantizedPixels& pixels);
void ConvolveGroups(const QuantizedPixels& pixels);
}  // namespace avx512_vnni
#endif

// Stores `pixels` whose sums are given, [pixel][lane], bias included; their input, weights and bias are not
// read.
TILESMITH_DECLARE_VNNI(void StoreSums(const QuantizedPixels& pixels, const int32_t* sums))
// out[c * out_step + p] = in[p * in_step + c] for p < pixels and c < channels.
struct ChannelRows {
  const uint8_t* in = nullptr;
  int64_t in_step = 0;
  uint8_t* out = nullptr;
  int64_t out_step = 0;
  int64_t pixels = 0, channels = 0;
};
TILESMITH_DECLARE_VNNI(void StoreChannelRows(const ChannelRows& rows))

}  // namespace tilesmith
