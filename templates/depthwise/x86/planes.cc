#include "templates/depthwise/x86/planes.h"

#include <algorithm>
#include <cstring>

#include "templates/base/image_strides.h"
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

int64_t OffsetBytes(const ChannelStrides& strides, int64_t v) {
  return v / strides.vectors_per_block * strides.block_bytes +
         v % strides.vectors_per_block * strides.vector_bytes;
}

int64_t StepBytes(const ChannelStrides& strides) {
  return strides.vectors_per_block == 1 ? strides.block_bytes : strides.vector_bytes;
}

constexpr int64_t kFixedBytes = 4096;  // prologue, constants, jumps

}  // namespace

Planes::Planes(const Schedule& schedule, const Target& cpu, const ConvWeights& weights)
    : schedule_(schedule),
      code_(schedule.rows, cpu, 4 * (EstimateCodeBytes(schedule.rows, schedule.codes) + kFixedBytes)) {
  Pack(weights);
  full_.code = code_.Emit(schedule_.codes, 0);
  if (schedule_.lanes > 0) partial_.code = code_.Emit(schedule_.codes, schedule_.lanes);
  code_.Finish();
  Link(full_);
  if (schedule_.lanes > 0) Link(partial_);
}

void Planes::Pack(const ConvWeights& weights) {
  const RowGeometry& g = schedule_.rows;
  const int64_t channels = g.workload.oc;
  const int64_t floats = g.vector_floats, taps = g.taps();
  const int64_t vectors = (channels + floats - 1) / floats;
  const int64_t plane = PlaneWeights(g) * floats;
  AlignedBuffer packed(vectors * plane * sizeof(float));
  bias_ = AlignedBuffer(vectors * floats * sizeof(float));
  for (int64_t channel = 0; channel < channels; ++channel) {
    float* to = packed.floats() + channel / floats * plane + channel % floats;
    const float* from = weights.weights + channel * taps;
    for (int64_t tap = 0; tap < taps; ++tap) to[tap * floats] = from[tap];
    if (g.config.pairs) PackPairs(g, from, to + taps * floats);
  }
  weights_ = Pooled(std::move(packed), weights.pool);
  if (weights.bias != nullptr) std::copy_n(weights.bias, channels, bias_.floats());
}

void Planes::Run(const Image& image, int64_t first, int64_t count, int64_t row_block) const {
  const int64_t last = first + count;
  const int64_t full = schedule_.lanes > 0 ? schedule_.vectors - 1 : schedule_.vectors;
  for (int64_t v = first; v < std::min(last, full);) {
    const int64_t end = std::min({last, full, EvenUntil(schedule_.in, v), EvenUntil(schedule_.out, v)});
    RunEven(image, full_, {v, end - v}, row_block);
    v = end;
  }
  if (last > full) RunEven(image, partial_, {full, 1}, row_block);
  if (last == schedule_.vectors) FillPadding(image, row_block);
}

void Planes::Link(Variant& variant) {
  variant.kernel = reinterpret_cast<PlaneKernel>(const_cast<uint8_t*>(code_.getCode()) + variant.code.kernel);
  for (int64_t block = 0; block < schedule_.row_blocks(); ++block) {
    variant.steps.push_back(code_.Steps(schedule_.Groups(block), schedule_.codes, variant.code));
  }
}

// The kernel steps evenly from vector to vector: over blocks of one vector, or within a block.
int64_t Planes::EvenUntil(const ChannelStrides& strides, int64_t v) const {
  const int64_t per_block = strides.vectors_per_block;
  return per_block == 1 ? schedule_.vectors : (v / per_block + 1) * per_block;
}

void Planes::RunEven(const Image& image, const Variant& variant, const Vectors& vectors,
                     int64_t row_block) const {
  const RowGeometry& rows = schedule_.rows;
  const int64_t out = OffsetBytes(schedule_.out, vectors.first);
  PlaneArgs args;
  args.source = BytesPast(image.source, OffsetBytes(schedule_.in, vectors.first));
  args.output = BytesPast(image.output, out);
  if (rows.workload.post.sum) args.residual = BytesPast(image.residual, out);
  args.weights = weights_.floats() + vectors.first * PlaneWeights(rows) * rows.vector_floats;
  args.bias = bias_.floats() + vectors.first * rows.vector_floats;
  args.source_step = StepBytes(schedule_.in);
  args.output_step = StepBytes(schedule_.out);
  args.planes = vectors.count;
  const std::vector<RowStep>& steps = variant.steps[row_block];
  args.first_step = steps.data();
  args.last_step = steps.data() + steps.size();
  variant.kernel(&args);
}

// Vectors of nothing but padding channels.
void Planes::FillPadding(const Image& image, int64_t row_block) const {
  const RowGeometry& rows = schedule_.rows;
  const int64_t first = row_block * rows.config.rows;
  const int64_t last = std::min(rows.workload.oh, first + rows.config.rows);
  for (int64_t v = schedule_.vectors; v < schedule_.vectors + schedule_.padding_vectors; ++v) {
    for (int64_t row = first; row < last; ++row) {
      for (int64_t column = 0; column < rows.workload.ow; ++column) {
        const int64_t offset =
            OffsetBytes(schedule_.out, v) + row * rows.out_row_bytes + column * rows.out_pixel_bytes;
        std::memset(BytesPast(image.output, offset), 0, static_cast<size_t>(schedule_.out.vector_bytes));
      }
    }
  }
}

}  // namespace tilesmith::depthwise
