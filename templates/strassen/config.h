// One level of Strassen's algorithm for dense 1x1 convs: with the channels of the input and of
// the output in halves, and pixels in pairs, seven multiplications instead of eight, for eleven more
// additions of vectors that the input or output channels share.
//
// The Strassen template's knobs, read once from a Config into a plain struct.
#pragma once

#include <array>
#include <cstdint>

#include "layouts/base/split.h"
#include "layouts/base/target.h"
#include "layouts/layout.h"
#include "ops/conv/workload.h"
#include "templates/base/conv_template.h"
#include "templates/base/loop_features.h"
#include "templates/base/loop_nest.h"
#include "templates/direct/config.h"
#include "templates/direct/schedule.h"

namespace tilesmith {
namespace strassen {

// Partition says what a task is, and who adds up the input.
enum class Partition {
  kBlocks = 0,       // one block of pixels, from input to output: every thread reads all weights
  kOutChannels = 1,  // a chunk of output channels of a block; the sums are a stage of their own before
  kOwnSums = 2,      // a chunk of output channels of an image; every thread adds up all input it multiplies
};

struct StrassenConfig {
  int64_t ic_block = 16;  // x of the input's NCHW[x]c; 0 is NHWC
  int64_t oc_block = 16;  // x of the output's; 0 is NHWC
  Partition partition = Partition::kBlocks;
  int64_t row = 14;                             // pairs of pixels per matrix product
  int64_t rows = 1;                             // products per block
  direct::DirectConfig product;                 // register tile, unroll, prefetch of the products
  int64_t block() const { return row * rows; }  // pairs
};

StrassenConfig ReadConfig(const Config& config, const Target& cpu);

constexpr int kProducts = 7;  // P1 to P7, from 0
constexpr int kSums = 4;      // S1 to S4
// The operands of V: the sums, then A11, A12 and A22, which are absent where they are read from the input.
constexpr std::array<int, kProducts> kOperandOf = {4, 5, 3, 6, 0, 1, 2};

// The output channels of a chunk: those of its first half, then as many of the second. So a thread's chunks
// are channels that lie side by side.
struct Halves {
  int64_t first = 0, second = 0;  // the channel at which each half begins
  int64_t channels = 0;           // of a half
};

struct Block {
  int64_t image = 0;
  int64_t first = 0, second = 0;  // the pixel at which each half begins
  int64_t pairs = 0;
  bool shared = false;  // the first half's last pixel is the second half's first
};

constexpr int64_t WholeLines(int64_t floats) { return (floats + 15) / 16 * 16; }

// The Strassen template's numbers: halves of the channels, pairs of pixels, operands and products in scratch.
//
// A is the input, pixels by channels, B the weights, C the output. In the form of Winograd (1971), which has
// the fewest additions, with A11 the first pixels' first half of the channels, A12 their second half, A21 and
// A22 those of the second pixels, B12 the weights from the first half to the outputs' second half (Halves):
//     S1 = A21 + A22   T1 = B12 - B11   P1 = A11 B11   P5 = S1 T1     C11 = P1 + P2
//     S2 = S1 - A11    T2 = B22 - T1    P2 = A12 B21   P6 = S2 T2     C12 = P1 + P6 + P5 + P3
//     S3 = A11 - A21   T3 = B22 - B12   P3 = S4 B22    P7 = S3 T3     C21 = P1 + P6 + P7 - P4
//     S4 = A12 - S2    T4 = T2 - B21    P4 = A22 T4                   C22 = P1 + P6 + P7 + P5
// A block is `block()` pairs: the first pixel of each pair from its first half, the second from its second.
// The last block of an image takes what is left; where that is odd, one pixel is in both halves.
// In scratch lie, for a block (F: floats of a vector),
//     V[operand][ic / 2 / F][pair][F]        operands of the products
//     M[product][vector of the chunk][pair of the row][F]
struct Schedule {
  ConvWorkload workload;
  StrassenConfig config;
  Layout in, out;
  int vector_floats = 16;

  int64_t pixels = 0;                       // of an image
  int64_t image_blocks = 0;                 // blocks of an image
  int64_t in_vectors = 0, out_vectors = 0;  // of half the channels
  bool in_place = false;  // A11, A12 and A22 are read where the input has them: its blocks are vectors

  // Floats.
  int64_t operand = 0;  // of V, from one operand to the next
  int64_t product = 0;  // of M, from one product to the next

  int64_t blocks() const { return workload.mb * image_blocks; }
  int operands() const { return in_place ? kSums : kProducts; }
  int64_t v_floats() const { return WholeLines(operand * operands()); }  // of a block
  int64_t m_floats() const { return WholeLines(product * kProducts); }   // of a row
  Block BlockAt(int64_t index) const;
  Halves HalvesOf(const direct::Chunk& chunk) const;
  int64_t in_pixel() const { return in.BlockFor(workload.ic); }  // floats between neighbouring pixels
  // Floats from the input of output pixel 0 to that of `pixel`.
  int64_t InPixelOffset(int64_t pixel) const;
  int64_t out_pixel() const { return out.BlockFor(workload.oc); }
  // Floats from the image's start to the first channel of a vector at pixel 0.
  int64_t InVectorOffset(int64_t vector) const;
  int64_t OutVectorOffset(int64_t vector) const;
};

Schedule MakeSchedule(const ConvWorkload& workload, const StrassenConfig& config, int vector_floats);

// Pairs of an image, one pixel alone counting as one.
int64_t CountPairs(const ConvWorkload& workload);

// One product over a row of `pairs` as a 1x1 conv.
ConvWorkload ProductOf(const ConvWorkload& workload, int64_t pairs);

// Blocks are pixels side by side; tasks of all of an image's blocks have no rows.
TaskGrid GridOf(const Schedule& schedule);
LoopFeatures FeaturesOf(const Schedule& schedule);
LoopNest NestOf(const Schedule& schedule);

// Precondition: cpu.isa has generated code and the machine has it.
std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights);

}  // namespace strassen

// Name "strassen".
const ConvTemplate& StrassenTemplate();
}  // namespace tilesmith
