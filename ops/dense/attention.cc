#include "ops/dense/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "layouts/base/error.h"
#include "ops/base/broadcast.h"
#include "ops/base/import_util.h"
#include "ops/dense/matmul_kernel.h"
#include "ops/dense/matrix.h"

namespace tilesmith {
namespace {

Shape WithMatrix(Shape leading, int64_t rows, int64_t columns) {
  leading.push_back(rows);
  leading.push_back(columns);
  return leading;
}

// Queries, keys or values of several heads: [batch, heads, rows, width], or [batch, rows, heads * width].
struct Heads {
  int64_t batch = 0, heads = 0, rows = 0, width = 0;
  bool packed = false;  // rank 3
};

Heads HeadsOf(const NodeSpec& spec, size_t index, std::string_view attribute) {
  const Shape& shape = spec.inputs[index].shape;
  if (shape.size() == 4) return {shape[0], shape[1], shape[2], shape[3], false};
  if (shape.size() != 3) {
    Refuse(spec, fmt::format("input {} has shape {}, only ranks 3 and 4 are supported", index,
                             ShapeToString(shape)));
  }
  const int64_t heads = spec.Int(attribute, 0);
  if (heads < 1 || shape[2] % heads != 0) {
    Refuse(spec, fmt::format("{} is {}, which does not divide the {} values of input {}", attribute, heads,
                             shape[2], index));
  }
  return {shape[0], heads, shape[1], shape[2] / heads, true};
}

// As [batch, groups, heads of a group, rows, width]: heads of a group of queries share one of keys and
// values.
Arrangement Grouped(const Heads& h, int64_t groups) {
  const int64_t each = h.heads / groups;
  if (!h.packed) return {{h.batch, groups, each, h.rows, h.width}, {}};
  return {{h.batch, h.rows, groups, each, h.width}, {0, 2, 3, 1, 4}};
}

// A mask for scores that are seen as [batch, groups, heads of a group, rows, keys].
Arrangement MaskArrangement(const NodeSpec& spec, int64_t heads, int64_t groups) {
  const NodeInput& mask = spec.inputs[3];
  const Shape& shape = mask.shape;
  const size_t rank = shape.size();
  const auto refuse = [&](std::string_view reason) {
    Refuse(spec, fmt::format("a mask of shape {} {}", ShapeToString(shape), reason));
  };
  if (mask.type != DataType::kF32) refuse("that is none of floats is not supported");
  if (rank < 2 || rank > 4) refuse("is not supported, only ranks 2 to 4 are");
  if (rank == 2) return {};
  const int64_t count = shape[rank - 3];
  if (count != 1 && count != heads) refuse(fmt::format("does not fit {} heads", heads));
  if (rank == 3 && count != 1 && groups != heads) refuse("for heads that share keys is not supported");
  const bool one = count == 1;
  if (rank == 3) return {{count, 1, shape[1], shape[2]}, {}};
  return {{shape[0], one ? 1 : groups, one ? 1 : heads / groups, shape[2], shape[3]}, {}};
}

BuiltOp BuildAttention(const NodeSpec& spec) {
  NeedInputs(spec, 3, 7);
  for (const size_t index : {4, 5, 6}) {
    if (spec.HasInput(index)) Refuse(spec, "a cache of keys and values is not supported");
  }
  if (spec.Float("softcap", 0) != 0) Refuse(spec, "softcap is not supported");
  const Heads q = HeadsOf(spec, 0, "q_num_heads"), k = HeadsOf(spec, 1, "kv_num_heads"),
              v = HeadsOf(spec, 2, "kv_num_heads");
  if (k.heads != v.heads || k.heads < 1 || q.heads % k.heads != 0) {
    Refuse(spec, fmt::format("{} heads of queries, {} of keys and {} of values", q.heads, k.heads, v.heads));
  }
  AttentionParams params;
  params.q = Grouped(q, k.heads), params.k = Grouped(k, k.heads), params.v = Grouped(v, k.heads);
  if (q.packed) {
    params.out_perm = {0, 2, 3, 1, 4};
    params.out_shape = {q.batch, q.rows, (Checked(q.heads) * v.width).value()};
  } else {
    params.out_shape = {q.batch, q.heads, q.rows, v.width};
  }
  const auto width = static_cast<float>(std::max<int64_t>(q.width, 1));
  params.scale = spec.Float("scale", 1 / std::sqrt(width));
  params.causal = spec.Int("is_causal", 0) != 0;
  params.masked = spec.HasInput(3);
  if (params.masked) params.mask = MaskArrangement(spec, q.heads, k.heads);
  const int inputs = params.masked ? 4 : 3;
  return BuiltWithInputs(std::make_shared<AttentionOp>(std::move(params)), inputs);
}

Shape Matrix(const Shape& seen) {
  if (seen.size() < 2) {
    throw Error(ErrorCode::kBadModel,
                fmt::format("Attention takes matrices, it got {}", ShapeToString(seen)));
  }
  return BatchOf(seen);
}

// Row t, as far as it is looked at: keys [0, count).
int64_t KeysOf(const AttentionParams& params, int64_t row, int64_t keys) {
  return params.causal ? std::min(keys, row + 1) : keys;
}

}  // namespace

AttentionShapes ShapesOf(const AttentionParams& p, std::span<const Shape> inputs) {
  AttentionShapes s{.q = p.q.Seen(inputs[0]),
                    .k = p.k.Seen(inputs[1]),
                    .v = p.v.Seen(inputs[2]),
                    .mask = {},
                    .batch = {},
                    .out = {}};
  std::vector<Shape> leading = {Matrix(s.q), Matrix(s.k), Matrix(s.v)};
  s.rows = s.q[s.q.size() - 2], s.width = s.q.back();
  s.keys = s.k[s.k.size() - 2], s.outputs = s.v.back();
  if (s.k.back() != s.width || s.v[s.v.size() - 2] != s.keys) {
    throw Error(ErrorCode::kBadModel, fmt::format("Attention of {}, {} and {}", ShapeToString(s.q),
                                                  ShapeToString(s.k), ShapeToString(s.v)));
  }
  if (p.masked) {
    s.mask = p.mask.Seen(inputs[3]);
    leading.push_back(Matrix(s.mask));
    const int64_t rows = s.mask[s.mask.size() - 2], keys = s.mask.back();
    if ((rows != 1 && rows != s.rows) || (keys != 1 && keys != s.keys)) {
      throw Error(ErrorCode::kBadModel,
                  fmt::format("Attention adds a mask {} to scores of {} rows and {} keys",
                              ShapeToString(s.mask), s.rows, s.keys));
    }
  }
  s.batch = BroadcastAll("Attention", leading);
  s.out = WithMatrix(s.batch, s.rows, s.outputs);
  return s;
}

std::string AttentionOp::Signature() const {
  const auto part = [](const char* name, const std::string& text) { return text.empty() ? "" : name + text; };
  const AttentionParams& p = params_;
  return fmt::format("Attention scale {:.9g}{}{}{}{}{}{}{}", p.scale, p.masked ? " masked" : "",
                     p.causal ? " causal" : "", part(" q:", p.q.ToString()), part(" k:", p.k.ToString()),
                     part(" v:", p.v.ToString()), part(" mask:", p.mask.ToString()),
                     part(" out:", Arrangement{p.out_shape, p.out_perm}.ToString()));
}

Shape AttentionOp::InferShape(std::span<const Shape> inputs) const {
  return WrittenAs(ShapesOf(params_, inputs).out, params_.out_perm, params_.out_shape).tensor;
}

Tensor AttentionOp::Reference(std::span<const Tensor* const> inputs) const {
  std::vector<Shape> shapes;
  for (const Tensor* input : inputs) shapes.push_back(input->shape());
  const AttentionShapes s = ShapesOf(params_, shapes);
  const Tensor q = Arranged(params_.q, *inputs[0]), k = Arranged(params_.k, *inputs[1]),
               v = Arranged(params_.v, *inputs[2]);
  const Tensor mask = params_.masked ? Arranged(params_.mask, *inputs[3]) : Tensor();
  const std::vector<int64_t> from_q = BroadcastIndices(BatchOf(s.q), s.batch);
  const std::vector<int64_t> from_k = BroadcastIndices(BatchOf(s.k), s.batch);
  const std::vector<int64_t> from_v = BroadcastIndices(BatchOf(s.v), s.batch);
  std::vector<int64_t> from_mask;
  if (params_.masked) from_mask = BroadcastIndices(s.mask, WithMatrix(s.batch, s.rows, s.keys));
  Tensor seen(s.out);
  for (size_t i = 0; i < from_q.size(); ++i) {
    const FloatMap queries(q.floats() + from_q[i] * s.rows * s.width, s.rows, s.width);
    const FloatMap keys(k.floats() + from_k[i] * s.keys * s.width, s.keys, s.width);
    const FloatMap values(v.floats() + from_v[i] * s.keys * s.outputs, s.keys, s.outputs);
    RowMatrix<double> scores = params_.scale * (queries.cast<double>() * keys.cast<double>().transpose());
    for (int64_t t = 0; t < s.rows; ++t) {
      const int64_t count = KeysOf(params_, t, s.keys);
      double largest = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t j = 0; j < s.keys; ++j) {
        const int64_t at = (static_cast<int64_t>(i) * s.rows + t) * s.keys + j;
        if (params_.masked) scores(t, j) += mask.floats()[from_mask[at]];
        if (j < count) largest = std::max(largest, scores(t, j));
      }
      for (int64_t j = 0; j < s.keys; ++j) {
        scores(t, j) = j < count ? std::exp(scores(t, j) - largest) : 0;
        sum += scores(t, j);
      }
      for (int64_t j = 0; j < s.keys; ++j) scores(t, j) /= sum;
    }
    const RowMatrix<double> result = scores * values.cast<double>();
    for (int64_t j = 0; j < s.rows * s.outputs; ++j) {
      seen.floats()[static_cast<int64_t>(i) * s.rows * s.outputs + j] =
          static_cast<float>(result(j / s.outputs, j % s.outputs));
    }
  }
  return ArrangedBack(WrittenAs(s.out, params_.out_perm, params_.out_shape), seen);
}

double AttentionOp::Flops(std::span<const Shape> inputs) const {
  const AttentionShapes s = ShapesOf(params_, inputs);
  return 2.0 * static_cast<double>(ElementCount(s.batch)) * static_cast<double>(s.rows) *
         static_cast<double>(s.keys) * static_cast<double>(s.width + s.outputs);
}

std::unique_ptr<Kernel> AttentionOp::MakeKernel(const KernelRequest& request) const {
  return MakeAttentionKernel(request, params_);
}

std::vector<OpImporter> AttentionImporters() { return {{"Attention", BuildAttention}}; }

}  // namespace tilesmith
