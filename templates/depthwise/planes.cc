#include "templates/depthwise/planes.h"

#include <algorithm>

#include "layouts/base/check.h"
#include "templates/depthwise/plane_generator.h"
#include "templates/depthwise/row_pairs.h"
#include "templates/image_strides.h"

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

class GeneratedPlanes : public Planes {
 public:
  GeneratedPlanes(const Geometry& geometry, const CpuInfo& cpu, const ConvWeights& weights)
      : geometry_(geometry),
        packed_(PackPlanes(geometry.rows, weights)),
        code_(geometry.rows, cpu, 4 * (EstimateCodeBytes(geometry.rows, geometry.codes) + kFixedBytes)) {
    full_.code = code_.Emit(geometry_.codes, 0);
    if (geometry_.lanes > 0) partial_.code = code_.Emit(geometry_.codes, geometry_.lanes);
    code_.Finish();
    Link(full_);
    if (geometry_.lanes > 0) Link(partial_);
  }

  void Run(const Image& image, int64_t first, int64_t count, int64_t row_block) const override {
    const int64_t last = first + count;
    const int64_t full = geometry_.lanes > 0 ? geometry_.vectors - 1 : geometry_.vectors;
    for (int64_t v = first; v < std::min(last, full);) {
      const int64_t end = std::min({last, full, EvenUntil(geometry_.in, v), EvenUntil(geometry_.out, v)});
      RunEven(image, full_, {v, end - v}, row_block);
      v = end;
    }
    if (last > full) RunEven(image, partial_, {full, 1}, row_block);
    if (last == geometry_.vectors) FillPadding(image, row_block);
  }

  std::span<const uint8_t> Code() const override { return {code_.getCode(), code_.getSize()}; }
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

  struct Vectors {
    int64_t first, count;
  };

  void Link(Variant& variant) {
    variant.kernel =
        reinterpret_cast<PlaneKernel>(const_cast<uint8_t*>(code_.getCode()) + variant.code.kernel);
    for (int64_t block = 0; block < geometry_.row_blocks(); ++block) {
      variant.steps.push_back(code_.Steps(geometry_.Groups(block), geometry_.codes, variant.code));
    }
  }

  // The kernel steps evenly from vector to vector: over blocks of one vector, or within a block.
  int64_t EvenUntil(const ChannelStrides& strides, int64_t v) const {
    const int64_t per_block = strides.vectors_per_block;
    return per_block == 1 ? geometry_.vectors : (v / per_block + 1) * per_block;
  }

  int64_t OffsetBytes(const ChannelStrides& strides, int64_t v) const {
    return v / strides.vectors_per_block * strides.block_bytes +
           v % strides.vectors_per_block * geometry_.rows.vector_bytes();
  }

  int64_t StepBytes(const ChannelStrides& strides) const {
    return strides.vectors_per_block == 1 ? strides.block_bytes : geometry_.rows.vector_bytes();
  }

  void RunEven(const Image& image, const Variant& variant, const Vectors& vectors, int64_t row_block) const {
    const RowGeometry& rows = geometry_.rows;
    const int64_t out = OffsetBytes(geometry_.out, vectors.first);
    PlaneArgs args;
    args.source = BytesPast(image.source, OffsetBytes(geometry_.in, vectors.first));
    args.output = BytesPast(image.output, out);
    if (rows.workload.post.sum) args.residual = BytesPast(image.residual, out);
    args.weights = packed_.weights.floats() + vectors.first * PlaneWeights(rows) * rows.vector_floats;
    args.bias = packed_.bias.floats() + vectors.first * rows.vector_floats;
    args.source_step = StepBytes(geometry_.in);
    args.output_step = StepBytes(geometry_.out);
    args.planes = vectors.count;
    const std::vector<RowStep>& steps = variant.steps[row_block];
    args.first_step = steps.data();
    args.last_step = steps.data() + steps.size();
    variant.kernel(&args);
  }

  // Vectors of nothing but padding channels.
  void FillPadding(const Image& image, int64_t row_block) const {
    const RowGeometry& rows = geometry_.rows;
    const int64_t first = row_block * rows.config.rows;
    const int64_t last = std::min(rows.workload.oh, first + rows.config.rows);
    for (int64_t v = geometry_.vectors; v < geometry_.vectors + geometry_.padding_vectors; ++v) {
      for (int64_t row = first; row < last; ++row) {
        for (int64_t column = 0; column < rows.workload.ow; ++column) {
          const int64_t offset =
              OffsetBytes(geometry_.out, v) + row * rows.out_row_bytes + column * rows.out_pixel_bytes;
          std::fill_n(BytesPast(image.output, offset), rows.vector_floats, 0.0F);
        }
      }
    }
  }

  const Geometry& geometry_;
  PackedPlanes packed_;
  PlaneGenerator code_;
  Variant full_, partial_;
};

}  // namespace

std::unique_ptr<Planes> BuildPlanes(const Geometry& geometry, const CpuInfo& cpu,
                                    const ConvWeights& weights) {
  return std::make_unique<GeneratedPlanes>(geometry, cpu, weights);
}

#else

std::unique_ptr<Planes> BuildPlanes(const Geometry&, const CpuInfo&, const ConvWeights&) {
  TILESMITH_CHECK(false, "the depthwise template generates x86 code");
}

#endif  // TILESMITH_X86

}  // namespace tilesmith::depthwise
