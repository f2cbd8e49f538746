#include "templates/depthwise/code/planes.h"

#include <algorithm>
#include <cstring>

#include "layouts/base/check.h"
#include "templates/base/image_strides.h"
#include "templates/depthwise/row_pairs.h"

namespace tilesmith::depthwise {
namespace {

using code::Address;
using code::General;
using code::Label;
using code::Operand;
using code::Reg;
using code::Vec;

// General registers by purpose.
const Reg kScratch = General(6);  // between tiles
const Reg kArgs = General(0);
const Reg kSource = General(1);  // of the tile
const Reg kOutput = General(3);
const Reg kResidualFromOutput = General(4);
const Reg kWeights = General(5);  // of the plane
const Reg kBias = General(7);
const Reg kStep = General(8);
const Reg kRowsLeft = General(2);
const Reg kTilesLeft = General(9);
const Reg kPlaneSource = General(11);
const Reg kPlaneOutput = General(12);
const Reg kPlanesLeft = General(13);
const Reg kWeightsNow = General(14);  // of the kernel row, in looped code
const Reg kSourceNow = General(10);
// Of code that is not looped: what lies between input rows, and two of them.
const Reg kRowBytes = kRowsLeft;
const Reg kThirdRow = kWeightsNow;
const Reg kSixthRow = kSourceNow;
const Reg kLoopedRowBytes = kScratch;  // of looped code
const Reg kOutputRow = kWeightsNow;    // behind the taps
constexpr int kSaved = 6;

// An input row of a tile as a pointer to one before it and so many times the bytes of a row; -1 where there
// is none.
struct RowReach {
  int64_t from, rows;
};
RowReach ReachOf(int64_t row) {
  for (const int64_t from : {0, 3, 6}) {
    for (const int64_t rows : {0, 1, 2, 4, 8})
      if (from + rows == row) return {from, rows};
  }
  return {-1, 0};
}

// Input rows that a code's tiles read, from their first one.
std::vector<int64_t> InputRowsOfCode(const RowGeometry& g, const RowCode& code) {
  const ConvWorkload& w = g.workload;
  std::vector<int64_t> rows;
  if (code.kind == CodeKind::kPair) {
    for (int64_t row = code.valid.front().first; row < code.valid.front().last; ++row) rows.push_back(row);
    return rows;
  }
  for (int64_t r = 0; r < code.rows; ++r) {
    const KernelRows valid = code.kind == CodeKind::kLooped ? KernelRows{0, 1} : code.valid[r];
    for (int64_t y = valid.first; y < valid.last; ++y) rows.push_back(r * w.sh + y * (w.dh + 1));
  }
  return rows;
}

// All that the code depends on.
PartKey CodeKey(const Schedule& schedule, const Target& cpu) {
  const RowGeometry& g = schedule.rows;
  const ConvWorkload& w = g.workload;
  const DepthwiseConfig& c = g.config;
  PartKey key("depthwise planes");
  key.Add(cpu.isa, w.kh, w.kw, w.sh, w.sw, w.pw, w.dh, w.dw, w.post.bias, w.post.sum)
      .Add(ActivationToString(w.post.activation))
      .Add(c.row_tile, c.weights, c.unroll, c.pairs, c.types.in, c.types.out, g.vector_floats, g.registers,
           g.masked, g.in_pixel_bytes, g.out_pixel_bytes, schedule.lanes);
  const bool knows_rows = KnowsRowBytes(g, schedule.codes);
  key.Add(knows_rows ? g.in_row_bytes : 0, knows_rows ? g.out_row_bytes : 0);
  for (const RowCode& code : schedule.codes) {
    key.Add(code.kind, code.rows, code.valid.size());
    for (const KernelRows& rows : code.valid) key.Add(rows.first, rows.last);
    AddTileKinds(w, w.iw, CutColumns(g, code), key);
  }
  return key;
}

}  // namespace

bool KnowsRowBytes(const RowGeometry& geometry, std::span<const RowCode> codes) {
  return std::ranges::any_of(codes, [&](const RowCode& code) {
    return std::ranges::any_of(InputRowsOfCode(geometry, code), [&](int64_t row) {
      const RowReach reach = ReachOf(row);
      return code.kind == CodeKind::kLooped ? reach.from != 0 : reach.from < 0;
    });
  });
}

Address PlaneGenerator::InputAt(const Reg& base, int64_t row, int64_t offset) const {
  if (knows_rows_) return At(base, row * geometry_.in_row_bytes + offset);
  const RowReach reach = ReachOf(row);
  if (base == kSourceNow)
    return row == 0 ? At(base, offset) : At(base, kLoopedRowBytes, static_cast<int>(row), offset);
  const Reg& from = reach.from == 0 ? kSource : reach.from == 3 ? kThirdRow : kSixthRow;
  return reach.rows == 0 ? At(from, offset) : At(from, kRowBytes, static_cast<int>(reach.rows), offset);
}

void PlaneGenerator::EmitRowPointers(const RowCode& code) {
  if (knows_rows_ || code.kind == CodeKind::kLooped) return;
  const std::vector<int64_t> rows = InputRowsOfCode(geometry_, code);
  const auto last_from = [&](int64_t from) {
    return std::ranges::any_of(rows, [&](int64_t row) { return ReachOf(row).from >= from; });
  };
  if (!last_from(3)) return;
  LoadAddress(kThirdRow, At(kSource, kRowBytes, 2));
  Add(kThirdRow, kRowBytes);
  if (!last_from(6)) return;
  LoadAddress(kSixthRow, At(kThirdRow, kRowBytes, 2));
  Add(kSixthRow, kRowBytes);
}

template <typename Visit>
void PlaneGenerator::ForEachOutputRow(const Reg& start, const Visit& visit) {
  visit(0, start);
  for (int64_t row = 1; row < rows_; ++row) {
    if (row == 1) Move(kOutputRow, start);
    Add(kOutputRow, At(kArgs, offsetof(PlaneArgs, output_row)));
    visit(row, kOutputRow);
  }
}

Vec PlaneGenerator::NextTemp() {
  const Vec temp = Vector(plan_.first_temp + next_temp_);
  next_temp_ = (next_temp_ + 1) % plan_.temps;
  return temp;
}

void PlaneGenerator::LoadPixel(const Vec& to, const Address& from) {
  LoadStored(geometry_.config.types.in, to, from, masked(), Mask());
}

PlaneGenerator::PlaneGenerator(const RowGeometry& geometry, std::span<const RowCode> codes, const Target& cpu,
                               size_t buffer_bytes)
    : VectorCode(cpu, buffer_bytes), geometry_(geometry), knows_rows_(KnowsRowBytes(geometry, codes)) {}

void PlaneGenerator::Emit(std::span<const RowCode> codes, int lanes, std::vector<size_t>& starts) {
  lanes_ = lanes;
  runs_ = 0;
  starts.push_back(Begin(kSaved));
  Load(kPlaneSource, At(kArgs, offsetof(PlaneArgs, source)));
  Load(kPlaneOutput, At(kArgs, offsetof(PlaneArgs, output)));
  Load(kWeights, At(kArgs, offsetof(PlaneArgs, weights)));
  Load(kBias, At(kArgs, offsetof(PlaneArgs, bias)));
  Load(kPlanesLeft, At(kArgs, offsetof(PlaneArgs, planes)));
  if (geometry_.workload.post.sum) {
    Load(kResidualFromOutput, At(kArgs, offsetof(PlaneArgs, residual)));
    Subtract(kResidualFromOutput, kPlaneOutput);
  }
  plan_ = plane_plan_ = PlanRegisters(geometry_, codes.front(), 1);
  if (masked()) LoadMask(lanes_, Mask());
  EmitKernel(codes, starts);
  End();
}

// Planes outside, unless tiles hold them, steps inside; a step jumps to its piece, which jumps back.
void PlaneGenerator::EmitKernel(std::span<const RowCode> codes, std::vector<size_t>& starts) {
  Label next_plane, next_step, step_done;
  Bind(next_plane);
  if (!geometry_.planes_in_tiles()) LoadHeldWeights();
  Load(kStep, At(kArgs, offsetof(PlaneArgs, first_step)));
  Bind(next_step);
  Move(kSource, kPlaneSource);
  Move(kOutput, kPlaneOutput);
  Add(kSource, At(kStep, offsetof(RowStep, source)));
  Add(kOutput, At(kStep, offsetof(RowStep, output)));
  JumpTo(At(kStep, offsetof(RowStep, code)));
  for (const RowCode& code : codes) {
    Align(32);
    starts.push_back(Position());
    EmitPiece(code);
    JumpTo(step_done);
  }
  Bind(step_done);
  EmitAdvance(next_plane, next_step);
}

void PlaneGenerator::EmitAdvance(Label& next_plane, Label& next_step) {
  Add(kStep, sizeof(RowStep));
  JumpIfBelow(kStep, At(kArgs, offsetof(PlaneArgs, last_step)), next_step);
  if (!geometry_.planes_in_tiles()) EmitNextPlane(kPlaneSource, kPlaneOutput, next_plane);
}

void PlaneGenerator::EmitNextPlane(const Reg& source, const Reg& output, Label& again) {
  Add(source, At(kArgs, offsetof(PlaneArgs, source_step)));
  Add(output, At(kArgs, offsetof(PlaneArgs, output_step)));
  Add(kWeights, PlaneWeights(geometry_) * vector_bytes());
  Add(kBias, vector_bytes());
  CountDown(kPlanesLeft, again);
}

void PlaneGenerator::LoadHeldWeights() {
  LoadWeights(kWeights, geometry_.config.pairs ? geometry_.taps() : 0,
              {plane_plan_.first_held, plane_plan_.held});
}

void PlaneGenerator::EmitPiece(const RowCode& code) {
  rows_ = code.rows;
  const std::vector<TileRun> tiles = CutColumns(geometry_, code);
  const bool is_looped = code.kind == CodeKind::kLooped;
  if (!knows_rows_ && !is_looped) Load(kRowBytes, At(kArgs, offsetof(PlaneArgs, source_row)));
  for (const TileRun& tile : tiles) {
    Label again;
    const int64_t run = runs_++;
    if (tile.count > 1) {
      Load(kTilesLeft, At(kArgs, offsetof(PlaneArgs, tile_counts)));
      Load(kTilesLeft, At(kTilesLeft, run * static_cast<int64_t>(sizeof(int64_t))));
      Align(32);
      Bind(again);
    }
    geometry_.planes_in_tiles() ? EmitTileOfPlanes(code, tile) : EmitTile(code, tile);
    if (tile.count == 1 && &tile == &tiles.back()) break;
    Add(kSource, tile.width * geometry_.workload.sw * geometry_.in_pixel_bytes);
    Add(kOutput, tile.width * geometry_.out_pixel_bytes);
    if (tile.count > 1) {
      CountDown(kTilesLeft, again);
    }
  }
}

// One plane after the other, and back to the first.
void PlaneGenerator::EmitTileOfPlanes(const RowCode& code, const TileRun& tile) {
  Label next_plane;
  Load(kPlanesLeft, At(kArgs, offsetof(PlaneArgs, planes)));
  Align(32);
  Bind(next_plane);
  LoadHeldWeights();
  EmitTile(code, tile);
  EmitNextPlane(kSource, kOutput, next_plane);
  for (const auto& [at, step] : {std::pair(kSource, offsetof(PlaneArgs, source_step)),
                                 std::pair(kOutput, offsetof(PlaneArgs, output_step))}) {
    Load(kScratch, At(kArgs, offsetof(PlaneArgs, planes)));
    Multiply(kScratch, At(kArgs, step));
    Subtract(at, kScratch);
  }
  Load(kWeights, At(kArgs, offsetof(PlaneArgs, weights)));
  Load(kBias, At(kArgs, offsetof(PlaneArgs, bias)));
}

void PlaneGenerator::EmitTile(const RowCode& code, const TileRun& tile) {
  const ConvWorkload& w = geometry_.workload;
  width_ = tile.width;
  plan_ = PlanRegisters(geometry_, code, width_);
  TILESMITH_CHECK(plan_.fits);
  next_temp_ = 0;
  columns_.clear();
  for (int64_t position = 0; position < width_; ++position) {
    for (int64_t tap = 0; tap < w.kw; ++tap) {
      if (!IsInside(w, w.iw, tile, position, tap)) continue;
      const int64_t column = position * w.sw - w.pw + tap * (w.dw + 1);
      columns_[column].emplace_back(position, tap);
    }
  }
  EmitRowPointers(code);
  if (code.kind == CodeKind::kPair) {
    EmitPair(code.valid.front());
  } else {
    EmitBias(plan_.accumulators);
    EmitResidual();
    code.kind == CodeKind::kLooped ? EmitLooped() : EmitUnrolled(code);
  }
  EmitFinish();
}

// Into the first `accumulators`.
void PlaneGenerator::EmitBias(int accumulators) {
  const Vec first = Accumulator(0, 0);
  geometry_.workload.post.bias ? Load(first, At(kBias)) : Zero(first);
  for (int i = 1; i < accumulators; ++i) Copy(Vector(i), first);
}

void PlaneGenerator::EmitResidual() {
  if (!geometry_.workload.post.sum) return;
  const Reg& residual = kScratch;
  LoadAddress(residual, At(kOutput, kResidualFromOutput, 1));
  for (int64_t r = 0; r < rows_; ++r) {
    if (r > 0) Add(residual, At(kArgs, offsetof(PlaneArgs, output_row)));
    for (int64_t c = 0; c < width_; ++c) {
      const auto from = At(residual, c * geometry_.out_pixel_bytes);
      const DataType type = geometry_.config.types.out;
      if (!masked() && type == DataType::kF32) {
        Add(Accumulator(r, c), Accumulator(r, c), from);
        continue;
      }
      const Vec loaded = Vector(plan_.first_temp);
      LoadStored(type, loaded, from, masked(), Mask());
      Add(Accumulator(r, c), Accumulator(r, c), loaded);
    }
  }
}

void PlaneGenerator::LoadWeights(const Reg& base, int64_t first_tap, Registers to) {
  for (int i = 0; i < to.count; ++i) Load(Vector(to.first + i), At(base, (first_tap + i) * vector_bytes()));
}

void PlaneGenerator::EmitUnrolled(const RowCode& code) {
  const ConvWorkload& w = geometry_.workload;
  // Input row, from the first output row's: what it is multiplied with. One kernel row of weights at a time
  // forbids sharing between output rows.
  std::map<int64_t, std::vector<RowTap>> input_rows;
  for (int64_t y = 0; y < w.kh; ++y) {
    bool loaded = false;
    for (int64_t r = 0; r < rows_; ++r) {
      const KernelRows& valid = code.valid[r];
      if (y < valid.first || y >= valid.last) continue;
      const int64_t input_row = r * w.sh + y * (w.dh + 1);
      const RowTap tap(static_cast<int>(r), y);
      if (plan_.mode != Weights::kRow) {
        input_rows[input_row].push_back(tap);
        continue;
      }
      if (!loaded) LoadWeights(kWeights, y * w.kw, {plan_.first_weight, plan_.weights});
      loaded = true;
      EmitInputRow(kSource, input_row, std::span(&tap, 1));
    }
  }
  for (const auto& [input_row, taps] : input_rows) EmitInputRow(kSource, input_row, taps);
}

// The range of kernel rows comes from the step.
void PlaneGenerator::EmitLooped() {
  const ConvWorkload& w = geometry_.workload;
  Label next_row, done;
  if (!knows_rows_ && rows_ > 1) Load(kLoopedRowBytes, At(kArgs, offsetof(PlaneArgs, source_row)));
  Load(kRowsLeft, At(kStep, offsetof(RowStep, kernel_rows)));
  Move(kWeightsNow, kWeights);
  Add(kWeightsNow, At(kStep, offsetof(RowStep, weights)));
  Move(kSourceNow, kSource);
  JumpIfZero(kRowsLeft, done);
  Align(32);
  Bind(next_row);
  if (plan_.mode == Weights::kRow) LoadWeights(kWeightsNow, 0, {plan_.first_weight, plan_.weights});
  for (int64_t r = 0; r < rows_; ++r) {
    const RowTap tap(static_cast<int>(r), 0);
    EmitInputRow(kSourceNow, r * w.sh, std::span(&tap, 1));
  }
  Add(kWeightsNow, w.kw * vector_bytes());
  Add(kSourceNow, At(kArgs, offsetof(PlaneArgs, next_kernel_row)));
  CountDown(kRowsLeft, next_row);
  Bind(done);
}

// One input row of the tile against every tap that reads it.
void PlaneGenerator::EmitInputRow(const Reg& base, int64_t row, std::span<const RowTap> taps) {
  const ConvWorkload& w = geometry_.workload;
  const bool looped = base == kSourceNow;
  const auto in_register = [&](int64_t y, int64_t x) {
    return plan_.mode == Weights::kRow ? Vector(plan_.first_weight + static_cast<int>(x))
                                       : Vector(plan_.first_held + static_cast<int>(y * w.kw + x));
  };
  const auto in_memory = [&](int64_t y, int64_t x) {
    return At(looped ? kWeightsNow : kWeights, (y * w.kw + x) * vector_bytes());
  };
  const bool from_memory = plan_.mode == Weights::kMemory;
  for (const auto& [column, uses] : columns_) {
    const auto address = InputAt(base, row, column * geometry_.in_pixel_bytes);
    if (taps.size() == 1 && uses.size() == 1 && !from_memory && PixelsFold()) {
      const auto [position, x] = uses.front();
      MultiplyAdd(Accumulator(taps[0].first, position), in_register(taps[0].second, x), address);
      continue;
    }
    const Vec pixel = NextTemp();
    LoadPixel(pixel, address);
    for (const auto& [position, x] : uses) {
      for (const auto& [output_row, y] : taps) {
        from_memory ? MultiplyAdd(Accumulator(output_row, position), pixel, in_memory(y, x))
                    : MultiplyAdd(Accumulator(output_row, position), pixel, in_register(y, x));
      }
    }
  }
}

void PlaneGenerator::EmitPair(const KernelRows& input) {
  EmitBias(static_cast<int>(width_));
  for (int64_t c = 0; c < width_; ++c) Zero(Accumulator(1, c));
  bool shared = true;
  int64_t product = 0;
  for (const PairPass& pass : PairPasses(geometry_.workload.kh)) {
    const bool own = pass.front().sum == PairSum::kUpper;
    if (own && shared) EmitPairSums();
    shared = !own;
    EmitPairPass(pass, product, input);
    product += static_cast<int64_t>(pass.size());
  }
  EmitResidual();
}

// From the sums that both output rows share to the output rows.
void PlaneGenerator::EmitPairSums() {
  for (int64_t c = 0; c < width_; ++c) {
    const Vec upper = NextTemp();
    Add(upper, Accumulator(0, c), Accumulator(1, c));
    Subtract(Accumulator(1, c), Accumulator(0, c), Accumulator(1, c));
    Copy(Accumulator(0, c), upper);
  }
}

void PlaneGenerator::EmitPairPass(const PairPass& pass, int64_t first_product, const KernelRows& input) {
  const int64_t kw = geometry_.workload.kw;
  const int64_t first_tap = geometry_.taps() + first_product * kw;  // in the packed weights
  const auto products = static_cast<int64_t>(pass.size());
  if (plan_.mode == Weights::kRow)
    LoadWeights(kWeights, first_tap, {plan_.first_weight, static_cast<int>(products * kw)});
  const int first_weight = plan_.mode == Weights::kRegisters
                               ? plan_.first_held + static_cast<int>(first_product * kw)
                               : plan_.first_weight;
  for (const auto& [column, uses] : columns_) {
    const PairPixels pixels = EmitPairPixels(pass, column, input);
    for (int64_t p = 0; p < products; ++p) {
      const PairPixels::Pixel& pixel = pixels.of[p];
      if (!pixel.exists) continue;
      const bool lower = pass[p].sum == PairSum::kOpposed || pass[p].sum == PairSum::kLower;
      for (const auto& [position, x] : uses) {
        const Vec sum = Accumulator(lower ? 1 : 0, position);
        const auto memory = At(kWeights, (first_tap + p * kw + x) * vector_bytes());
        const Vec weight = Vector(first_weight + static_cast<int>(p * kw + x));
        const Operand& factor = plan_.mode == Weights::kMemory ? static_cast<const Operand&>(memory) : weight;
        pixel.negated ? MultiplySubtract(sum, pixel.value, factor) : MultiplyAdd(sum, pixel.value, factor);
      }
    }
  }
}

// What the products of a pass multiply in one column; rows that both read are loaded once.
PlaneGenerator::PairPixels PlaneGenerator::EmitPairPixels(const PairPass& pass, int64_t column,
                                                          const KernelRows& input) {
  const auto exists = [&](int64_t row) { return row >= input.first && row < input.last; };
  const auto address = [&](int64_t row) { return InputAt(kSource, row, column * geometry_.in_pixel_bytes); };
  const auto load = [&](int64_t row) {
    const Vec to = NextTemp();
    LoadPixel(to, address(row));
    return to;
  };
  std::map<int64_t, Vec> loaded;
  const auto reads = [&](const PairProduct& product, int64_t row) {
    return product.first == row || product.second == row;
  };
  for (int64_t row : {pass.front().first, pass.front().second}) {
    if (pass.size() == 2 && exists(row) && reads(pass.back(), row)) loaded.emplace(row, load(row));
  }
  PairPixels pixels;
  for (size_t p = 0; p < pass.size(); ++p) {
    const PairProduct& product = pass[p];
    PairPixels::Pixel& pixel = pixels.of[p];
    const auto in_register = [&](int64_t row) { return loaded.contains(row) ? loaded.at(row) : load(row); };
    pixel.exists = exists(product.first) || exists(product.second);
    if (!pixel.exists) continue;
    if (!exists(product.first) || !exists(product.second)) {
      pixel.negated = !exists(product.first) && product.subtract;
      pixel.value = in_register(exists(product.first) ? product.first : product.second);
      continue;
    }
    const Vec first = in_register(product.first);
    pixel.value = loaded.contains(product.first) ? NextTemp() : first;
    const auto memory = address(product.second);
    const bool folds = PixelsFold() && !loaded.contains(product.second);
    const Vec register_second = folds ? Vec() : in_register(product.second);
    const Operand& second = folds ? static_cast<const Operand&>(memory) : register_second;
    product.subtract ? Subtract(pixel.value, first, second) : Add(pixel.value, first, second);
  }
  return pixels;
}

void PlaneGenerator::EmitFinish() {
  const Activation& activation = geometry_.workload.post.activation;
  const bool clear = lanes_ > 0 && !masked() && activation.Apply(0.0F) != 0.0F;
  const DataType type = geometry_.config.types.out;
  const Vec scratch = Vector(plan_.first_temp);
  const int kept = RoundsInSteps(type) ? 1 : 0;
  HoldConstants(activation, plan_.first_temp + kept, plan_.temps - kept);
  ForEachOutputRow(kOutput, [&](int64_t r, const Reg& row) {
    for (int64_t c = 0; c < width_; ++c) {
      const Vec value = Accumulator(r, c);
      const auto to = At(row, c * geometry_.out_pixel_bytes);
      Apply(activation, value, scratch);
      if (clear) ClearLanesFrom(lanes_, value);
      StoreAs(type, to, value, masked(), Mask(), scratch);
    }
  });
}

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

int64_t OffsetBytes(const ChannelStrides& strides, int64_t v, int64_t block_shift) {
  return v / strides.vectors_per_block * (strides.block_bytes + block_shift) +
         v % strides.vectors_per_block * strides.vector_bytes;
}

int64_t StepBytes(const ChannelStrides& strides, int64_t block_shift) {
  return strides.vectors_per_block == 1 ? strides.block_bytes + block_shift : strides.vector_bytes;
}

constexpr int64_t kFixedBytes = 4096;  // prologue, constants, jumps

}  // namespace

Planes::Planes(const Schedule& schedule, const Target& cpu, const ConvWeights& weights)
    : schedule_(schedule) {
  const RowGeometry& g = schedule.rows;
  const int64_t floats = CeilDiv(g.workload.oc, g.vector_floats) * g.vector_floats;
  const auto bytes = static_cast<size_t>(floats * PlaneWeights(g)) * sizeof(float);
  weights_ = DataPart(
      weights.parts, bytes, [&] { return Pack(weights.weights, bytes); },
      [&] {
        return PartKey("depthwise weights")
            .Add(g.workload.oc, g.workload.kh, g.workload.kw, g.vector_floats, g.config.pairs,
                 PlaneWeights(g));
      });
  bias_ = FloatsPart(weights.parts, weights.bias, g.workload.oc, floats);
  for (const RowCode& code : schedule.codes) {
    for (const TileRun& tile : CutColumns(g, code)) tile_counts_.push_back(tile.count);
  }
  code_ = NextCode(
      weights.parts, [&](std::vector<size_t>& starts) { return Emit(cpu, starts); },
      [&] { return CodeKey(schedule, cpu); });
  full_ = VariantAt(0);
  if (schedule_.lanes > 0) partial_ = VariantAt(1 + schedule_.codes.size());
}

std::unique_ptr<PlaneGenerator> Planes::Emit(const Target& cpu, std::vector<size_t>& starts) const {
  const int64_t bytes = 4 * (EstimateCodeBytes(schedule_.rows, schedule_.codes) + kFixedBytes);
  auto code =
      std::make_unique<PlaneGenerator>(schedule_.rows, schedule_.codes, cpu, static_cast<size_t>(bytes));
  code->Emit(schedule_.codes, 0, starts);
  if (schedule_.lanes > 0) code->Emit(schedule_.codes, schedule_.lanes, starts);
  code->Finish();
  return code;
}

AlignedBuffer Planes::Pack(const float* weights, size_t bytes) const {
  const RowGeometry& g = schedule_.rows;
  const int64_t channels = g.workload.oc;
  const int64_t floats = g.vector_floats, taps = g.taps();
  const int64_t plane = PlaneWeights(g) * floats;
  AlignedBuffer packed(bytes);
  for (int64_t channel = 0; channel < channels; ++channel) {
    float* to = packed.floats() + channel / floats * plane + channel % floats;
    const float* from = weights + channel * taps;
    for (int64_t tap = 0; tap < taps; ++tap) to[tap * floats] = from[tap];
    if (g.config.pairs) PackPairs(g, from, to + taps * floats);
  }
  return packed;
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

Planes::Variant Planes::VariantAt(size_t first) const {
  Variant variant{.kernel = code_.Get<PlaneKernel>(first), .steps = {}};
  for (int64_t block = 0; block < schedule_.row_blocks(); ++block) {
    std::vector<RowStep>& steps = variant.steps.emplace_back();
    for (const RowGroup& group : schedule_.Groups(block)) steps.push_back(StepOf(group, first));
  }
  return variant;
}

RowStep Planes::StepOf(const RowGroup& group, size_t first) const {
  const RowGeometry& g = schedule_.rows;
  const auto found = std::ranges::find(schedule_.codes, group.code);
  TILESMITH_CHECK(found != schedule_.codes.end());
  RowStep step;
  step.code = code_.at(first + 1 + (found - schedule_.codes.begin()));
  step.source = (g.InputRow(group.row) + group.range.first * (g.workload.dh + 1)) * g.in_row_bytes;
  step.output = group.row * g.out_row_bytes;
  step.weights = group.range.first * g.workload.kw * g.vector_bytes();
  step.kernel_rows = group.range.last - group.range.first;
  return step;
}

// The kernel steps evenly from vector to vector: over blocks of one vector, or within a block.
int64_t Planes::EvenUntil(const ChannelStrides& strides, int64_t v) const {
  const int64_t per_block = strides.vectors_per_block;
  return per_block == 1 ? schedule_.vectors : (v / per_block + 1) * per_block;
}

void Planes::RunEven(const Image& image, const Variant& variant, const Vectors& vectors,
                     int64_t row_block) const {
  const RowGeometry& rows = schedule_.rows;
  const bool sum = rows.workload.post.sum;
  if (sum && image.residual_shift != image.output_shift && vectors.count > 1) {
    for (int64_t v = 0; v < vectors.count; ++v) RunEven(image, variant, {vectors.first + v, 1}, row_block);
    return;
  }
  PlaneArgs args;
  args.source = BytesPast(image.source, OffsetBytes(schedule_.in, vectors.first, image.source_shift));
  args.output = BytesPast(image.output, OffsetBytes(schedule_.out, vectors.first, image.output_shift));
  if (sum)
    args.residual =
        BytesPast(image.residual, OffsetBytes(schedule_.out, vectors.first, image.residual_shift));
  args.weights = weights_.floats() + vectors.first * PlaneWeights(rows) * rows.vector_floats;
  args.bias = bias_.floats() + vectors.first * rows.vector_floats;
  args.source_step = StepBytes(schedule_.in, image.source_shift);
  args.output_step = StepBytes(schedule_.out, image.output_shift);
  args.planes = vectors.count;
  args.source_row = rows.in_row_bytes;
  args.output_row = rows.out_row_bytes;
  args.next_kernel_row = (rows.workload.dh + 1) * rows.in_row_bytes;
  args.tile_counts = tile_counts_.data();
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
        const int64_t offset = OffsetBytes(schedule_.out, v, image.output_shift) + row * rows.out_row_bytes +
                               column * rows.out_pixel_bytes;
        std::memset(BytesPast(image.output, offset), 0, static_cast<size_t>(schedule_.out.vector_bytes));
      }
    }
  }
}

}  // namespace tilesmith::depthwise
