// The planes of a built depthwise conv: packed weights and code, run on any rows and channels of an image.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "layouts/base/target.h"
#include "templates/base/conv_template.h"
#include "templates/code/generated_code.h"
#include "templates/code/vector_code.h"
#include "templates/depthwise/row_pairs.h"
#include "templates/depthwise/schedule.h"

namespace tilesmith::depthwise {

// The depthwise code generator: any rows of any number of planes in one call.
//
//   for vector of channels, for step (a group of output rows), for tile of columns,
//   or, where input pixels hold several vectors, for step, for tile of columns, for vector of channels:
//     acc[r][w] = bias (+ residual)
//     acc[r][w] += weights[y][x] * in[(row + r) * stride - pad + y * dilation][...]   for all taps (y, x)
//     out = activation(acc)
// Input and output may be stored in bf16: pixels become floats when they are read, and outputs are rounded.
// Taps outside the input are skipped: columns when emitting (edge tiles are emitted on their own), rows when
// emitting or by a range given at run time. So there is no padded copy of the input.
//
// A group of rows to compute: offsets in bytes from the plane's row 0 (which need not exist in memory), and
// of the weights from those of the plane.
struct RowStep {
  const void* code = nullptr;
  int64_t source = 0;
  int64_t output = 0;
  int64_t weights = 0;
  int64_t kernel_rows = 0;  // for looped code; may be 0
};

struct PlaneArgs {
  const float* source = nullptr;    // row 0, column 0 of the first plane
  float* output = nullptr;          // likewise
  const float* residual = nullptr;  // like output
  const float* weights = nullptr;   // of the first plane: kernel row, kernel column, lane
  const float* bias = nullptr;      // whole vectors
  int64_t source_step = 0;          // bytes from one plane to the next
  int64_t output_step = 0;
  int64_t planes = 0;  // at least 1
  const RowStep* first_step = nullptr;
  const RowStep* last_step = nullptr;  // one past; at least one step
  int64_t source_row = 0;              // bytes from a row to the next one
  int64_t output_row = 0;
  int64_t next_kernel_row = 0;           // from an input row to the one that the next kernel row meets
  const int64_t* tile_counts = nullptr;  // of each run of tiles of each piece of code
};
using PlaneKernel = void (*)(const PlaneArgs*);

// Whether the code has bytes between input rows as numbers, where it takes more of them than addresses reach
// by a register: only images of one width can share it. Otherwise it knows no sizes but the kinds of tiles
// that rows are cut into.
bool KnowsRowBytes(const RowGeometry& geometry, std::span<const RowCode> codes);

// The kernels of one conv, in one code buffer.
class PlaneGenerator : public VectorCode {
 public:
  PlaneGenerator(const RowGeometry& geometry, std::span<const RowCode> codes, const Target& cpu,
                 size_t buffer_bytes);

  // A kernel that can run `codes`. `lanes` are the real ones of every plane's vector; 0 means all. Adds where
  // it begins, and where its pieces do, in the order of `codes`.
  void Emit(std::span<const RowCode> codes, int lanes, std::vector<size_t>& starts);
  // After the last kernel.
  void Finish() { EmitConstants(); }

 private:
  // Output row of the tile, kernel row.
  using RowTap = std::pair<int, int64_t>;

  code::Vec Accumulator(int64_t row, int64_t column) const {
    return Vector(static_cast<int>(row * width_ + column));
  }
  code::Vec NextTemp();
  code::Vec Mask() const { return Vector(plan_.mask); }
  bool masked() const { return lanes_ > 0 && geometry_.masked; }
  // Whether a pixel in memory may be an operand as it is.
  bool PixelsFold() const { return !masked() && geometry_.config.types.in == DataType::kF32; }
  void LoadPixel(const code::Vec& to, const code::Address& from);

  void EmitKernel(std::span<const RowCode> codes, std::vector<size_t>& starts);
  void EmitAdvance(code::Label& next_plane, code::Label& next_step);
  void EmitPiece(const RowCode& code);
  void EmitTile(const RowCode& code, const TileRun& tile);
  void EmitTileOfPlanes(const RowCode& code, const TileRun& tile);
  void EmitNextPlane(const code::Reg& source, const code::Reg& output, code::Label& again);
  void EmitBias(int accumulators);
  void EmitResidual();
  void EmitUnrolled(const RowCode& code);
  void EmitLooped();
  void EmitInputRow(const code::Reg& base, int64_t row, std::span<const RowTap> taps);
  // For the tile's input rows that cannot be reached from its first one.
  void EmitRowPointers(const RowCode& code);
  // Byte `offset` of the tile's input row `row`.
  code::Address InputAt(const code::Reg& base, int64_t row, int64_t offset) const;
  // Calls visit(row, base) for each output row, `start` being the first one.
  template <typename Visit>
  void ForEachOutputRow(const code::Reg& start, const Visit& visit);
  void EmitPair(const KernelRows& input);
  void EmitPairPass(const PairPass& pass, int64_t first_product, const KernelRows& input);
  // The registers that hold a pass's pixels of one column; a product all of whose rows are missing has none.
  struct PairPixels {
    struct Pixel {
      code::Vec value;
      bool exists = false;
      bool negated = false;
    };
    std::array<Pixel, 2> of;
  };
  PairPixels EmitPairPixels(const PairPass& pass, int64_t column, const KernelRows& input);
  void EmitPairSums();
  void EmitFinish();
  struct Registers {
    int first, count;
  };
  void LoadHeldWeights();
  void LoadWeights(const code::Reg& base, int64_t first_tap, Registers to);

  const RowGeometry& geometry_;
  const bool knows_rows_;  // their bytes (KnowsRowBytes)
  int lanes_ = 0;
  int64_t runs_ = 0;  // of tiles, emitted so far
  // The size of the tile being emitted.
  int64_t rows_ = 0, width_ = 0;
  RegisterPlan plan_, plane_plan_;  // of the tile, and of what is held for a plane
  int next_temp_ = 0;
  std::map<int64_t, std::vector<std::pair<int64_t, int64_t>>> columns_;  // input: (output, kernel) columns
};

class Planes {
 public:
  // Precondition: cpu.isa has generated code and the machine has it. `schedule` must outlive this.
  Planes(const Schedule& schedule, const Target& cpu, const ConvWeights& weights);

  // One image: pixel 0 of row 0 of its first channel, which need not exist in memory if row 0 is not touched.
  // Elements are of the types that the schedule says.
  struct Image {
    const float* source = nullptr;
    float* output = nullptr;
    const float* residual = nullptr;
    int64_t source_shift = 0, output_shift = 0, residual_shift = 0;  // from block to block (InputView)
  };
  // Output rows of row block `row_block`, vectors [first, first + count) of channels; the padding channels
  // behind the last vector too. Thread-safe for disjoint outputs.
  void Run(const Image& image, int64_t first, int64_t count, int64_t row_block) const;

  std::span<const uint8_t> Code() const { return code_.bytes(); }
  std::span<const std::byte> PackedWeights() const { return weights_.bytes(); }

 private:
  // A kernel and, for each row block, its steps.
  struct Variant {
    PlaneKernel kernel = nullptr;
    std::vector<std::vector<RowStep>> steps;
  };
  struct Vectors {
    int64_t first, count;
  };
  AlignedBuffer Pack(const float* weights, size_t bytes) const;
  std::unique_ptr<PlaneGenerator> Emit(const Target& cpu, std::vector<size_t>& starts) const;
  // Of the code's functions from number `first` on.
  Variant VariantAt(size_t first) const;
  RowStep StepOf(const RowGroup& group, size_t first) const;
  int64_t EvenUntil(const ChannelStrides& strides, int64_t v) const;
  void RunEven(const Image& image, const Variant& variant, const Vectors& vectors, int64_t row_block) const;
  void FillPadding(const Image& image, int64_t row_block) const;

  const Schedule& schedule_;
  // For each vector of channels: the kernel's weights (kernel row, kernel column, lane), then with pairs
  // those of their products (product, kernel column, lane). Channels past the last are zero.
  SharedBuffer weights_;
  SharedBuffer bias_;  // whole vectors
  std::vector<int64_t> tile_counts_;
  GeneratedCode code_;
  Variant full_, partial_;
};

}  // namespace tilesmith::depthwise
