#include "templates/direct/code/row_kernels.h"

#include <algorithm>

#include "layouts/base/check.h"
#include "templates/base/image_strides.h"

namespace tilesmith::direct {
namespace {

using code::Address;
using code::General;
using code::Label;
using code::Reg;
using code::Vec;

// General registers by purpose.
const Reg kArgs = General(0);
const Reg kWeights = General(2);
const Reg kOutput = General(3);
const Reg kResidual = General(4);
const Reg kRowsLeft = General(5);
const Reg kBlocksLeft = General(7);
const Reg kBlockOutput = kBlocksLeft;  // before and after that loop
const Reg kSourceNow = General(8);
const Reg kWeightsNow = General(11);
const Reg kElementUnit = General(12);
const Reg kKernelRows = General(13);
const Reg kTilesLeft = General(14);
const Reg kSource = General(9);
const Reg kBias = General(1);
const Reg kRowBytes = General(6);  // while products are added
const Reg kUnrollsLeft = General(10);

// What a step of input channels takes of the input: a float or a pair of bf16.
constexpr int64_t kStepBytes = 4;

constexpr int kSaved = 6;

}  // namespace

RowGenerator::RowGenerator(const Schedule& schedule, const Target& cpu, size_t buffer_bytes)
    : VectorCode(cpu, buffer_bytes), schedule_(schedule) {}

template <typename Visit>
void RowGenerator::ForEachVector(const Reg& start, int first, int last, const Visit& visit) {
  const size_t next_block =
      start == kResidual ? offsetof(RowArgs, next_residual_block) : offsetof(RowArgs, next_out_block);
  int64_t blocks = 0;
  for (int v = first; v < last; ++v) {
    const RowVariant::Place& place = variant_->places[v];
    if (place.blocks > 0 && blocks == 0) Move(kBlockOutput, start);
    for (; blocks < place.blocks; ++blocks) Add(kBlockOutput, At(kArgs, next_block));
    visit(v, blocks == 0 ? start : kBlockOutput, place.bytes);
  }
}

size_t RowGenerator::Emit(const RowVariant& variant) {
  variant_ = &variant;
  const size_t start = Begin(kSaved);
  Load(kSource, At(kArgs, offsetof(RowArgs, source)));
  Load(kWeights, At(kArgs, offsetof(RowArgs, weights)));
  Load(kOutput, At(kArgs, offsetof(RowArgs, output)));
  Load(kResidual, At(kArgs, offsetof(RowArgs, residual)));
  Load(kBias, At(kArgs, offsetof(RowArgs, bias)));
  Load(kKernelRows, At(kArgs, offsetof(RowArgs, kernel_rows)));
  LoadElementUnit(kElementUnit);
  if (!masks_in_vectors() && variant.chunk.partial_lanes > 0)
    LoadMask(variant.chunk.partial_lanes, Vector(0));
  if (schedule_.config.factors == Factors::kBf16) PreparePairs();
  EmitRow();
  End();
  variant_ = nullptr;
  return start;
}

void RowGenerator::EmitRow() {
  const int64_t stride = schedule_.workload.sw;
  for (size_t i = 0; i < schedule_.tiles.size(); ++i) {
    const TileRun& tile = schedule_.tiles[i];
    Label again;
    if (tile.count > 1) {
      Load(kTilesLeft, At(kArgs, offsetof(RowArgs, tile_counts)));
      Load(kTilesLeft, At(kTilesLeft, static_cast<int64_t>(i * sizeof(int64_t))));
      Align(16);
      Bind(again);
    }
    EmitTile(tile);
    Add(kSource, tile.width * stride * schedule_.in_pixel_bytes);
    Add(kOutput, tile.width * schedule_.out_pixel_bytes);
    if (schedule_.workload.post.sum) Add(kResidual, tile.width * schedule_.out_pixel_bytes);
    if (tile.count > 1) {
      CountDown(kTilesLeft, again);
    }
  }
}

void RowGenerator::EmitTile(const TileRun& tile) {
  positions_ = tile.width;
  plan_ = PlanRegisters(variant_->chunk.vectors, positions_,
                        variant_->chunk.vectors == 1 && schedule_.config.broadcast == Broadcast::kMixed
                            ? Broadcast::kRegister
                            : schedule_.config.broadcast,
                        registers());
  TILESMITH_CHECK(plan_.fits);
  next_broadcast_ = 0;
  EmitStart();
  Move(kSourceNow, kSource);
  Move(kWeightsNow, kWeights);
  Load(kRowBytes, At(kArgs, offsetof(RowArgs, next_row)));
  Label done;
  JumpIfZero(kKernelRows, done);
  EmitBlocks(tile);
  Bind(done);
  EmitFinish();
}

void RowGenerator::EmitStart() {
  const PostOps& post = schedule_.workload.post;
  const bool goes_on = !variant_->first && !schedule_.config.sums_passes;
  if (!goes_on) {
    for (int v = 0; v < variant_->chunk.vectors; ++v) {
      for (int w = 0; w < positions_; ++w) {
        if (variant_->first && post.bias) {
          Load(Accumulator(v, w), At(kBias, v * vector_bytes()));
        } else {
          Zero(Accumulator(v, w));
        }
      }
    }
  }
  if (!goes_on && !(variant_->first && post.sum)) return;
  const Vec mask = Vector(plan_.first_broadcast);
  const Reg& from = goes_on ? kOutput : kResidual;
  ForEachVector(from, 0, variant_->chunk.vectors, [&](int v, const Reg& base, int64_t bytes) {
    const bool partial = schedule_.out.is_nhwc() && IsPartial(v);
    if (partial && masks_in_vectors()) LoadMask(variant_->chunk.partial_lanes, mask);
    for (int w = 0; w < positions_; ++w) {
      const Address stored = At(base, bytes + w * schedule_.out_pixel_bytes);
      const Vec acc = Accumulator(v, w);
      goes_on ? LoadStored(schedule_.out.type(), acc, stored, partial, mask)
              : AddStored(acc, stored, partial);
    }
  });
}

void RowGenerator::AddStored(const Vec& acc, const Address& stored, bool partial) {
  const Vec mask = Vector(plan_.first_broadcast), loaded = Vector(plan_.first_broadcast + 1);
  const DataType type = schedule_.out.type();
  if (type == DataType::kF32 && !partial) return Add(acc, acc, stored);
  LoadStored(type, loaded, stored, partial, mask);
  Add(acc, acc, loaded);
}

void RowGenerator::EmitBlocks(const TileRun& tile) {
  const Pass& pass = variant_->pass;
  const bool tail = pass.tail_channels > 0;
  if (pass.blocks > 0)
    Repeat(pass.blocks, kBlocksLeft,
           [&] { EmitBlock(tile, pass.block_channels, pass.blocks == 1 && !tail); });
  if (tail) EmitBlock(tile, pass.tail_channels, true);
}

// All channels of one block. Leaves kSourceNow at the next block's first channel, but for the last one.
void RowGenerator::EmitBlock(const TileRun& tile, int64_t channels, bool last) {
  const DirectConfig& config = schedule_.config;
  const int64_t steps = config.Steps(channels), half = channels % config.step_channels();
  const int64_t unroll = std::min(config.ic_unroll, steps);
  const int64_t times = (steps - half) / unroll, rest = steps - times * unroll;
  if (times > 0) Repeat(times, kUnrollsLeft, [&] { EmitChannels(tile, unroll, false); });
  if (rest > 0) EmitChannels(tile, rest, half > 0);
  if (last) return;
  Subtract(kSourceNow, steps * kStepBytes);
  Add(kSourceNow, At(kArgs, offsetof(RowArgs, next_block)));
}

void RowGenerator::EmitChannels(const TileRun& tile, int64_t steps, bool half) {
  if (schedule_.workload.kh == 1) {
    EmitSteps(tile, steps, half);
    Add(kSourceNow, steps * kStepBytes);
    return;
  }
  for (int64_t step = 0; step < steps; ++step) {
    Label next;
    Move(kRowsLeft, kKernelRows);
    Align(16);
    Bind(next);
    EmitSteps(tile, 1, half && step + 1 == steps);
    Add(kSourceNow, kRowBytes);
    CountDown(kRowsLeft, next);
    Add(kSourceNow, At(kArgs, offsetof(RowArgs, next_channel)));
    Add(kWeightsNow, At(kArgs, offsetof(RowArgs, skipped_weights)));
  }
}

void RowGenerator::LoadInput(const Vec& element, int64_t offset, bool half) {
  const Address from = ElementAt(kSourceNow, offset, kElementUnit);
  half ? LoadHalfPair(element, from) : LoadElement(element, from);
}

void RowGenerator::StoreOutput(const Address& to, const Vec& acc, bool partial) {
  StoreAs(schedule_.out.type(), to, acc, partial, Vector(plan_.first_broadcast),
          Vector(plan_.first_broadcast + 1));
}

void RowGenerator::EmitSteps(const TileRun& tile, int64_t steps, bool half) {
  const ConvWorkload& w = schedule_.workload;
  const int vectors = variant_->chunk.vectors;
  const int64_t ahead = schedule_.config.prefetch, stored = WeightVectorBytes();
  for (int64_t step = 0; step < steps; ++step) {
    for (int64_t column = 0; column < w.kw; ++column) {
      const int64_t base = (step * w.kw + column) * vectors * stored;
      const auto weights_at = [&](int v) { return At(kWeightsNow, base + v * stored); };
      for (int v = 0; v < plan_.weights; ++v) {
        const Vec weights = Vector(plan_.first_weight + v);
        LoadStored(schedule_.config.weight_type, weights, weights_at(v), false, weights);
      }
      for (int v = 0; ahead > 0 && v < vectors; ++v) {
        Prefetch(At(kWeightsNow, base + (v + ahead) * stored));
      }
      for (int position = 0; position < positions_; ++position) {
        if (!IsInside(w, schedule_.iw, tile, position, column)) continue;
        const int64_t in_column = position * w.sw - w.pw + column * (w.dw + 1);
        const int64_t offset = in_column * schedule_.in_pixel_bytes + step * kStepBytes;
        if (plan_.broadcasts == 0) {
          for (int v = 0; v < vectors; ++v) {
            AddProduct(Accumulator(v, position), Vector(plan_.first_weight + v),
                       ElementAt(kSourceNow, offset, kElementUnit));
          }
          continue;
        }
        const Vec element = Vector(plan_.first_broadcast + next_broadcast_);
        next_broadcast_ = (next_broadcast_ + 1) % plan_.broadcasts;
        LoadInput(element, offset, half && step + 1 == steps);
        for (int v = 0; v < plan_.weights; ++v) {
          AddProduct(Accumulator(v, position), Vector(plan_.first_weight + v), element);
        }
        for (int v = plan_.weights; v < vectors; ++v)
          AddProduct(Accumulator(v, position), weights_at(v), element);
      }
    }
  }
  Add(kWeightsNow, steps * w.kw * vectors * stored);
}

void RowGenerator::EmitFinish() {
  const Activation& activation = schedule_.workload.post.activation;
  const bool nhwc = schedule_.out.is_nhwc();
  const Vec mask = Vector(plan_.first_broadcast);
  const int held = plan_.first_broadcast + kEpilogueScratch;
  if (variant_->last) HoldConstants(activation, held, registers() - held);
  const int vectors = variant_->chunk.vectors;
  const auto at = [&](const Reg& base, int64_t bytes, int w) {
    return At(base, bytes + w * schedule_.out_pixel_bytes);
  };
  ForEachVector(kOutput, 0, vectors, [&](int v, const Reg& base, int64_t bytes) {
    const bool partial = IsPartial(v);
    if (partial && nhwc && masks_in_vectors()) LoadMask(variant_->chunk.partial_lanes, mask);
    for (int w = 0; w < positions_; ++w) {
      const Vec acc = Accumulator(v, w);
      if (!variant_->first && schedule_.config.sums_passes)
        AddStored(acc, at(base, bytes, w), partial && nhwc);
      if (variant_->last) Apply(activation, acc, Vector(plan_.first_broadcast + 1));
      if (partial && nhwc) {
        StoreOutput(at(base, bytes, w), acc, true);
        continue;
      }
      // Whatever the activation is of 0, a NaN or infinity has met padding's zero weights there.
      if (partial && variant_->last) ClearLanesFrom(variant_->chunk.partial_lanes, acc);
      StoreOutput(at(base, bytes, w), acc, false);
    }
  });
  if (!variant_->last || variant_->chunk.zero_vectors == 0) return;
  const Vec zero = Vector(plan_.first_broadcast);
  Zero(zero);
  ForEachVector(kOutput, vectors, vectors + variant_->chunk.zero_vectors,
                [&](int, const Reg& base, int64_t bytes) {
                  for (int w = 0; w < positions_; ++w) StoreOutput(at(base, bytes, w), zero, false);
                });
}

namespace {

RowVariant VariantOf(const Schedule& g, const Chunk& chunk, size_t pass) {
  RowVariant variant;
  variant.chunk = chunk;
  variant.chunk.group = variant.chunk.first_channel = 0;
  variant.pass = g.passes[pass];
  variant.pass.first_channel = 0;
  variant.first = pass == 0;
  variant.last = pass + 1 == g.passes.size();
  const int64_t block = g.out.BlockFor(g.workload.oc);
  for (int v = 0; v < chunk.vectors + chunk.zero_vectors; ++v) {
    const int64_t channel = chunk.first_channel + static_cast<int64_t>(v) * g.vector_floats;
    variant.places.push_back({channel / block - chunk.first_channel / block,
                              (channel % block - chunk.first_channel % block) * g.config.out_bytes()});
  }
  return variant;
}

// All that the code depends on.
PartKey CodeKey(const Schedule& g, const Target& cpu, const std::vector<RowVariant>& variants) {
  const ConvWorkload& w = g.workload;
  const DirectConfig& c = g.config;
  PartKey key("direct rows 3");
  key.Add(cpu.isa, w.kh > 1, w.kw, w.sw, w.pw, w.dw, w.post.bias, w.post.sum)
      .Add(ActivationToString(w.post.activation))
      .Add(c.broadcast, c.ic_unroll, c.prefetch, c.factors, c.in_type, c.out_type, c.weight_type,
           c.sums_passes)
      .Add(g.vector_floats, g.in_pixel_bytes, g.out_pixel_bytes, g.out.is_nhwc());
  AddTileKinds(w, g.iw, g.tiles, key);
  for (const RowVariant& v : variants) {
    key.Add(v.chunk.vectors, v.chunk.zero_vectors, v.chunk.partial_lanes, v.first, v.last, v.pass.blocks,
            v.pass.block_channels, v.pass.tail_channels);
    for (const RowVariant::Place& place : v.places) key.Add(place.blocks, place.bytes);
  }
  return key;
}

bool SameCode(const RowVariant& a, const RowVariant& b) {
  return a.places == b.places && a.pass == b.pass && a.first == b.first && a.last == b.last &&
         a.chunk.vectors == b.chunk.vectors && a.chunk.partial_lanes == b.chunk.partial_lanes;
}

}  // namespace

RowKernels::RowKernels(const Schedule& g, const Target& cpu, KernelParts* parts)
    : passes_(g.passes.size()),
      next_row_((g.workload.dh + 1) * g.in_row_bytes),
      next_out_block_(g.out_block_bytes) {
  for (const TileRun& tile : g.tiles) tile_counts_.push_back(tile.count);
  std::vector<RowVariant> variants;
  std::vector<size_t> variant_of;  // at chunk * passes + pass
  for (const Chunk& chunk : g.chunks) {
    for (size_t pass = 0; pass < passes_; ++pass) {
      RowVariant variant = VariantOf(g, chunk, pass);
      const auto found = std::find_if(variants.begin(), variants.end(),
                                      [&](const RowVariant& other) { return SameCode(other, variant); });
      variant_of.push_back(found - variants.begin());
      if (found == variants.end()) variants.push_back(std::move(variant));
    }
  }
  code_ = NextCode(
      parts,
      [&](std::vector<size_t>& starts) {
        constexpr int64_t kFixedBytes = 4096;  // prologues, constants, loops
        const int64_t estimate = EstimateCodeBytes(g.workload, g.config, g.vector_floats) + kFixedBytes;
        auto code = std::make_unique<RowGenerator>(g, cpu, variants.size() * estimate * 2);
        for (const RowVariant& variant : variants) starts.push_back(code->Emit(variant));
        code->Finish();
        return code;
      },
      [&] { return CodeKey(g, cpu, variants); });
  kernels_.reserve(variant_of.size());
  for (const size_t index : variant_of) kernels_.push_back(code_.Get<RowKernel>(index));
}

RowArgs RowKernels::Args() const {
  RowArgs args;
  args.next_row = next_row_;
  args.next_channel = kStepBytes;
  args.next_out_block = args.next_residual_block = next_out_block_;
  args.tile_counts = tile_counts_.data();
  return args;
}

namespace {

Schedule ProductSchedule(const ConvWorkload& product, const DirectConfig& config, int64_t m_positions,
                         int vector_floats) {
  Schedule schedule = MakeSchedule(product, config, vector_floats);
  schedule.out_block_bytes = m_positions * schedule.out_pixel_bytes;
  return schedule;
}

}  // namespace

RowProduct::RowProduct(const ConvWorkload& product, const DirectConfig& config, int64_t m_positions,
                       const Target& cpu, KernelParts* parts)
    : schedule_(ProductSchedule(product, config, m_positions, cpu.vector_floats())),
      kernels_(schedule_, cpu, parts) {}

void RowProduct::Run(size_t chunk_index, const Operands& operands) const {
  const Chunk& chunk = schedule_.chunks[chunk_index];
  RowArgs args = kernels_.Args();
  args.output = operands.m;
  args.kernel_rows = 1;
  args.next_block = operands.v_vector_bytes;
  for (size_t i = 0; i < schedule_.passes.size(); ++i) {
    const int64_t channel = schedule_.passes[i].first_channel;
    // Passes are of whole blocks, which are vectors.
    args.source = reinterpret_cast<const float*>(operands.v +
                                                 channel / schedule_.vector_floats * operands.v_vector_bytes);
    args.weights = reinterpret_cast<const float*>(operands.u + schedule_.config.Steps(channel) *
                                                                   chunk.vectors * schedule_.vector_floats *
                                                                   schedule_.config.weight_word_bytes());
    kernels_.At(chunk_index, i)(&args);
  }
}

}  // namespace tilesmith::direct
