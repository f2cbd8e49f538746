// Dense layers that make queries, keys and values at once, as exporters write them.
#include "ops/dense/gemm.h"
#include "ops/dense/matmul.h"
#include "ops/dense/softmax.h"
#include "ops/movement/indexing.h"
#include "ops/movement/transpose.h"
#include "ops/passes/passes.h"
#include "tests/ops/test_net.h"

namespace tilesmith {
namespace {

struct PackedNet : Net {
  Id Op(OpPtr op, const std::vector<Id>& inputs) { return graph.Add("", std::move(op), inputs); }
  Id Packed(Id x, int64_t n) {
    const int64_t k = graph.node(x).shape.back();
    const auto weights = RandomTensor({n, k}, seed++), bias = RandomTensor({n}, seed++);
    return graph.Add("packed", std::make_shared<GemmOp>(weights, bias), {x});
  }
  Id Transpose(Id x, std::vector<int64_t> perm) {
    return Op(std::make_shared<TransposeOp>(std::move(perm)), {x});
  }
  Id Reshape(Id x, Shape shape) { return Op(std::make_shared<ViewOp>("Reshape", std::move(shape)), {x}); }
  Id Part(Id x, int64_t axis, int64_t index) {
    Tensor value(Shape{}, Layout::Nchw(DataType::kI64));
    value.data<int64_t>()[0] = index;
    const Id constant = Op(std::make_shared<ConstantOp>(std::make_shared<Tensor>(std::move(value))), {});
    return Op(std::make_shared<GatherOp>(axis), {x, constant});
  }
  Id Attention(Id q, Id k, Id v) {
    const Id scores = Op(std::make_shared<MatMulOp>(), {q, Transpose(k, {0, 1, 3, 2})});
    return Op(std::make_shared<MatMulOp>(), {Op(std::make_shared<SoftmaxOp>(3, 3), {scores}), v});
  }

  int Count(const Graph& among, std::string_view type) const {
    int count = 0;
    for (Id id = 0; id < among.size(); ++id)
      count += among.node(id).op->Type() == type && !among.node(id).op->IsView();
    return count;
  }
};

TEST(SplitDense, QueriesKeysAndValuesOfVisionTransformers) {
  PackedNet net;
  const Graph::NodeId x = net.Input("x", {2, 17, 24});
  const auto parts = net.Transpose(net.Reshape(net.Packed(x, 72), {2, 17, 3, 4, 6}), {2, 0, 3, 1, 4});
  const auto mixed = net.Attention(net.Part(parts, 0, 0), net.Part(parts, 0, 1), net.Part(parts, 0, -1));
  net.graph.MarkOutput(net.Reshape(net.Transpose(mixed, {0, 2, 1, 3}), {2, 17, 24}));
  const Graph optimized = OptimizeGraph(net.graph);
  EXPECT_EQ(net.Count(optimized, "Conv"), 3);
  EXPECT_EQ(net.Count(optimized, "Attention"), 1);
  EXPECT_EQ(net.Count(optimized, "Gather") + net.Count(optimized, "Transpose"), 0);
  ExpectSame(net.graph, optimized);
}

// torch.nn.MultiheadAttention, whose parts are told apart by an axis that is moved from behind to the front.
TEST(SplitDense, ThroughViewsBetween) {
  PackedNet net;
  const Graph::NodeId x = net.Input("x", {9, 1, 16});
  const auto moved = net.Transpose(net.Reshape(net.Packed(x, 48), {1, 9, 1, 3, 16}), {3, 1, 2, 0, 4});
  const auto parts = net.Reshape(moved, {3, 9, 1, 16});
  const auto heads = [&](int64_t index) {
    const auto merged = net.Transpose(net.Reshape(net.Part(parts, 0, index), {9, 2, 8}), {1, 0, 2});
    return net.Reshape(merged, {1, 2, 9, 8});
  };
  net.graph.MarkOutput(net.Attention(heads(0), heads(1), heads(2)));
  const Graph optimized = OptimizeGraph(net.graph);
  EXPECT_EQ(net.Count(optimized, "Gather") + net.Count(optimized, "Transpose"), 0);
  EXPECT_EQ(net.Count(optimized, "Attention"), 1);
  ExpectSame(net.graph, optimized);
}

TEST(SplitDense, WhatOthersReadStaysWhole) {
  for (const int kind : {0, 1, 2, 3}) {
    SCOPED_TRACE(kind);
    PackedNet net;
    const auto view = net.Reshape(net.Packed(net.Input("x", {2, 5, 8}), 12), {2, 5, 3, 4});
    net.graph.MarkOutput(net.Part(view, kind == 3 ? 3 : 2, 0));
    net.graph.MarkOutput(net.Part(view, 2, kind == 0 ? 0 : 1));   // one part twice
    if (kind == 1) net.graph.MarkOutput(net.Relu("relu", view));  // something else
    if (kind == 2) net.graph.MarkOutput(view);                    // the caller
    const Graph optimized = OptimizeGraph(net.graph);
    EXPECT_EQ(net.Count(optimized, "Conv"), 1);
    EXPECT_EQ(net.Count(optimized, "Gather"), 2);
    ExpectSame(net.graph, optimized);
  }
}

}  // namespace
}  // namespace tilesmith
