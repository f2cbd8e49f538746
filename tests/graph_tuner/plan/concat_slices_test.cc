#include "graph_tuner/plan/concat_slices.h"

#include <gtest/gtest.h>

#include "tests/graph_tuner/support/synthetic.h"

namespace tilesmith {
namespace {

using Id = Graph::NodeId;

TEST(ConcatSlices, FirstChannelConcatOwnsAndSourcesOwnNothing) {
  Graph graph("g");
  const Id input = AddInput(graph, {1, 8, 4, 4});
  const Id a = AddConv(graph, "a", input, 16), b = AddConv(graph, "b", input, 8);
  const Id constant =
      graph.Add("k", std::make_shared<ConstantOp>(std::make_shared<const Tensor>(Shape{1, 8, 4, 4})), {});
  const Id view = graph.Add("view", std::make_shared<ViewOp>("Reshape", Shape{1, 8, 4, 4}), {b});
  const Id first = AddConcat(graph, "first", {input, a, a, constant, view});
  const Id second = AddConcat(graph, "second", {b, a, first});
  const Id spatial = graph.Add("spatial", std::make_shared<ConcatOp>(2), {second, second});
  graph.MarkOutput(spatial);
  const auto slices = ConcatSlices(graph);
  for (Id id : {input, constant, view, second, spatial}) EXPECT_FALSE(slices[id]) << id;
  ASSERT_TRUE(slices[a] && slices[b] && slices[first]);
  EXPECT_EQ(slices[a]->concat, first);
  EXPECT_EQ(slices[a]->slot, 1);
  EXPECT_EQ(slices[a]->channel_offset, 8);
  EXPECT_EQ(slices[b]->concat, second);
  EXPECT_EQ(slices[b]->channel_offset, 0);
  EXPECT_EQ(slices[first]->slot, 2);
  EXPECT_EQ(slices[first]->channel_offset, 24);
}

TEST(ConcatIsSliceable, NeedsEveryStartOnABlockBoundary) {
  Graph graph("g");
  const Id input = AddInput(graph, {1, 8, 4, 4});
  const Id c16 = AddConv(graph, "c16", input, 16), c24 = AddConv(graph, "c24", input, 24);
  const Id even = AddConcat(graph, "even", {c16, c24});
  const Id odd = AddConcat(graph, "odd", {c24, c16});
  const Id one = AddConcat(graph, "one", {c24});
  const Id spatial = graph.Add("spatial", std::make_shared<ConcatOp>(2), {c24, c24});
  auto sliceable = [&](Id id, const char* layout) {
    return ConcatIsSliceable(graph, id, Layout::Parse(layout));
  };
  EXPECT_TRUE(sliceable(even, "NCHW"));
  EXPECT_TRUE(sliceable(even, "NCHW8c"));
  EXPECT_TRUE(sliceable(even, "NCHW16c"));  // 24 ends inside a block, but is the last
  EXPECT_FALSE(sliceable(even, "NCHW32c"));
  EXPECT_FALSE(sliceable(even, "NHWC"));
  EXPECT_TRUE(sliceable(odd, "NCHW8c"));
  EXPECT_FALSE(sliceable(odd, "NCHW16c"));
  EXPECT_TRUE(sliceable(one, "NHWC"));
  EXPECT_TRUE(sliceable(one, "NCHW16c"));
  EXPECT_FALSE(sliceable(spatial, "NCHW"));
  EXPECT_FALSE(sliceable(c16, "NCHW"));
}

}  // namespace
}  // namespace tilesmith
