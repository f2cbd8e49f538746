// The estimate of products beside what an H200 took for them, in the mean of its launches.
#include <gtest/gtest.h>

#include "templates/cuda_gemm/config.h"
#include "tests/support/cuda/cuda_targets.h"

namespace tilesmith {
namespace cuda_estimate {
namespace {

using cuda_gemm::DirectDefault;
using cuda_gemm::EstimatedCycles;
using cuda_gemm::Product;
using cuda_gemm::ReadDirect;
using cuda_gemm::ReadTensor;
using cuda_gemm::TensorDefault;

constexpr double kHertz = 1.755e9, kLaunchSeconds = 4.6e-6;

struct Tiles {
  int64_t tile_f, tile_x, part_f, part_x, tile_rc, stages, split_k;
};

Config ConfigOf(const Tiles& t) {
  Config config;
  config.Set("ic_block", 0);
  config.Set("oc_block", 0);
  config.Set("tile_f", t.tile_f);
  config.Set("tile_x", t.tile_x);
  config.Set("part_f", t.part_f);
  config.Set("part_x", t.part_x);
  config.Set("tile_rc", t.tile_rc);
  config.Set("stages", t.stages);
  config.Set("split_k", t.split_k);
  config.Set("unroll", 4);
  config.Set("products", 1);
  return config;
}

const Target& H200() {
  static const Target target = CudaTargetForTests(90, true);
  return target;
}

double Seconds(const Product& product) { return EstimatedCycles(product, H200()) / kHertz + kLaunchSeconds; }

TEST(CudaEstimate, IsNearWhatWasMeasured) {
  constexpr double kFactor = 1.45;
  const auto near = [&](double seconds, double measured) {
    EXPECT_GT(seconds, measured / kFactor);
    EXPECT_LT(seconds, measured * kFactor);
  };
  const ConvWorkload small = ParseWorkload("ic512ih7oc512kh3ph1+bias+relu");
  const ConvWorkload large = ParseWorkload("mb32ic1024ih14oc512kh1+bias+relu");
  near(Seconds(ReadDirect(small, ConfigOf({32, 64, 4, 4, 16, 3, 16}), H200())), 21.1e-6);
  near(Seconds(ReadDirect(small, ConfigOf({32, 64, 8, 8, 8, 2, 1}), H200())), 395.9e-6);
  near(Seconds(ReadTensor(large, ConfigOf({64, 64, 32, 32, 16, 2, 1}), H200())), 138.5e-6);
}

TEST(CudaEstimate, DefaultsShareLongSumsOfSmallImagesOnly) {
  const Config small = DirectDefault(ParseWorkload("ic512ih7oc512kh3ph1+bias+relu"), H200());
  EXPECT_GT(small.Get("split_k"), 4) << small.ToString();
  const Config large = TensorDefault(ParseWorkload("mb32ic1024ih14oc512kh1+bias+relu"), H200());
  EXPECT_EQ(large.Get("split_k"), 1) << large.ToString();
  EXPECT_GE(large.Get("tile_f") * large.Get("tile_x"), 64 * 64) << large.ToString();
}

}  // namespace
}  // namespace cuda_estimate
}  // namespace tilesmith
