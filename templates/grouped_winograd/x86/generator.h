// The products of a block of tiles, in place: for each sum of products, each tile and each lane of one vector
// of channels (several whole groups),
//   M[sum][tile][lane] = sum over the xi that belong to it, and over the channels c of the lane's group, of
//                        V[xi][tile][c] * U[xi][c][lane]
// where V and U are sorted by the sums, and the terms of a U[xi] by templates/grouped/lane_swaps.h.
#pragma once

#include "templates/grouped_winograd/schedule.h"
#include "templates/x86/vector_code.h"

namespace tilesmith::grouped_winograd {

// products: V of the first tile, which becomes M. weights: U of the vector. terms: for each sum of products,
// how many xi belong to it.
using ProductKernel = void (*)(float* products, const float* weights, const int64_t* terms);

struct ProductShape {
  int64_t channels = 0;       // per group
  int64_t sums = 1;           // see templates/grouped/lane_swaps.h
  int64_t products = 0;       // sums of products
  bool merged = false;        // some of them have several terms
  int64_t element_bytes = 0;  // from one xi, or sum, to the next
  int64_t width = 0;          // tiles of a register tile
};

class ProductGenerator : public x86::VectorCode {
 public:
  ProductGenerator(const ProductShape& shape, const Target& cpu, size_t buffer_bytes);

  // A kernel for `tiles` tiles. Returns its offset in the code.
  size_t Emit(int64_t tiles);
  // After the last kernel.
  void Finish() { EmitConstants(); }

  // Bytes of code of a kernel, at most.
  static int64_t KernelBytes(int64_t tiles, const ProductShape& shape);

 private:
  Xbyak::Xmm Accumulator(int64_t sum, int64_t tile) const {
    return Vector(static_cast<int>(sum * shape_.width + tile));
  }
  Xbyak::Xmm Weight(int64_t sum) const { return Vector(first_weight_ + static_cast<int>(sum)); }

  struct Tiles {
    int64_t first, count;
  };
  // One sum of products.
  void EmitTiles(const Tiles& tiles);
  // One term of it; the first begins it.
  void EmitTerm(const Tiles& tiles, bool begin);
  void EmitSumOfSums(int64_t tiles);
  // Weights, and the index of the permute where there is one.
  void EmitWeights(int64_t spread);
  // Every lane gets what it needs of its group's input: element `spread`, or the lane that far off.
  void EmitInput(const Xbyak::Xmm& to, int64_t tile, int64_t spread);

  const ProductShape shape_;
  const int first_weight_, index_, input_;  // registers after the accumulators
};

}  // namespace tilesmith::grouped_winograd
