// The generator of executor_random_network.h, and what it is for: any plan of any network computes what the
// reference does.
#include "tests/graph_tuner/support/executor_random_network.h"

#include <gtest/gtest.h>

#include "graph_tuner/executor/heuristic_plan.h"
#include "ops/base/op.h"
#include "ops/conv/conv.h"
#include "ops/dense/softmax.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/binary.h"
#include "ops/movement/concat.h"
#include "ops/movement/depth_to_space.h"
#include "ops/movement/indexing.h"
#include "ops/movement/view.h"
#include "ops/pool/pool.h"
#include "ops/resize/resize.h"
#include "tests/graph_tuner/support/executor_testing.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

std::shared_ptr<const Tensor> RandomTensor(const Shape& shape, TestRandom& random) {
  auto tensor = std::make_shared<Tensor>(shape);
  FillUniform({tensor->floats(), static_cast<size_t>(tensor->size())}, random.Next());
  return tensor;
}

class NetworkMaker {
 public:
  explicit NetworkMaker(TestRandom& random) : random_(random), graph_("random") {}

  Graph Make() {
    const int64_t batch = random_.Integer(1, 2);
    const int64_t size = random_.Integer(1, 6);
    const int64_t inputs = random_.Integer(1, 2);
    for (int64_t i = 0; i < inputs; ++i) {
      Append(std::make_shared<InputOp>(Shape{batch, Channels(), size, size + random_.Integer(0, 1)}), {});
    }
    const int64_t nodes = random_.Integer(4, 14);
    for (int64_t i = 0; i < nodes; ++i) AddNode();
    MarkOutputs();
    return std::move(graph_);
  }

 private:
  int64_t Channels() { return random_.Pick(std::vector<int64_t>{1, 3, 7, 8, 8, 16, 16, 17, 24, 32}); }

  const Shape& ShapeOf(NodeId id) const { return graph_.node(id).shape; }

  NodeId Append(OpPtr op, const std::vector<NodeId>& inputs) {
    images_.push_back(graph_.Add("n" + std::to_string(graph_.size()), std::move(op), inputs));
    return images_.back();
  }

  // Recent tensors are likelier, so that the network has some depth.
  NodeId PickImage() {
    const int64_t last = static_cast<int64_t>(images_.size()) - 1;
    return images_[random_.Integer(0, 1) == 0 ? last : random_.Integer(0, last)];
  }

  // All images whose batch, height and width (and channels, when asked) are those of `id`.
  std::vector<NodeId> Like(NodeId id, bool same_channels) const {
    std::vector<NodeId> like;
    for (const NodeId other : images_) {
      Shape shape = ShapeOf(other);
      if (!same_channels) shape[1] = ShapeOf(id)[1];
      if (shape == ShapeOf(id)) like.push_back(other);
    }
    return like;
  }

  void AddNode() {
    const NodeId x = PickImage();
    switch (random_.Integer(0, 12)) {
      case 0:
      case 1:
      case 2:
        return AddFilledConv(x);
      case 3:
      case 4:
      case 5:
        return AddConcat(x);
      case 6:
        Append(std::make_shared<BinaryOp>(BinaryKind::kAdd), {x, random_.Pick(Like(x, true))});
        return;
      case 7:
        Append(std::make_shared<ActivationOp>(Activation{ActivationKind::kRelu}), {x});
        return;
      case 8:
        return AddScaleShift(x);
      case 9:
        return AddGate(x);
      case 10:
        return AddConstantSum(x);
      case 11:
        return AddMove(x);
      default:
        return AddPoolOrView(x);
    }
  }

  void AddFilledConv(NodeId x) {
    const Shape& in = ShapeOf(x);
    ConvWorkload w;
    std::tie(w.mb, w.ic, w.ih, w.iw) = std::tie(in[0], in[1], in[2], in[3]);
    w.oc = Channels();
    if (random_.Integer(0, 3) == 0) w.g = w.oc = w.ic;
    w.kh = w.kw = random_.Pick(std::vector<int64_t>{1, 1, 3});
    w.ph = w.pw = w.kh / 2;
    w.oh = w.ih;
    w.ow = w.iw;
    w.post.bias = random_.Integer(0, 1) == 1;
    if (random_.Integer(0, 1) == 1) w.post.activation = {ActivationKind::kRelu};
    std::vector<NodeId> residuals;
    for (const NodeId id : Like(x, false)) {
      if (ShapeOf(id)[1] == w.oc) residuals.push_back(id);
    }
    w.post.sum = !residuals.empty() && random_.Integer(0, 2) > 0;
    std::vector<NodeId> inputs = {x};
    if (w.post.sum) inputs.push_back(random_.Pick(residuals));
    auto bias = w.post.bias ? RandomTensor({w.oc}, random_) : nullptr;
    Append(std::make_shared<ConvOp>(w, RandomTensor(w.weights_shape(), random_), bias), inputs);
  }

  void AddConcat(NodeId x) {
    const std::vector<NodeId> like = Like(x, false);
    std::vector<NodeId> inputs = {x};
    const int64_t more = random_.Integer(0, 2);
    for (int64_t i = 0; i < more; ++i) inputs.push_back(random_.Pick(like));
    if (random_.Integer(0, 1) == 1) std::reverse(inputs.begin(), inputs.end());
    Append(std::make_shared<ConcatOp>(1), inputs);
  }

  void AddScaleShift(NodeId x) {
    const int64_t channels = ShapeOf(x)[1];
    std::vector<float> scale(channels), shift(channels);
    FillUniform(scale, random_.Next());
    FillUniform(shift, random_.Next());
    Append(std::make_shared<ScaleShiftOp>(scale, shift), {x});
  }

  void AddGate(NodeId x) {
    const NodeId gate = Append(std::make_shared<GlobalPoolOp>(PoolKind::kAverage), {x});
    Append(std::make_shared<BinaryOp>(BinaryKind::kMul), {x, gate});
  }

  void AddConstantSum(NodeId x) {
    const NodeId constant = graph_.Add("constant" + std::to_string(graph_.size()),
                                       std::make_shared<ConstantOp>(RandomTensor(ShapeOf(x), random_)), {});
    Append(std::make_shared<BinaryOp>(BinaryKind::kAdd), {x, constant});
  }

  // What changes the size of an image, or takes it apart.
  void AddMove(NodeId x) {
    const Shape shape = ShapeOf(x);
    const bool small = shape[2] <= 8 && shape[3] <= 8;
    if (small && shape[1] % 4 == 0 && random_.Integer(0, 1) == 0) {
      Append(std::make_shared<DepthToSpaceOp>(DepthToSpaceParams{.bh = 2, .bw = 2}), {x});
    } else if (small && random_.Integer(0, 1) == 0) {
      ResizeParams params;
      params.mode = random_.Integer(0, 1) == 0 ? ResizeMode::kNearest : ResizeMode::kLinear;
      params.input = shape;
      params.output = {shape[0], shape[1], 2 * shape[2], 2 * shape[3]};
      params.scales = {1, 1, 2, 2};
      Append(std::make_shared<ResizeOp>(params), {x});
    } else {
      const std::vector<SliceRange> ranges = {{1, shape[1] / 3, shape[1], 1}, {2, 0, shape[2], 2}};
      Append(std::make_shared<SliceOp>(ranges), {x});
    }
  }

  void AddPoolOrView(NodeId x) {
    const Shape shape = ShapeOf(x);
    switch (random_.Integer(0, 3)) {
      case 0: {
        PoolWindow window;
        window.kh = window.kw = 3;
        window.top = window.left = window.bottom = window.right = 1;
        Append(std::make_shared<PoolOp>(window), {x});
        return;
      }
      case 1:
        Append(std::make_shared<ViewOp>("Dropout"), {x});
        return;
      case 2:
        Append(std::make_shared<ViewOp>("Reshape", Shape{shape[0], shape[2], shape[1], shape[3]}), {x});
        return;
      default: {  // the batch recut, and a result that is no image
        const int64_t columns = shape[0] * shape[1];
        const NodeId flat = graph_.Add("flat", std::make_shared<ViewOp>("Reshape", Shape{columns, -1}), {x});
        flats_.push_back(graph_.Add("softmax", std::make_shared<SoftmaxOp>(1, 1), {flat}));
        if (random_.Integer(0, 1) == 0) flats_.push_back(flat);
        return;
      }
    }
  }

  void MarkOutputs() {
    for (const NodeId id : flats_) graph_.MarkOutput(id);
    for (const NodeId id : images_) {
      if (!graph_.IsOutput(id) && (id == images_.back() || random_.Integer(0, 7) == 0)) graph_.MarkOutput(id);
    }
  }

  TestRandom& random_;
  Graph graph_;
  std::vector<NodeId> images_;  // 4-D tensors
  std::vector<NodeId> flats_;
};

Layout RandomLayout(TestRandom& random) {
  static const std::vector<Layout> layouts = {Layout::Nchw(),      Layout::Blocked(8), Layout::Blocked(8),
                                              Layout::Blocked(16), Layout::Blocked(3), Layout::Nhwc()};
  return random.Pick(layouts);
}

Record RandomRecord(const ConvWorkload& workload, const Target& cpu, TestRandom& random) {
  std::vector<const ConvTemplate*> templates = {&FindConvTemplate("portable")};
  for (const ConvTemplate* other : ConvTemplates())
    if (cpu.reproducible && other->Supports(workload, cpu).ok) templates.push_back(other);
  const ConvTemplate& conv_template = *random.Pick(templates);
  const ConfigSpace space = conv_template.Space(workload, cpu);
  Record record;
  record.workload = workload;
  record.template_name = conv_template.Name();
  do {
    record.config = space.At(random.Next() % space.size());
  } while (!space.WhyInvalid(record.config).empty());
  record.layouts = conv_template.Layouts(workload, record.config);
  return record;
}

}  // namespace

Graph RandomNetwork(TestRandom& random) { return NetworkMaker(random).Make(); }

Plan RandomPlan(const Graph& graph, const Target& cpu, TestRandom& random) {
  // One layout is favoured, since only where neighbours agree are concats sliced and results put in place.
  const Layout favourite = RandomLayout(random);
  Plan plan;
  if (random.Integer(0, 1) == 1) plan.ends = {RandomLayout(random), RandomLayout(random)};
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    NodePlan planned;
    planned.node = node.name;
    if (const auto* conv = graph.As<ConvOp>(id)) {
      for (int attempt = 0; attempt < 10; ++attempt) {
        planned.record = RandomRecord(conv->workload(), cpu, random);
        if (planned.record->layouts.out == favourite) break;
      }
      planned.layouts = planned.record->layouts;
    } else {
      Layout layout = random.Integer(0, 3) > 0 ? favourite : RandomLayout(random);
      if (!node.op->RunsIn(layout, graph.InputShapes(id))) layout = Layout::Nchw();
      planned.layouts = {layout, layout};
    }
    plan.nodes.push_back(std::move(planned));
  }
  return plan;
}

namespace {

// Values grow with depth and layers differ in the order of summation; whatever reads the wrong memory is off
// by far more.
constexpr double kNetworkTolerance = 1e-4;

TEST(ExecutorFuzz, RandomPlansOfRandomNetworksComputeTheReference) {
  const Target cpu = TestCpu();
  for (uint64_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    TestRandom random(seed);
    const Graph graph = RandomNetwork(random);
    const std::vector<Tensor> inputs = RandomInputs(graph, seed);
    const std::vector<Tensor> expected = RunReference(graph, Pointers(inputs));
    for (int trial = 0; trial < 3; ++trial) {
      const int threads = static_cast<int>(random.Integer(1, 3));
      SCOPED_TRACE(testing::Message() << "plan " << trial << ", " << threads << " threads");
      const Plan plan = RandomPlan(graph, cpu, random);
      Executor executor(graph, plan, OpenDevice(cpu, threads));
      const ExpectedRun run{graph, inputs, expected, plan.ends};
      ExpectOutputs(executor, run, kNetworkTolerance);
      ExpectOutputs(executor, run, kNetworkTolerance);  // what the first run left behind
      if (testing::Test::HasFailure()) return;
    }
  }
}

std::vector<Tensor> OutputsOf(const Graph& graph, const Plan& plan, const DevicePtr& device,
                              const std::vector<Tensor>& inputs) {
  Executor executor(graph, plan, device);
  std::vector<Tensor> outputs = UnwrittenOutputs(graph);
  executor.Run(Pointers(inputs), Pointers(outputs));
  return outputs;
}

// Any plan, instruction set and number of threads.
TEST(ExecutorFuzz, ReproducibleTargetsGiveTheSameBits) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    TestRandom random(seed);
    const Graph graph = RandomNetwork(random);
    const std::vector<Tensor> inputs = RandomInputs(graph, seed);
    std::vector<Tensor> expected;
    for (const Isa isa : kTestIsas) {
      if (isa > TestCpu().isa) continue;
      const Target cpu = Reproducible(CapIsa(TestCpu(), isa));
      for (int trial = 0; trial < 3; ++trial) {
        const int threads = random.Pick(std::vector<int>{1, 2, 3, 4, 7});
        Plan plan = trial == 0 ? HeuristicPlan(graph, cpu, threads) : RandomPlan(graph, cpu, random);
        plan.ends = {};
        std::vector<Tensor> outputs = OutputsOf(graph, plan, OpenDevice(cpu, threads), inputs);
        if (expected.empty()) expected = std::move(outputs);
        ASSERT_TRUE(outputs.empty() || SameBits(outputs, expected))
            << "seed " << seed << ", " << IsaName(cpu.isa) << ", " << threads << " threads, plan " << trial;
      }
    }
  }
}

// A split says who computes a task, not how, so not even rounding differs.
TEST(ExecutorFuzz, SplitsChangeNoBitOfTheOutputs) {
  const Target cpu = TestCpu();
  for (uint64_t seed = 0; seed < 60; ++seed) {
    TestRandom random(seed);
    const Graph graph = RandomNetwork(random);
    const std::vector<Tensor> inputs = RandomInputs(graph, seed);
    Plan plan = RandomPlan(graph, cpu, random);
    plan.ends = {};
    const std::vector<Tensor> expected = OutputsOf(graph, plan, OpenDevice(cpu, 1), inputs);
    for (const Split split : kSplits) {
      const int threads = static_cast<int>(random.Integer(2, 5));
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << threads << " threads by "
                                      << SplitName(split) << " or otherwise");
      for (NodePlan& node : plan.nodes)
        node.split =
            random.Integer(0, 3) > 0 ? split : random.Pick(std::vector<Split>(kSplits, std::end(kSplits)));
      const std::vector<Tensor> outputs = OutputsOf(graph, plan, OpenDevice(cpu, threads), inputs);
      ASSERT_TRUE(SameBits(outputs, expected));
    }
  }
}

}  // namespace
}  // namespace tilesmith
