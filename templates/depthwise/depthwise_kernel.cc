#include "templates/depthwise/depthwise_kernel.h"

#include <algorithm>

#include "layouts/base/check.h"
#include "templates/depthwise/plane_generator.h"
#include "templates/depthwise/row_pairs.h"

namespace tilesmith::depthwise {

namespace {

// One channel's weights of the pairs' products. `from`: its kernel; `to`: its lane.
void PackPairs(const RowGeometry& g, const float* from, float* to) {
  const int64_t kw = g.workload.kw;
  for (const PairPass& pass : PairPasses(g.workload.kh)) {
    for (const PairProduct& product : pass) {
      for (int64_t x = 0; x < kw; ++x, to += g.vector_floats) {
        for (int64_t i = 0; i < 3; ++i) {
          const float coefficient = product.coefficients[i];
          if (coefficient != 0) *to += coefficient * from[(product.tap + i) * kw + x];
        }
      }
    }
  }
}

}  // namespace

PackedPlanes PackPlanes(const RowGeometry& g, const ConvWeights& weights) {
  const int64_t channels = g.workload.oc;
  const int64_t floats = g.vector_floats, taps = g.taps();
  const int64_t vectors = (channels + floats - 1) / floats;
  const int64_t plane = PlaneWeights(g) * floats;
  PackedPlanes packed;
  packed.weights = AlignedBuffer(vectors * plane * sizeof(float));
  packed.bias = AlignedBuffer(vectors * floats * sizeof(float));
  for (int64_t channel = 0; channel < channels; ++channel) {
    float* to = packed.weights.floats() + channel / floats * plane + channel % floats;
    const float* from = weights.weights + channel * taps;
    for (int64_t tap = 0; tap < taps; ++tap) to[tap * floats] = from[tap];
    if (g.config.pairs) PackPairs(g, from, to + taps * floats);
  }
  if (weights.bias != nullptr) std::copy_n(weights.bias, channels, packed.bias.floats());
  return packed;
}

#ifdef TILESMITH_X86

namespace {

// A task computes the rows of one row block for `vectors` vectors of channels of one image.
class DepthwiseKernel : public ConvKernel {
 public:
  DepthwiseKernel(Geometry geometry, const CpuInfo& cpu, const ConvWeights& weights)
      : geometry_(std::move(geometry)),
        packed_(PackPlanes(geometry_.rows, weights)),
        code_(geometry_.rows, cpu,
              2 * 2 * (EstimateCodeBytes(geometry_.rows, geometry_.codes) + kFixedBytes)) {
    full_.code = code_.Emit(geometry_.codes, 0);
    if (geometry_.lanes > 0) partial_.code = code_.Emit(geometry_.codes, geometry_.lanes);
    code_.Finish();
    Link(full_);
    if (geometry_.lanes > 0) Link(partial_);
  }

  int64_t Tasks(int) const override {
    return geometry_.rows.workload.mb * geometry_.vector_blocks() * geometry_.row_blocks();
  }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const int64_t row_blocks = geometry_.row_blocks(), vector_blocks = geometry_.vector_blocks();
    for (int64_t task = range.begin; task < range.end; ++task) {
      RunTask(args, task / row_blocks / vector_blocks, task / row_blocks % vector_blocks, task % row_blocks);
    }
  }

  std::vector<CodeBlob> Code() const override {
    return {{"depthwise " + WorkloadToString(geometry_.rows.workload), {code_.getCode(), code_.getSize()}}};
  }
  std::span<const float> PackedWeights() const override {
    return {packed_.weights.floats(), packed_.weights.bytes() / sizeof(float)};
  }

 private:
  static constexpr int64_t kFixedBytes = 4096;  // prologue, constants, jumps

  // A kernel and, for each row block, its steps.
  struct Variant {
    PlaneCode code;
    PlaneKernel kernel = nullptr;
    std::vector<std::vector<RowStep>> steps;
  };

  void Link(Variant& variant) {
    variant.kernel =
        reinterpret_cast<PlaneKernel>(const_cast<uint8_t*>(code_.getCode()) + variant.code.kernel);
    for (int64_t block = 0; block < geometry_.row_blocks(); ++block) {
      variant.steps.push_back(code_.Steps(geometry_.Groups(block), geometry_.codes, variant.code));
    }
  }

  void RunTask(const KernelArgs& args, int64_t image, int64_t vector_block, int64_t row_block) const {
    const int64_t first = vector_block * geometry_.rows.config.vectors;
    const int64_t last = std::min(geometry_.vectors, first + geometry_.rows.config.vectors);
    const int64_t full = geometry_.lanes > 0 ? geometry_.vectors - 1 : geometry_.vectors;
    // The kernel steps evenly from vector to vector: over blocks of one vector, or within a block.
    const int64_t per_block = geometry_.vectors_per_block;
    for (int64_t v = first; v < std::min(last, full);) {
      const int64_t end = per_block == 1 ? full : (v / per_block + 1) * per_block;
      const int64_t count = std::min({last, full, end}) - v;
      RunPlanes(args, full_, {image, v, count}, row_block);
      v += count;
    }
    if (last > full) RunPlanes(args, partial_, {image, full, 1}, row_block);
    if (last == geometry_.vectors) FillPadding(args, image, row_block);
  }

  // Vectors of nothing but padding channels.
  void FillPadding(const KernelArgs& args, int64_t image, int64_t row_block) const {
    const RowGeometry& rows = geometry_.rows;
    constexpr auto kBytes = static_cast<int64_t>(sizeof(float));
    const int64_t first = row_block * rows.config.rows * rows.workload.ow;
    const int64_t last = std::min(rows.workload.oh, (row_block + 1) * rows.config.rows) * rows.workload.ow;
    for (int64_t v = geometry_.vectors; v < geometry_.vectors + geometry_.padding_vectors; ++v) {
      float* plane =
          args.output.data + image * args.output.batch_stride + PlaneOffset(v, geometry_.out_block_bytes);
      for (int64_t pixel = first; pixel < last; ++pixel)
        std::fill_n(plane + pixel * rows.out_pixel_bytes / kBytes, rows.vector_floats, 0.0F);
    }
  }

  // In floats, of vector `v` of channels, from the image.
  int64_t PlaneOffset(int64_t v, int64_t block_bytes) const {
    const int64_t per_block = geometry_.vectors_per_block;
    return v / per_block * block_bytes / static_cast<int64_t>(sizeof(float)) +
           v % per_block * geometry_.rows.vector_floats;
  }

  struct Planes {
    int64_t image, first, count;
  };

  void RunPlanes(const KernelArgs& args, const Variant& variant, const Planes& planes,
                 int64_t row_block) const {
    const RowGeometry& rows = geometry_.rows;
    const int64_t out = PlaneOffset(planes.first, geometry_.out_block_bytes);
    const bool own_block = geometry_.vectors_per_block == 1;
    PlaneArgs plane_args;
    plane_args.source = args.inputs[0].data + planes.image * args.inputs[0].batch_stride +
                        PlaneOffset(planes.first, geometry_.in_block_bytes);
    plane_args.output = args.output.data + planes.image * args.output.batch_stride + out;
    if (rows.workload.post.sum)
      plane_args.residual = args.inputs[1].data + planes.image * args.inputs[1].batch_stride + out;
    plane_args.weights = packed_.weights.floats() + planes.first * PlaneWeights(rows) * rows.vector_floats;
    plane_args.bias = packed_.bias.floats() + planes.first * rows.vector_floats;
    plane_args.source_step = own_block ? geometry_.in_block_bytes : rows.vector_bytes();
    plane_args.output_step = own_block ? geometry_.out_block_bytes : rows.vector_bytes();
    plane_args.planes = planes.count;
    const std::vector<RowStep>& steps = variant.steps[row_block];
    plane_args.first_step = steps.data();
    plane_args.last_step = steps.data() + steps.size();
    variant.kernel(&plane_args);
  }

  Geometry geometry_;
  PackedPlanes packed_;
  PlaneGenerator code_;
  Variant full_, partial_;
};

}  // namespace

std::unique_ptr<ConvKernel> BuildDepthwiseKernel(Geometry geometry, const CpuInfo& cpu,
                                                 const ConvWeights& weights) {
  return std::make_unique<DepthwiseKernel>(std::move(geometry), cpu, weights);
}

#else

std::unique_ptr<ConvKernel> BuildDepthwiseKernel(Geometry, const CpuInfo&, const ConvWeights&) {
  TILESMITH_CHECK(false, "the depthwise template generates x86 code");
}

#endif  // TILESMITH_X86

}  // namespace tilesmith::depthwise
