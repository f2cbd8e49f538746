#include "templates/cuda_device/product_programs.h"

#include <algorithm>
#include <string>
#include <vector>

#include "ops/elementwise/kinds.h"
#include "templates/cuda_device/program_builder.h"
#include "templates/cuda_device/walks.h"

namespace tilesmith::cuda {
namespace {

// Where matrices lie: their two strides, and batches' axes.
struct Matrices {
  int64_t row = 0, column = 0;
  Axes batch;
};
Matrices MatricesOf(const Shape& seen, const SeenStrides& strides, const Shape& batch) {
  const auto at = [&](size_t axis) { return strides.At(axis, kImages); };
  const size_t rank = seen.size();
  Matrices m{at(rank - 2), at(rank - 1), {}};
  const size_t missing = batch.size() + 2 - rank;
  for (size_t axis = 0; axis < batch.size(); ++axis) {
    const bool repeats = axis < missing || seen[axis - missing] == 1;
    m.batch.push_back({batch[axis], repeats ? 0 : at(axis - missing)});
  }
  return m;
}
Matrices InRows(const Shape& batch, int64_t rows, int64_t columns) {
  return {columns, 1, {{ElementCount(batch), rows * columns}}};
}
Matrices Turned(Matrices m) {
  std::swap(m.row, m.column);
  return m;
}

struct Product {
  int64_t m = 0, n = 0, k = 0;
  float factor = 1;
  bool has_bias = false;
  Matrices a, b, out;
};
void AddProduct(ProgramBuilder& builder, const Product& p, std::vector<CudaOperand> inputs,
                CudaOperand output) {
  constexpr int64_t kTile = 64, kTerms = 16;
  const int64_t count = SizeOf(p.out.batch);
  std::vector<int64_t> numbers = {count,   p.m,        p.n,     p.k,        Bits(p.factor), p.has_bias,
                                  p.a.row, p.a.column, p.b.row, p.b.column, p.out.row,      p.out.column};
  for (const Matrices* side : {&p.a, &p.b, &p.out}) AddWalk(builder, side->batch, numbers);
  numbers.push_back(0);  // to MATMUL_INTS
  builder.NeedImage(Checked(p.m) * p.n);
  builder.NeedImage(Checked(p.m) * p.k);
  CudaLaunch& launch = builder.Launch("matmul", 1, numbers, std::move(inputs));
  builder.SetBlocks(launch, CeilDiv(p.n, kTile), CeilDiv(p.m, kTile), std::min(count, kMaxGrid));
  launch.shared_bytes = 2 * kTile * kTerms * kFloatBytes;
  launch.output = output;
}

// The mask is added to the scores.
void AddMask(ProgramBuilder& builder, const AttentionShapes& s, const SeenStrides& strides) {
  Matrices mask = MatricesOf(s.mask, strides, s.batch);
  const Shape& seen = s.mask;
  mask.batch.push_back({s.rows, seen[seen.size() - 2] == 1 ? 0 : mask.row});
  mask.batch.push_back({s.keys, seen.back() == 1 ? 0 : mask.column});
  const int64_t count = SizeOf(mask.batch);
  std::vector<int64_t> numbers = {count, static_cast<int64_t>(BinaryKind::kAdd)};
  for (int i = 0; i < 2; ++i) AddWalk(builder, {{count, 1}}, numbers);
  AddWalk(builder, mask.batch, numbers);
  builder.NeedImage(count);
  builder.Launch("pair", count, numbers, {InScratch(), Input(3)}).output = InScratch();
}

}  // namespace

std::optional<CudaProgram> MatMulProgram(const MatMulOp& op, const KernelRequest& request) {
  const MatMulParams& params = op.params();
  for (const auto& [side, slot] : {std::pair(&params.a, 0), {&params.b, 1}})
    if (side->Seen(request.inputs[static_cast<size_t>(slot)]).size() < 2) return std::nullopt;
  const MatMulShapes s = ShapesOf(params, request.inputs);
  const Written written = WrittenAs(s.out, params.out_perm, params.out_shape);
  ProgramBuilder builder(std::string(op.Type()), WalksText(params.activation));
  AddProduct(builder,
             {.m = s.m,
              .n = s.n,
              .k = s.k,
              .factor = params.scale,
              .has_bias = params.bias != nullptr,
              .a = MatricesOf(s.a, StridesOf(params.a, request.inputs[0]), s.batch),
              .b = MatricesOf(s.b, StridesOf(params.b, request.inputs[1]), s.batch),
              .out = MatricesOf(s.out, StridesOf(written.arrangement, written.tensor), s.batch)},
             {Input(0), Input(1)}, kOutput);
  if (params.bias) builder.Weights({params.bias->floats(), params.bias->floats() + s.n});
  return builder.Take();
}

// Scores of all rows are a tensor in scratch.
std::optional<CudaProgram> AttentionProgram(const AttentionOp& op, const KernelRequest& request) {
  const AttentionParams& params = op.params();
  const AttentionShapes s = ShapesOf(params, request.inputs);
  const Written written = WrittenAs(s.out, params.out_perm, params.out_shape);
  const Matrices scores = InRows(s.batch, s.rows, s.keys);
  const auto side = [&](const Shape& seen, const Arrangement& arrangement, size_t slot) {
    return MatricesOf(seen, StridesOf(arrangement, request.inputs[slot]), s.batch);
  };
  ProgramBuilder builder(std::string(op.Type()), WalksText());
  const int64_t count = ElementCount(s.batch);
  builder.Scratch(Checked(count) * s.rows * s.keys * kFloatBytes);
  AddProduct(builder,
             {.m = s.rows,
              .n = s.keys,
              .k = s.width,
              .factor = params.scale,
              .a = side(s.q, params.q, 0),
              .b = Turned(side(s.k, params.k, 1)),
              .out = scores},
             {Input(0), Input(1)}, InScratch());
  if (params.masked) AddMask(builder, s, StridesOf(params.mask, request.inputs[3]));
  AddSoftmax(builder,
             {.outer = {{count * s.rows, s.keys}},
              .inner = {{s.keys, 1}},
              .causal_rows = params.causal ? s.rows : 0},
             InScratch(), InScratch());
  AddProduct(builder,
             {.m = s.rows,
              .n = s.outputs,
              .k = s.keys,
              .a = scores,
              .b = side(s.v, params.v, 2),
              .out = MatricesOf(s.out, StridesOf(written.arrangement, written.tensor), s.batch)},
             {InScratch(), Input(2)}, kOutput);
  return builder.Take();
}

}  // namespace tilesmith::cuda
