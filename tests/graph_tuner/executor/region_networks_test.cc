// Networks with regions compute the bits that they compute layer by layer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <optional>

#include "ops/elementwise/activations.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/binary.h"
#include "ops/movement/concat.h"
#include "ops/movement/depth_to_space.h"
#include "ops/passes/passes.h"
#include "ops/pool/pool.h"
#include "ops/resize/resize.h"
#include "tests/graph_tuner/support/bf16_networks.h"
#include "tests/graph_tuner/support/executor_random_network.h"
#include "tests/graph_tuner/support/region_testing.h"
#include "tests/support/ops/quantized_net.h"
#include "tests/support/random_config.h"
#include "tests/support/refusal.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

// Images of several rows, of which convolutions, pooling and so on make others.
class ImageNetwork {
 public:
  ImageNetwork(TestRandom& random, int64_t images) : random_(random), graph_("images") {
    Append(std::make_shared<InputOp>(Shape{images, Channels(), random.Integer(5, 24), random.Integer(3, 14)}),
           {});
  }

  Graph Make() {
    const int64_t nodes = random_.Integer(4, 9);
    for (int64_t i = 0; i < nodes; ++i) AddNode();
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (graph_.Consumers(id).empty() || (id > 0 && random_.Integer(0, 9) == 0)) graph_.MarkOutput(id);
    }
    return std::move(graph_);
  }

 private:
  int64_t Channels() { return random_.Pick(std::vector<int64_t>{2, 3, 8, 16, 16, 17, 24, 32, 64}); }
  const Shape& ShapeOf(NodeId id) const { return graph_.node(id).shape; }

  NodeId Append(OpPtr op, const std::vector<NodeId>& inputs) {
    return graph_.Add("n" + std::to_string(graph_.size()), std::move(op), inputs);
  }

  NodeId Latest() {
    const auto last = static_cast<int64_t>(graph_.size()) - 1;
    return static_cast<NodeId>(random_.Integer(0, 3) > 0 ? last : random_.Integer(0, last));
  }

  std::vector<NodeId> Like(Shape shape, bool any_channels) const {
    std::vector<NodeId> like;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (any_channels) shape[1] = ShapeOf(id)[1];
      if (ShapeOf(id) == shape) like.push_back(id);
    }
    return like;
  }

  void AddNode() {
    const NodeId x = Latest();
    const Shape shape = ShapeOf(x);
    switch (random_.Integer(0, 14)) {
      case 0: {
        const std::vector<NodeId> like = Like(shape, true);
        Append(std::make_shared<ConcatOp>(1), {x, random_.Pick(like)});
        return;
      }
      case 1:
        Append(std::make_shared<BinaryOp>(BinaryKind::kAdd), {x, random_.Pick(Like(shape, false))});
        return;
      case 2:
        Append(std::make_shared<ActivationOp>(Activation{ActivationKind::kHardSwish}), {x});
        return;
      case 3: {
        std::vector<float> scale(static_cast<size_t>(shape[1])), shift(scale.size());
        FillUniform(scale, random_.Next());
        FillUniform(shift, random_.Next());
        Append(std::make_shared<ScaleShiftOp>(scale, shift), {x});
        return;
      }
      case 4:
        return AddPool(x);
      case 5:
        return AddResize(x);
      case 6:
        if (shape[1] % 4 == 0 && shape[2] * shape[3] < 500)
          Append(std::make_shared<DepthToSpaceOp>(DepthToSpaceParams{.bh = 2, .bw = 2}), {x});
        return;
      default:
        return AddConv(x);
    }
  }

  void AddPool(NodeId x) {
    PoolWindow window;
    window.kind = random_.Integer(0, 1) == 0 ? PoolKind::kMax : PoolKind::kAverage;
    window.kh = window.kw = random_.Integer(2, 3);
    window.sh = window.sw = random_.Integer(1, 2);
    window.top = window.left = random_.Integer(0, 1);
    window.bottom = window.right = random_.Integer(0, 1);
    if (ShapeOf(x)[2] >= 6 && ShapeOf(x)[3] >= 6) window.dh = window.dw = random_.Integer(1, 2);
    if (ShapeOf(x)[2] >= 3 && ShapeOf(x)[3] >= 3) Append(std::make_shared<PoolOp>(window), {x});
  }

  void AddResize(NodeId x) {
    const Shape shape = ShapeOf(x);
    if (shape[2] * shape[3] > 400) return;
    ResizeParams params;
    params.mode = random_.Integer(0, 1) == 0 ? ResizeMode::kNearest : ResizeMode::kLinear;
    params.coordinates = random_.Pick(std::vector<ResizeCoordinates>{
        ResizeCoordinates::kAsymmetric, ResizeCoordinates::kHalfPixel, ResizeCoordinates::kAlignCorners});
    params.input = params.output = shape;
    params.scales = {1, 1, 1, 1};
    for (const size_t axis : {2, 3}) {
      params.output[axis] =
          random_.Integer(0, 1) == 0 ? 2 * shape[axis] : random_.Integer(2, 2 * shape[axis]);
      params.scales[axis] = static_cast<float>(params.output[axis]) / static_cast<float>(shape[axis]);
    }
    Append(std::make_shared<ResizeOp>(params), {x});
  }

  void AddConv(NodeId x) {
    const Shape in = ShapeOf(x);
    ConvWorkload w;
    std::tie(w.mb, w.ic, w.ih, w.iw) = std::tie(in[0], in[1], in[2], in[3]);
    w.oc = Channels();
    if (random_.Integer(0, 2) == 0) w.g = w.oc = w.ic;
    if (random_.Integer(0, 9) == 0 && w.ic % 4 == 0) w.g = 4, w.oc = w.ic;
    w.kh = w.kw = random_.Pick(std::vector<int64_t>{1, 3, 3, 3, 5});
    const auto* before = graph_.As<ConvOp>(x);
    const bool pair = before != nullptr && before->workload().g > 1 && random_.Integer(0, 2) > 0;
    if (pair) w.g = w.kh = w.kw = 1;
    w.dh = w.dw = w.kh == 3 && random_.Integer(0, 4) == 0 ? 1 : 0;
    w.ph = w.pw = random_.Integer(0, 3) > 0 ? w.kh / 2 * (w.dh + 1) : random_.Integer(0, w.kh / 2);
    w.sh = w.sw = random_.Integer(0, 3) == 0 ? 2 : 1;
    const auto output = [&](int64_t size) {
      return (size + 2 * w.ph - (w.kh - 1) * (w.dh + 1) - 1) / w.sh + 1;
    };
    if (w.ih + 2 * w.ph < (w.kh - 1) * (w.dh + 1) + 1 || w.iw + 2 * w.ph < (w.kh - 1) * (w.dh + 1) + 1)
      return;
    w.oh = output(w.ih), w.ow = output(w.iw);
    w.post.bias = random_.Integer(0, 1) == 1;
    if (random_.Integer(0, 1) == 1) w.post.activation = {ActivationKind::kRelu};
    const std::vector<NodeId> residuals = Like({w.mb, w.oc, w.oh, w.ow}, false);
    w.post.sum = !residuals.empty() && random_.Integer(0, 1) == 0;
    std::vector<NodeId> inputs = {x};
    if (w.post.sum) inputs.push_back(random_.Pick(residuals));
    const auto filled = [&](const Shape& shape) {
      auto tensor = std::make_shared<Tensor>(shape);
      FillUniform({tensor->floats(), static_cast<size_t>(tensor->size())}, random_.Next());
      return tensor;
    };
    Append(std::make_shared<ConvOp>(w, filled(w.weights_shape()), w.post.bias ? filled({w.oc}) : nullptr),
           inputs);
  }

  TestRandom& random_;
  Graph graph_;
};

Record RecordOf(const ConvWorkload& workload, const Target& cpu, const ConvTemplate& conv_template,
                const Config& config) {
  Record record;
  record.target = cpu;
  record.workload = workload;
  record.template_name = conv_template.Name();
  record.config = config;
  record.layouts = conv_template.Layouts(workload, config);
  return record;
}

// The template's random config in bands, of NCHW[block]c; nullopt where a few tries find none.
std::optional<Record> RecordInBlocks(const ConvWorkload& workload, const Target& cpu,
                                     const ConvTemplate& conv_template, int64_t block, TestRandom& random) {
  const ConfigSpace space = conv_template.Space(workload, cpu);
  for (int attempt = 0; attempt < 20; ++attempt) {
    std::optional<Config> config = RandomValidConfig(space, random, 100);
    if (!config) continue;
    LayoutPair layouts = conv_template.Layouts(workload, *config);
    layouts.in = Layout::Blocked(block).WithType(layouts.in.type());
    layouts.out = layouts.in.WithType(workload.bytes ? layouts.out.type() : layouts.in.type());
    if (layouts != conv_template.Layouts(workload, *config))
      config = conv_template.WithLayouts(workload, space, *config, layouts);
    if (config) config = conv_template.InBands(workload, *config, random.Integer(1, 4), cpu);
    if (config) return RecordOf(workload, cpu, conv_template, *config);
  }
  return std::nullopt;
}

// A random template's random config, of few rows a task where that is a knob; in channels-last where a few
// tries find such a one.
std::optional<Record> RandomRecord(const ConvWorkload& workload, const Target& cpu, DataType type,
                                   TestRandom& random) {
  std::vector<const ConvTemplate*> templates;
  for (const ConvTemplate* one : ConvTemplatesFor(cpu, workload, type))
    if (one->Supports(workload, cpu).ok) templates.push_back(one);
  std::optional<Record> found;
  for (int attempt = 0; attempt < 40 && !templates.empty(); ++attempt) {
    const ConvTemplate& conv_template = *random.Pick(templates);
    const ConfigSpace space = conv_template.Space(workload, cpu);
    std::optional<Config> config = RandomValidConfig(space, random, 100);
    if (!config) continue;
    if (const auto rows = config->Find("rows"); rows && *rows > 4) {
      Config few = *config;
      few.Set("rows", random.Integer(1, 4));
      if (space.IndexOf(few) && space.WhyInvalid(few).empty()) config = few;
    }
    found = RecordOf(workload, cpu, conv_template, *config);
    const bool in = found->layouts.in.Blocks(workload.ic) == 1,
               out = found->layouts.out.Blocks(workload.oc) == 1;
    if (in && (out || random.Integer(0, 3) == 0)) return found;
  }
  return found;
}

void Fuse(const Graph& graph, const FusablePair& pair, const Record& record, Plan& plan) {
  const auto planned = [&](NodeId id) {
    return std::ranges::find(plan.nodes, graph.node(id).name, &NodePlan::node);
  };
  NodePlan &first = *planned(pair.first), &conv = *planned(pair.conv);
  first.fused_into = graph.node(pair.conv).name;
  first.record.reset();
  conv.record = record;
  conv.layouts = record.layouts;
}

// Some pairs of nodes are fused.
void FusePairs(const Graph& graph, const Target& cpu, TestRandom& random, Plan& plan) {
  std::set<NodeId> taken;
  for (const FusablePair& pair : FusablePairs(graph)) {
    if (taken.contains(pair.first) || taken.contains(pair.conv) || random.Integer(0, 1) == 0) continue;
    const std::optional<Record> record = RandomRecord(pair.workload, cpu, DataType::kF32, random);
    if (!record) continue;
    taken.insert({pair.first, pair.conv});
    Fuse(graph, pair, *record, plan);
  }
}

// What is tried with each network: which kinds of steps were in regions.
class RegionTrials {
 public:
  RegionTrials(const Graph& graph, Plan plan, const Target& cpu)
      : graph_(graph), plan_(std::move(plan)), cpu_(cpu) {}

  // A set of neighbours as large as one that grows from a random node gets. Empty where there is none of two.
  std::set<std::string> Grow(TestRandom& random, const Plan& others) const {
    std::vector<NodeId> order;
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (!graph_.IsSource(id)) order.push_back(id);
    std::set<std::string> region;
    std::vector<NodeId> reached = {random.Pick(order)};
    std::set<NodeId> tried;
    while (!reached.empty()) {
      const size_t at = random.Next() % reached.size();
      const NodeId id = reached[at];
      reached.erase(reached.begin() + static_cast<int64_t>(at));
      const std::string& name = graph_.node(id).name;
      const NodePlan& planned = *std::ranges::find(others.nodes, name, &NodePlan::node);
      if (planned.region > 0 || !tried.insert(id).second) continue;
      std::set<std::string> larger = region;
      larger.insert(name);
      if (!planned.fused_into.empty()) larger.insert(planned.fused_into);
      if (region.empty() || Compile(WithRegion(others, larger, 1), 1) != nullptr)
        region = larger;
      else
        continue;
      for (const NodeId next : graph_.Inputs(id))
        if (!graph_.IsSource(next)) reached.push_back(next);
      for (const NodeId next : graph_.Consumers(id)) reached.push_back(next);
    }
    return Compile(WithRegion(others, region, 1), 1) ? region : std::set<std::string>();
  }

  // Null where the steps cannot be a region.
  std::shared_ptr<const CompiledNetwork> Compile(const Plan& plan, int threads) const {
    try {
      return CompileNetwork(graph_, plan, OpenDevice(cpu_, threads));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage) << error.what();
      EXPECT_THAT(error.what(), testing::HasSubstr("plan: region ")) << error.what();
      return nullptr;
    }
  }

  void Run(TestRandom& random, std::map<std::string, int>& kinds) const {
    Plan plan = plan_;
    for (int i = 0; i < 2; ++i) {
      const std::set<std::string> region = Grow(random, plan);
      if (!region.empty()) plan = WithRegion(plan, region, 1);
    }
    if (!plan.regions.empty()) Compare(std::move(plan), random, kinds);
  }

  void Compare(Plan plan, TestRandom& random, std::map<std::string, int>& kinds) const {
    const std::vector<Tensor> inputs = RandomInputs(graph_, random.Next());
    const std::vector<std::string> expected = BytesOfRun(Compile(WithoutRegions(plan), 1), inputs);
    for (const int threads : {1, 2, 3}) {
      for (RegionPlan& region : plan.regions)
        region.band_rows = random.Pick(std::vector<int64_t>{1, 2, 3, 5, 7, 1000});
      SCOPED_TRACE(testing::Message() << threads << " threads, bands of " << plan.regions[0].band_rows
                                      << " rows, and " << plan.regions.back().band_rows);
      const auto network = Compile(plan, threads);
      ASSERT_NE(network, nullptr);
      const std::vector<std::string> outputs = BytesOfRun(network, inputs);
      for (size_t i = 0; i < outputs.size(); ++i)
        EXPECT_TRUE(outputs[i] == expected[i]) << "output " << i << Description(*network);
      if (threads > 1) continue;
      for (size_t i = 0; i < network->steps.size(); ++i) {
        const Step& step = network->program.steps[i];
        if (step.region < 0) continue;
        ++kinds[network->steps[i].kind];
        const auto rolls_in_blocks = [&](int id) {
          const Value& value = network->program.values[id];
          return network->program.buffers[value.buffer].rolls && value.layout.Blocks(value.shape[1]) > 1;
        };
        if (rolls_in_blocks(step.write) && std::ranges::any_of(step.reads, rolls_in_blocks))
          ++kinds[network->steps[i].kind + " in blocks"];
      }
    }
  }

 private:
  static std::string Description(const CompiledNetwork& network) {
    std::string text;
    for (size_t i = 0; i < network.steps.size(); ++i) {
      const KernelRecipe& recipe = network.recipes[i];
      text += "\n" + std::to_string(network.program.steps[i].region) + ": " + network.steps[i].name + " " +
              network.steps[i].kind + " " + network.steps[i].layouts + " " +
              ShapeToString(network.program.values[network.program.steps[i].write].shape);
      if (!recipe.conv_template.empty())
        text += " " + WorkloadToString(recipe.workload) + " " + recipe.config.ToString();
    }
    return text;
  }

  const Graph& graph_;
  const Plan plan_;
  const Target cpu_;
};

std::string Text(const std::map<std::string, int>& kinds) {
  std::string text;
  for (const auto& [kind, count] : kinds) text += kind + " " + std::to_string(count) + ", ";
  return text;
}

void TryNetworks(DataType type, int count, std::map<std::string, int>& kinds) {
  for (int seed = 0; seed < count && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    TestRandom random(static_cast<uint64_t>(seed));
    const Graph graph = ImageNetwork(random, random.Integer(0, 1) == 0 ? 1 : 3).Make();
    const Target cpu = TestCpu();
    Plan plan = PlanOfRecords(graph, cpu, 2, [&](const ConvWorkload& workload) -> std::optional<Record> {
      std::optional<Record> record;
      if (type != DataType::kF32 && random.Integer(0, 3) > 0)
        record = RandomRecord(workload, cpu, type, random);
      if (!record && random.Integer(0, 3) > 0) record = RandomRecord(workload, cpu, DataType::kF32, random);
      return record ? record : DefaultRecord(workload, cpu, 2, DefaultStyle::kRows);
    });
    FusePairs(graph, cpu, random, plan);
    RegionTrials(graph, plan, cpu).Run(random, kinds);
  }
}

TEST(RegionNetworks, ComputeTheSameBitsOfFloats) {
  std::map<std::string, int> kinds;
  TryNetworks(DataType::kF32, CaseCount("TILESMITH_REGION_CASES", 80), kinds);
  SCOPED_TRACE(Text(kinds));
  for (const char* kind : {"MaxPool", "Resize", "Concat", "Add", "DepthToSpace", "transform", "portable"})
    EXPECT_GT(kinds[kind], 0) << kind;
  if (TestCpu().isa == Isa::kPortable) return;
  for (const char* kind : {"direct", "depthwise", "depthwise_pair", "grouped", "winograd"})
    EXPECT_GT(kinds[kind], 0) << kind;
}

TEST(RegionNetworks, ComputeTheSameBitsOfBf16) {
  if (!HasTemplates(TestCpu(), DataType::kBf16)) GTEST_SKIP() << "no bf16 on this CPU";
  std::map<std::string, int> kinds;
  TryNetworks(DataType::kBf16, CaseCount("TILESMITH_REGION_CASES", 30), kinds);
  SCOPED_TRACE(Text(kinds));
}

// The random networks of plans: views, gates, slices, concats in place.
TEST(RegionNetworks, ComputeTheSameBitsInAnyPlan) {
  std::map<std::string, int> kinds;
  for (int seed = 0; seed < CaseCount("TILESMITH_REGION_CASES", 30) && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    TestRandom random(static_cast<uint64_t>(seed));
    const Graph graph = RandomNetwork(random);
    RegionTrials(graph, RandomPlan(graph, TestCpu(), random), TestCpu()).Run(random, kinds);
  }
  for (const char* kind : {"portable", "Concat", "transform"}) EXPECT_GT(kinds[kind], 0) << Text(kinds);
}

// Chains of convolutions by each template that can compute them, in any config, of one image and of several.
TEST(RegionNetworks, ComputeTheSameBitsByAnyTemplate) {
  std::map<std::string, int> kinds;
  const Target cpu = TestCpu();
  TestRandom random(1);
  for (const char* text :
       {"mb1ic16ih19iw11oc16oh19ow11kh3ph1+bias+relu", "mb3ic16ih13iw9oc16oh13ow9kh3ph1+relu",
        "mb1ic32ih14iw7oc32oh14ow7kh1+bias", "g16mb1ic16ih15iw9oc16oh15ow9kh3ph1+bias",
        "g4mb1ic32ih15iw9oc32oh15ow9kh3ph1+relu", "mb1ic2ih17iw12oc2oh17ow12kh3ph1+bias",
        "mb1ic1ih17iw12oc1oh17ow12kh3ph1+bias", "mb1ic16ih18iw7oc16oh18ow7kh3ph2dh1+bias"}) {
    const ConvWorkload workload = ParseWorkload(text);
    Graph graph("chain");
    NodeId x = graph.Add(
        "x", std::make_shared<InputOp>(Shape{workload.mb, workload.ic, workload.ih, workload.iw}), {});
    for (const char* name : {"a", "b", "c"}) x = AddRandomConv(graph, name, text, {x});
    graph.MarkOutput(x);
    for (const DataType type : {DataType::kF32, DataType::kBf16}) {
      for (const ConvTemplate* one : ConvTemplatesFor(cpu, workload, type)) {
        if (!one->Supports(workload, cpu).ok) continue;
        const ConfigSpace space = one->Space(workload, cpu);
        for (int i = 0; i < CaseCount("TILESMITH_REGION_CASES", 30) && !testing::Test::HasFailure(); ++i) {
          const std::optional<Config> config = RandomValidConfig(space, random, 100);
          if (!config) continue;
          SCOPED_TRACE(testing::Message() << one->Name() << " of " << text << ", " << config->ToString());
          const Plan plan = PlanOfRecords(
              graph, cpu, 2, [&](const ConvWorkload&) { return RecordOf(workload, cpu, *one, *config); });
          const RegionTrials trials(graph, plan, cpu);
          Plan banded = WithRegion(plan, {"a", "b", "c"}, 1);
          if (trials.Compile(banded, 1)) trials.Compare(std::move(banded), random, kinds);
        }
      }
    }
  }
  SCOPED_TRACE(Text(kinds));
  EXPECT_GT(kinds["portable"], 0);
  if (cpu.isa == Isa::kPortable) return;
  for (const char* kind : {"direct", "depthwise", "grouped", "winograd", "few_outputs"})
    EXPECT_GT(kinds[kind], 0) << kind;
}

// Chains of four convolutions, the last of which may add what the first one computes.
TEST(RegionNetworks, ComputeTheSameBitsInBlocks) {
  std::map<std::string, int> kinds;
  const Target cpu = TestCpu();
  if (cpu.isa == Isa::kPortable) GTEST_SKIP() << "portable takes no shifted blocks";
  TestRandom random(1);
  for (const char* text :
       {"mb1ic32ih19iw11oc32oh19ow11kh3ph1+bias+sum+relu", "mb3ic33ih13iw9oc33oh13ow9kh3ph1",
        "g24mb2ic24ih15iw9oc24oh15ow9kh3ph1+bias+sum", "g8mb1ic32ih15iw9oc32oh15ow9kh3ph1+sum+relu",
        "g2mb2ic64ih11iw9oc64oh11ow9kh3ph1+bias", "mb1ic3ih17iw12oc3oh17ow12kh3ph1+bias+sum"}) {
    const ConvWorkload workload = ParseWorkload(text);
    Graph graph("chain");
    std::vector<NodeId> chain = {graph.Add(
        "x", std::make_shared<InputOp>(Shape{workload.mb, workload.ic, workload.ih, workload.iw}), {})};
    for (const char* name : {"a", "b", "c", "d"}) {
      std::vector<NodeId> inputs = {chain.back()};
      if (workload.post.sum) inputs.push_back(chain[chain.size() < 3 ? 0 : chain.size() - 2]);
      chain.push_back(AddRandomConv(graph, name, text, inputs));
    }
    graph.MarkOutput(chain.back());
    for (const DataType type : {DataType::kF32, DataType::kBf16}) {
      for (const ConvTemplate* one : ConvTemplatesFor(cpu, workload, type)) {
        if (!one->ShiftsBlocks() || !one->Supports(workload, cpu).ok) continue;
        for (int i = 0; i < CaseCount("TILESMITH_REGION_CASES", 10) && !testing::Test::HasFailure(); ++i) {
          const int64_t block = one->LayoutKnobs().empty() ? 1 : random.Pick(std::vector<int64_t>{8, 16, 32});
          const std::optional<Record> record = RecordInBlocks(workload, cpu, *one, block, random);
          if (!record) continue;
          SCOPED_TRACE(testing::Message()
                       << one->Name() << " of " << text << ", " << record->config.ToString());
          const Plan plan = PlanOfRecords(graph, cpu, 2, [&](const ConvWorkload&) { return record; });
          const RegionTrials trials(graph, plan, cpu);
          trials.Compare(WithRegion(plan, {"a", "b", "c", "d"}, 1), random, kinds);
        }
      }
    }
  }
  SCOPED_TRACE(Text(kinds));
  for (const char* kind : {"direct", "depthwise", "grouped", "winograd", "grouped_winograd", "few_outputs"})
    EXPECT_GT(kinds[std::string(kind) + " in blocks"], 0) << kind;
}

// One pair of a chain is fused.
TEST(RegionNetworks, ComputeTheSameBitsOfFusedPairsInBlocks) {
  std::map<std::string, int> kinds;
  const Target cpu = TestCpu();
  if (cpu.isa == Isa::kPortable) GTEST_SKIP() << "no pairs";
  TestRandom random(1);
  Graph graph("pairs");
  NodeId x = graph.Add("x", std::make_shared<InputOp>(Shape{2, 40, 17, 9}), {});
  const std::string dense = "mb2ic40ih17iw9oc40oh17ow9kh3ph1+relu",
                    point = "mb2ic40ih17iw9oc40oh17ow9kh1+bias",
                    depthwise = "g40mb2ic40ih17iw9oc40oh17ow9kh3ph1+bias+relu";
  const std::vector<std::string> texts = {dense, point, depthwise, point, dense};
  std::set<std::string> region;
  for (const std::string& text : texts) {
    const std::string name(1, static_cast<char>('a' + region.size()));
    region.insert(name);
    x = AddRandomConv(graph, name, text, {x});
  }
  graph.MarkOutput(x);
  const ConvTemplate& fused = FindConvTemplate("depthwise_pair");
  for (const FusablePair& pair : FusablePairs(graph)) {
    if (!fused.Supports(pair.workload, cpu).ok) continue;
    for (int i = 0; i < CaseCount("TILESMITH_REGION_CASES", 20) && !testing::Test::HasFailure(); ++i) {
      const int64_t block = random.Pick(std::vector<int64_t>{8, 16, 32});
      const auto record_of = [&](const ConvWorkload& workload) {
        const ConvTemplate& one = FindConvTemplate(workload.g > 1 ? "depthwise" : "direct");
        const std::optional<Record> found = RecordInBlocks(workload, cpu, one, block, random);
        return found ? found : DefaultRecord(workload, cpu, 2, DefaultStyle::kRows);
      };
      const std::optional<Record> record = RecordInBlocks(pair.workload, cpu, fused, block, random);
      Plan plan = PlanOfRecords(graph, cpu, 2, record_of);
      if (!record) continue;
      SCOPED_TRACE(testing::Message() << WorkloadToString(pair.workload) << " " << record->config.ToString());
      Fuse(graph, pair, *record, plan);
      const RegionTrials trials(graph, plan, cpu);
      const Plan banded = WithRegion(plan, region, 1);
      if (trials.Compile(banded, 1)) trials.Compare(banded, random, kinds);
    }
  }
  EXPECT_GT(kinds["depthwise_pair in blocks"], 0) << Text(kinds);
}

// Residual blocks of bytes, every other network of blocked layouts, or without VNNI.
TEST(RegionNetworks, ComputeTheSameBitsOfBytes) {
  std::map<std::string, int> kinds;
  for (int seed = 0; seed < CaseCount("TILESMITH_REGION_CASES", 60) && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    TestRandom random(static_cast<uint64_t>(seed));
    Target cpu = TestCpu();
    cpu.vnni = cpu.vnni && seed % 4 < 2;
    const int64_t block = seed % 2 == 0 ? 0 : random.Pick(std::vector<int64_t>{1, 8, 16});
    QuantizedNet net;
    net.seed = static_cast<uint64_t>(seed);
    const int64_t channels = random.Pick(std::vector<int64_t>{8, 12, 16, 33, 64});
    QuantizedNet::Id x = net.Stored(net.Input(
        {random.Integer(0, 1) == 0 ? 1 : 3, channels, random.Integer(5, 20), random.Integer(3, 12)}));
    for (int block = 0; block < 2; ++block) {
      x = net.Stored(net.Relu(net.Conv(x, channels, random.Integer(0, 1) == 0 ? 3 : 1)));
      if (random.Integer(0, 1) == 0)
        x = net.Stored(random.Integer(0, 1) == 0 ? net.MaxPool(x) : net.AveragePool(x));
      const QuantizedNet::Id left = net.Stored(net.Conv(x, channels, 1));
      const QuantizedNet::Id right = net.Stored(net.Conv(x, channels, 3, net.activations, channels));
      x = net.Stored(net.Relu(net.Add(left, right)));
    }
    net.graph.MarkOutput(x);
    const Graph graph = OptimizeGraph(net.graph);
    const Plan plan =
        PlanOfRecords(graph, cpu, 2, [&](const ConvWorkload& workload) -> std::optional<Record> {
          if (block > 0) {
            std::vector<const ConvTemplate*> templates = ConvTemplatesFor(cpu, workload);
            std::erase_if(templates, [&](const ConvTemplate* one) {
              return !one->ShiftsBlocks() || !one->Supports(workload, cpu).ok;
            });
            const ConvTemplate& one = *templates[random.Integer(0, 3) > 0 ? templates.size() - 1 : 0];
            return RecordInBlocks(workload, cpu, one, block, random);
          }
          if (random.Integer(0, 3) > 0) return RandomRecord(workload, cpu, DataType::kF32, random);
          return NeedsRecord(workload) ? std::optional(DefaultRecord(workload, cpu, 2)) : std::nullopt;
        });
    RegionTrials(graph, plan, cpu).Run(random, kinds);
  }
  SCOPED_TRACE(Text(kinds));
  for (const char* kind : {"direct_int8", "QuantizedMaxPool"}) {
    EXPECT_GT(kinds[kind], 0) << kind;
    EXPECT_GT(kinds[std::string(kind) + " in blocks"], 0) << kind;
  }
  for (const char* kind : {"winograd_int8", "QuantizedAveragePool"})
    EXPECT_GT(kinds[std::string(kind) + " in blocks"], 0) << kind;
}

Graph ThreeConvs() {
  Graph graph("three");
  NodeId x = graph.Add("x", std::make_shared<InputOp>(Shape{1, 32, 96, 24}), {});
  for (const char* name : {"a", "b", "c"}) x = AddFilledConv(graph, name, {x}, 32, 5);
  graph.MarkOutput(x);
  return graph;
}

TEST(RegionNetworks, TensorsInsideTakeLittleMemory) {
  const Graph graph = ThreeConvs();
  Plan plan = RowsPlan(graph, TestCpu(), 1);
  plan.ends = {Layout::Nhwc(), Layout::Nhwc()};
  const auto layers = CompileNetwork(graph, plan, OpenDevice(TestCpu(), 1));
  const auto bands = CompileNetwork(graph, WithRegion(plan, {"a", "b", "c"}, 2), OpenDevice(TestCpu(), 1));
  EXPECT_LT(2 * bands->memory.bytes, layers->memory.bytes);
}

TEST(RegionNetworks, ProfilesHaveARowForEachStep) {
  const Graph graph = ThreeConvs();
  for (const int threads : {1, 2}) {
    Executor executor(graph, WithRegion(RowsPlan(graph, TestCpu(), threads), {"b", "c"}, 4),
                      OpenDevice(TestCpu(), threads));
    const std::vector<Tensor> inputs = RandomInputs(graph, 1);
    std::vector<Tensor> outputs = UnwrittenOutputs(graph);
    const auto before = std::chrono::steady_clock::now();
    const std::vector<StepProfile> profile = executor.Profile(Pointers(inputs), Pointers(outputs), 1);
    const std::chrono::duration<double> all = std::chrono::steady_clock::now() - before;
    double sum = 0;
    std::set<std::string> names;
    for (const StepProfile& step : profile) {
      EXPECT_GT(step.seconds, 0) << step.name;
      sum += step.seconds;
      names.insert(step.name);
    }
    EXPECT_THAT(names, testing::IsSupersetOf({"a", "b", "c"}));
    EXPECT_LE(sum, all.count());
    EXPECT_LE(LargestDifference(outputs[0], RunReference(graph, Pointers(inputs))[0]), 1e-4);
  }
}

// A mean of all rows, which the network needs before its second half.
Graph GatedConvs(int64_t height, int64_t width) {
  Graph graph("gate");
  const NodeId x = graph.Add("x", std::make_shared<InputOp>(Shape{1, 16, height, width}), {});
  const NodeId a = AddFilledConv(graph, "a", {x}, 16, 3);
  const NodeId mean = graph.Add("mean", std::make_shared<GlobalPoolOp>(PoolKind::kAverage), {a});
  const NodeId gate = graph.Add("gate", std::make_shared<BinaryOp>(BinaryKind::kMul), {a, mean});
  graph.MarkOutput(AddFilledConv(graph, "b", {gate}, 16, 3));
  return graph;
}

TEST(RegionNetworks, PlansForOtherSizesKeepThem) {
  const Plan plan = WithRegion(RowsPlan(GatedConvs(16, 12), TestCpu(), 2), {"gate", "b"}, 4);
  struct Case {
    int64_t height, width, band_rows;
  };
  for (const auto& [height, width, band_rows] :
       {Case{32, 6, 8}, Case{32, 12, 4}, Case{32, 24, 2}, Case{8, 12, 2}, Case{2, 200, 1}}) {
    SCOPED_TRACE(testing::Message() << height << "x" << width);
    const Graph graph = GatedConvs(height, width);
    const std::optional<Plan> other = PlanOfOtherSize(plan, graph, TestCpu());
    ASSERT_TRUE(other.has_value());
    EXPECT_EQ(other->regions, std::vector<RegionPlan>({{band_rows}}));
    const std::vector<Tensor> inputs = RandomInputs(graph, 1);
    const auto bytes = [&](const Plan& run) {
      return BytesOfRun(CompileNetwork(graph, run, OpenDevice(TestCpu(), 2)), inputs);
    };
    EXPECT_EQ(bytes(*other), bytes(WithoutRegions(*other)));
  }
}

TEST(RegionNetworks, WhatIsNoRegionIsLeftOut) {
  const Graph graph = GatedConvs(16, 12);
  const Plan plan = RowsPlan(graph, TestCpu(), 2);
  const Plan both = WithRegion(WithRegion(plan, {"a", "mean"}, 3), {"gate", "b"}, 4);
  EXPECT_TRUE(
      SameSchedules(WithRegionsThatCompile(graph, both, TestCpu()), WithRegion(plan, {"gate", "b"}, 4)));
  const Graph other = GatedConvs(32, 6);
  EXPECT_EQ(PlanOfOtherSize(both, other, TestCpu()).value().regions, std::vector<RegionPlan>({{8}}));
}

TEST(RegionNetworks, WhatIsNoRegionIsRefusedByName) {
  const Graph graph = GatedConvs(8, 8);
  const auto refusal = [&](const std::set<std::string>& nodes) {
    return Refusal(ErrorCode::kUsage, [&] {
      const Plan plan = WithRegion(RowsPlan(graph, TestCpu(), 1), nodes, 1);
      CompileNetwork(graph, plan, OpenDevice(TestCpu(), 1));
    });
  };
  EXPECT_THAT(refusal({"gate"}), testing::HasSubstr("plan: region 1: a region is at least two steps"));
  EXPECT_THAT(refusal({"a", "gate"}), testing::HasSubstr("region 1 needs what others make of its results"));
  EXPECT_THAT(refusal({"a", "mean", "gate"}), testing::HasSubstr("plan: region 1: \"mean\""));
  Plan plan = RowsPlan(graph, TestCpu(), 1);
  plan.nodes[0].region = 1;
  EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { CompileNetwork(graph, plan, OpenDevice(TestCpu(), 1)); }),
              testing::HasSubstr("node \"a\": in region 1, of which the plan says nothing"));
}

}  // namespace
}  // namespace tilesmith
