// An implicit GEMM on a CUDA device: filters x positions, summed over taps and channels. What cuda_direct and
// the templates on tensor cores are, and the products of cuda_winograd. The loops are in
// templates/cuda/kernels/gemm.cu.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "templates/base/loop_features.h"
#include "templates/base/loop_nest.h"
#include "templates/cuda/program.h"
#include "templates/cuda/text.h"

namespace tilesmith::cuda_gemm {

// What is multiplied, in the numbers of gemm.cu: floats by FFMA; on tensor cores floats by one product of
// TF32 or by three, bf16, and bytes.
enum class Tensor { kNone = 0, kOne = 1, kThree = 3, kBytes = 8, kBf16 = 16 };

struct Tile {
  int64_t tile_f = 64, tile_x = 64;  // filters and positions of a block
  int64_t tile_rc = 16;              // taps x channels in shared memory at a time
  int64_t part_f = 4, part_x = 4;    // of a thread; with tensor cores, of a warp
  int64_t stages = 2;                // places in shared memory
  int64_t split_k = 1;               // blocks that share a sum
  int64_t unroll = 8;                // steps of tile_rc
  Tensor tensor = Tensor::kNone;
};

struct Product {
  ConvWorkload workload;
  Layout in, out;
  Tile tile;
  bool batched = false;  // images are units, each with weights of its own; else groups are

  // Elements of k in a word of four bytes: as weights are packed, and as the input is stored.
  int64_t weight_word() const;
  int64_t input_word() const { return in.type() == DataType::kF32 ? 1 : weight_word(); }
  bool together() const;    // four words of the input are copied at once
  bool vector_out() const;  // filters are written in vectors
  int64_t units() const { return batched ? workload.mb : workload.g; }
  int64_t filters() const { return workload.oc / workload.g; }  // of a unit
  int64_t depth() const { return workload.ic / workload.g * workload.kh * workload.kw; }
  int64_t positions() const { return (batched ? 1 : workload.mb) * workload.oh * workload.ow; }
  int64_t padded_depth() const { return RoundUp(depth(), tile.tile_rc); }
  int64_t padded_filters() const;
  int64_t padded_words() const { return padded_depth() / weight_word(); }
  int64_t steps() const { return padded_depth() / tile.tile_rc; }
  int64_t threads() const;
  int64_t registers() const;  // of a thread, about
  int64_t weight_row() const { return tile.tile_f + (tile.tensor == Tensor::kNone ? 0 : 8); }
  int64_t input_row() const;
  int64_t shared_bytes() const;
  int64_t weight_floats() const;  // words of four bytes
  int64_t partial_bytes() const;  // scratch of what split_k leaves
  int64_t blocks() const;
};

// "" or why the product cannot be computed on the target.
std::string WhyInvalid(const Product& product, const Target& target);

// Constants and loops, in a namespace. One program has at most one product.
void AddProduct(cuda::ProgramText& text, const Product& product, int64_t bias_at);

// Appends weight_floats() words. `at(unit, filter, k)` gives weights, k = tap * channels + channel; of bytes
// integers from -128 to 127.
void PackWeights(const Product& product, const std::function<float(int64_t, int64_t, int64_t)>& at,
                 std::vector<float>& weights);

// One launch, and one that adds the parts up where there are several. Partial sums lie at `scratch_byte`.
std::vector<CudaLaunch> LaunchesOf(const Product& product, int64_t scratch_byte = 0);

// A config of cuda_direct and of the templates on tensor cores is a product, which answers for it.
LoopFeatures FeaturesOf(const Product& product);
LoopNest NestOf(const Product& product);
std::unique_ptr<ConvKernel> BuildKernel(const Product& product, const Target& target,
                                        const ConvWeights& weights);

}  // namespace tilesmith::cuda_gemm
