#include "templates/cuda_gemm/estimate.h"

#include <algorithm>

#include "layouts/base/sizes.h"
#include "templates/cuda/limits.h"

namespace tilesmith::cuda_gemm {
namespace {

// Multiplications of a cycle, by what multiplies, and warps that are needed for as many.
struct Rate {
  double products;
  double warps;
};
Rate RateOf(Tensor tensor) {
  switch (tensor) {
    case Tensor::kNone:
      return {60, 4};
    case Tensor::kThree:
      return {44, 5};
    case Tensor::kOne:
      return {130, 5};
    case Tensor::kBf16:
      return {260, 5};
    case Tensor::kBytes:
      return {520, 5};
  }
  return {60, 4};
}

// Blocks that a multiprocessor has room for.
int64_t BlocksAtOnce(const Product& p, const Target& target) {
  constexpr int64_t kThreads = 2048, kKeptRegisters = 115;  // of a thread, beside its sums
  const int64_t threads = p.threads();
  const int64_t sums = p.tile.part_f * p.tile.part_x / (p.tile.tensor == Tensor::kNone ? 1 : 32);
  return std::max<int64_t>(
      1, std::min({kThreads / threads, target.l1d_bytes / std::max<int64_t>(p.shared_bytes(), 1),
                   cuda::kRegisters / ((sums + kKeptRegisters) * threads)}));
}

}  // namespace

double EstimatedCycles(const Product& p, const Target& target) {
  constexpr double kCopied = 18.5;   // bytes of a cycle
  constexpr double kLatency = 1040;  // of memory
  constexpr double kSync = 150;      // of a step
  constexpr double kBegin = 1340;    // of blocks that run together
  constexpr double kReduce = 2800;   // a second launch
  constexpr double kPartial = 7;     // bytes of partial sums that all multiprocessors move in one's cycle
  const Tile& t = p.tile;
  const auto of = [](int64_t count) { return static_cast<double>(count); };
  const Rate rate = RateOf(t.tensor);
  const double steps = of(CeilDiv(p.steps(), t.split_k));
  const double multiplying = of(t.tile_f * t.tile_x * t.tile_rc) / rate.products;
  const int64_t words = t.tile_f * (t.tile_rc / p.weight_word()) + t.tile_x * (t.tile_rc / p.input_word());
  const double copying = of(words * 4) / kCopied;
  const double alone = std::max({multiplying * std::max(1.0, rate.warps * 32 / of(p.threads())),
                                 kLatency / of(t.stages - 1), copying}) +
                       kSync;
  const int64_t cores = std::max<int64_t>(target.cores, 1);
  const int64_t blocks = CeilDiv(p.blocks(), cores);
  const double rounds = of(CeilDiv(blocks, BlocksAtOnce(p, target)));
  const double cycles = std::max(rounds * alone, of(blocks) * std::max(multiplying, copying)) * steps;
  const double reducing = t.split_k == 1 ? 0 : kReduce + 2 * of(p.partial_bytes()) / (kPartial * of(cores));
  return cycles + kBegin * rounds + reducing;
}

}  // namespace tilesmith::cuda_gemm
