#include "graph_tuner/plan/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "graph_tuner/problem/graph_tune.h"
#include "layouts/base/text_file.h"
#include "ops/dense/tasks.h"
#include "ops/networks/networks.h"
#include "ops/passes/passes.h"
#include "tests/graph_tuner/support/synthetic.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_files.h"
#include "tuner/records/log.h"

namespace tilesmith {
namespace {

using testing::HasSubstr;

class PlanFileTest : public testing::Test {
 protected:
  static Plan MakePlan(const Graph& graph, bool allow_defaults = false) {
    GraphTuneOptions options;
    options.cpu = SyntheticCpu();
    options.threads = 2;
    options.allow_defaults = allow_defaults;
    SyntheticCosts costs(1);
    return GraphTune(graph, allow_defaults ? std::vector<Record>() : SyntheticLog(graph, {1, 8}, 4), costs,
                     options)
        .plan;
  }
  std::string Write(const std::string& text) const {
    std::ofstream(path_) << text;
    return path_;
  }

  const TemporaryDirectory folder_;
  const std::string path_ = folder_.File("plan.jsonl");
  const Graph graph_ = RandomNetwork(12, 10);
};

void ExpectSame(const Plan& a, const Plan& b) {
  EXPECT_EQ(a.network, b.network);
  EXPECT_EQ(a.graph_hash, b.graph_hash);
  EXPECT_EQ(a.target, b.target);
  EXPECT_EQ(a.threads, b.threads);
  EXPECT_EQ(a.solver, b.solver);
  EXPECT_EQ(a.certificate, b.certificate);
  EXPECT_EQ(a.predicted_seconds, b.predicted_seconds);
  EXPECT_EQ(a.placement, b.placement);
  ASSERT_EQ(a.nodes.size(), b.nodes.size());
  for (size_t i = 0; i < a.nodes.size(); ++i) {
    const NodePlan &x = a.nodes[i], &y = b.nodes[i];
    EXPECT_EQ(x.node, y.node);
    EXPECT_EQ(x.op_type, y.op_type);
    EXPECT_EQ(x.layouts, y.layouts);
    EXPECT_EQ(x.fused_into, y.fused_into);
    EXPECT_EQ(x.split, y.split);
    EXPECT_EQ(x.crossing_seconds, y.crossing_seconds);
    EXPECT_EQ(x.predicted_seconds, y.predicted_seconds);
    ASSERT_EQ(x.record.has_value(), y.record.has_value());
    if (!x.record) continue;
    EXPECT_EQ(x.record->workload, y.record->workload);
    EXPECT_EQ(x.record->seconds, y.record->seconds);
    EXPECT_EQ(x.record->sample_seconds, y.record->sample_seconds);
    for (const auto& [name, value] : x.record->config.knobs()) EXPECT_EQ(y.record->config.Get(name), value);
  }
  const std::vector<Correction> learned = a.corrections.All(), read = b.corrections.All();
  ASSERT_EQ(learned.size(), read.size());
  for (size_t i = 0; i < learned.size(); ++i) {
    EXPECT_EQ(learned[i].of, read[i].of);
    EXPECT_EQ(learned[i].name, read[i].name);
    EXPECT_EQ(learned[i].option, read[i].option);
    EXPECT_EQ(learned[i].stand_alone_seconds, read[i].stand_alone_seconds);
    EXPECT_EQ(learned[i].seconds, read[i].seconds);
    EXPECT_EQ(learned[i].crossing_seconds, read[i].crossing_seconds);
  }
  ASSERT_EQ(a.transforms.size(), b.transforms.size());
  for (size_t i = 0; i < a.transforms.size(); ++i) {
    EXPECT_EQ(a.transforms[i].tensor, b.transforms[i].tensor);
    EXPECT_EQ(a.transforms[i].from, b.transforms[i].from);
    EXPECT_EQ(a.transforms[i].to, b.transforms[i].to);
    EXPECT_EQ(a.transforms[i].predicted_seconds, b.transforms[i].predicted_seconds);
    EXPECT_EQ(a.transforms[i].interpolated, b.transforms[i].interpolated);
  }
}

TEST_F(PlanFileTest, HoldsPlansForSeveralSizes) {
  Plan first = MakePlan(graph_), second = first;
  first.corrections.Learn({Correction::Of::kNode, "a", "NCHW", 1e-3, 2e-3});
  second.graph_hash = "another";
  second.nodes.pop_back();
  WritePlans(path_, std::vector<Plan>{first, second});
  const std::vector<Plan> read = ReadPlans(path_);
  ASSERT_EQ(read.size(), 2u);
  ExpectSame(first, read[0]);
  ExpectSame(second, read[1]);
  const Plan header = ReadPlanHeader(path_);
  EXPECT_EQ(header.graph_hash, first.graph_hash);
  EXPECT_TRUE(header.nodes.empty() && header.transforms.empty());
  EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { ReadPlan(path_); }), HasSubstr("plans for 2 sizes"));
  const std::string text = ReadFile(path_);
  EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { ReadPlans(Write(text.substr(text.find('\n') + 1))); }),
              HasSubstr(":1: "));
  EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { ReadPlanHeader(Write("\n")); }), HasSubstr("empty"));
}

TEST_F(PlanFileTest, RoundTripsAndLeavesNoTemporaryFile) {
  Plan plan = MakePlan(graph_);
  ASSERT_FALSE(plan.transforms.empty());
  plan.transforms[0].interpolated = true;
  plan.placement = {1e-7, 2e-6};
  plan.corrections.Learn({Correction::Of::kNode, "a", "NCHW", 1e-3, 2e-3});
  plan.corrections.Learn({Correction::Of::kTensor, "a", "NCHW -> NHWC", 1e-4, 0});
  Write("an older plan\n");
  WritePlan(path_, plan);
  const Plan read = ReadPlan(path_);
  ExpectSame(plan, read);
  CheckPlan(read, graph_, SyntheticCpu(), 2);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

TEST_F(PlanFileTest, RemembersWhatAccuracyItWasMadeFor) {
  Plan plan = MakePlan(graph_);
  plan.accuracy = {1e-5, {"winograd"}};
  WritePlan(path_, plan);
  EXPECT_EQ(ReadPlan(path_).accuracy, plan.accuracy);
  plan.accuracy = {};
  WritePlan(path_, plan);
  EXPECT_EQ(ReadPlan(path_).accuracy, plan.accuracy);
}

TEST_F(PlanFileTest, RemembersTheLayoutsOfItsEnds) {
  Plan plan = MakePlan(graph_);
  for (const EndLayouts& ends : {EndLayouts{}, EndLayouts{Layout::Nhwc(), Layout::Blocked(8)}}) {
    plan.ends = ends;
    WritePlan(path_, plan);
    EXPECT_EQ(ReadPlan(path_).ends, ends);
  }
}

TEST_F(PlanFileTest, RemembersSplits) {
  Plan plan = MakePlan(graph_);
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    plan.nodes[i].split = kSplits[i % std::size(kSplits)];
    plan.nodes[i].crossing_seconds = 1e-6 * static_cast<double>(i);
  }
  plan.corrections.Learn({Correction::Of::kNode, "a", "NHWC by rows", 1e-6, 2e-6, 3e-7});
  WritePlan(path_, plan);
  ExpectSame(plan, ReadPlan(path_));
  std::string text = ReadFile(path_);
  const std::string rows = "\"split\":\"rows\"";
  text.replace(text.find(rows), rows.size(), "\"split\":\"columns\"");
  EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { ReadPlan(Write(text)); }),
              HasSubstr("\"columns\" (known: even, rows, channels, images, one)"));
}

// Rounding leaves next to nothing of some; what is written must be read again.
TEST_F(PlanFileTest, RemembersRegions) {
  Plan plan = MakePlan(graph_);
  plan.regions = {{4}, {1}};
  for (size_t i = 0; i < plan.nodes.size(); ++i) plan.nodes[i].region = static_cast<int>(i % 3);
  WritePlan(path_, plan);
  const Plan read = ReadPlan(path_);
  ExpectSame(read, plan);
  EXPECT_EQ(read.regions, plan.regions);
  for (size_t i = 0; i < plan.nodes.size(); ++i) EXPECT_EQ(read.nodes[i].region, plan.nodes[i].region);
  EXPECT_TRUE(SameSchedules(read, plan));
  // A plan without any has no word of them.
  WritePlan(path_, WithoutRegions(plan));
  EXPECT_THAT(ReadTextFile(path_), testing::Not(HasSubstr("region")));
}

TEST_F(PlanFileTest, WrongRegionsAreRefused) {
  Plan plan = MakePlan(graph_);
  plan.regions = {{4}, {2}};
  plan.nodes[0].region = 2;
  WritePlan(path_, plan);
  const std::string text = ReadTextFile(path_);
  const auto refusal = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    Write(changed.replace(at, from.size(), to));
    return Refusal(ErrorCode::kUsage, [&] { ReadPlan(path_); });
  };
  const std::string second = R"("band_rows":2,"region":2)";
  EXPECT_THAT(refusal(second, R"("band_rows":2,"region":3)"),
              HasSubstr("plan.jsonl:3: field \"region\" is 3 (expected: 2)"));
  EXPECT_THAT(refusal(second, R"("band_rows":2,"region":1)"), HasSubstr("(expected: 2)"));
  EXPECT_THAT(refusal(second, R"("band_rows":0,"region":2)"), HasSubstr("field \"band_rows\" is 0"));
  EXPECT_THAT(refusal(second, R"("band_rows":-1,"region":2)"), HasSubstr("field \"band_rows\" is -1"));
  EXPECT_THAT(refusal(second, R"("region":2)"), HasSubstr("band_rows"));
  for (const std::string wrong : {"3", "0", "-1", "5000000000"})
    EXPECT_THAT(refusal(R"("in_region":2)", "\"in_region\":" + wrong),
                HasSubstr("plan.jsonl:4: field \"in_region\" is " + wrong + " (known: 2 regions)"));
}

TEST_F(PlanFileTest, TimesThatRoundingHasLeftAreNone) {
  Plan plan = MakePlan(graph_);
  plan.nodes.at(0).predicted_seconds = plan.nodes.at(0).crossing_seconds = 4.5e-13;
  WritePlan(path_, plan);
  EXPECT_EQ(ReadPlan(path_).nodes.at(0).predicted_seconds, 0);
  EXPECT_EQ(ReadPlan(path_).nodes.at(0).crossing_seconds, 0);
}

TEST_F(PlanFileTest, ConvLinesAreTuningRecords) {
  const Plan plan = MakePlan(graph_);
  WritePlan(path_, plan);
  size_t convs = 0;
  for (const NodePlan& node : plan.nodes) convs += node.record.has_value();
  ASSERT_GT(convs, 0u);
  EXPECT_EQ(ReadLog(path_).records.size(), convs);
}

TEST_F(PlanFileTest, UnmeasuredDefaultsRoundTripButAreNoRecords) {
  const Plan plan = MakePlan(graph_, /*allow_defaults=*/true);
  WritePlan(path_, plan);
  ExpectSame(plan, ReadPlan(path_));
  EXPECT_TRUE(ReadLog(path_).records.empty());
}

// The first fusable pair of the network, fused in an otherwise good plan.
Plan WithAFusedPair(Plan plan, const Graph& graph) {
  const FusablePair pair = FusablePairs(graph).at(0);
  for (NodePlan& node : plan.nodes) {
    if (node.node == graph.node(pair.conv).name) node.record->workload = pair.workload;
    if (node.node != graph.node(pair.first).name) continue;
    node.fused_into = graph.node(pair.conv).name;
    node.layouts = {};
    node.record.reset();
  }
  return plan;
}

TEST_F(PlanFileTest, FusedPairsRoundTripAndAreChecked) {
  uint64_t seed = 0;
  while (FusablePairs(RandomNetwork(seed, 10)).empty()) ++seed;
  const Graph graph = RandomNetwork(seed, 10);
  const Plan plan = MakePlan(graph), fused = WithAFusedPair(plan, graph);
  const FusablePair pair = FusablePairs(graph)[0];
  const std::string first = graph.node(pair.first).name, conv = graph.node(pair.conv).name;
  WritePlan(path_, fused);
  ExpectSame(fused, ReadPlan(path_));
  CheckPlan(fused, graph, SyntheticCpu(), 2);
  size_t records = 0;
  for (const NodePlan& node : fused.nodes) records += node.record.has_value();
  EXPECT_EQ(ReadLog(path_).records.size(), records);
  std::ifstream in(path_);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  EXPECT_THAT(text, HasSubstr("\"fused_into\":\"" + conv + "\""));

  const auto refusal = [&](const Plan& p) {
    return Refusal(ErrorCode::kUsage, [&] { CheckPlan(p, graph, SyntheticCpu(), 2); });
  };
  const auto node_of = [](Plan& p, const std::string& name) -> NodePlan& {
    return *std::ranges::find(p.nodes, name, &NodePlan::node);
  };
  Plan half = plan, other_half = plan, elsewhere = fused;
  node_of(half, first) = node_of(elsewhere, first);
  EXPECT_THAT(refusal(half), testing::AllOf(HasSubstr(first), HasSubstr("has no record of")));
  node_of(other_half, conv).record->workload = pair.workload;
  EXPECT_THAT(refusal(other_half), HasSubstr("nothing is fused into node \"" + conv));
  node_of(elsewhere, first).fused_into = first;
  EXPECT_THAT(refusal(elsewhere), HasSubstr("cannot be fused into"));
}

TEST_F(PlanFileTest, ErrorsNameFileAndLine) {
  EXPECT_THAT(Refusal(ErrorCode::kEnvironment, [&] { ReadPlan(folder_.File("none.jsonl")); }),
              testing::AllOf(HasSubstr("cannot read"), HasSubstr("none.jsonl")));
  EXPECT_THAT(Refusal(ErrorCode::kEnvironment, [&] { WritePlan("/nonexistent/p.jsonl", MakePlan(graph_)); }),
              HasSubstr("/nonexistent/p.jsonl"));
  auto read = [&](const std::string& text) {
    return Refusal(ErrorCode::kUsage, [&] { ReadPlan(Write(text)); });
  };
  EXPECT_THAT(read(""), HasSubstr("the plan is empty"));
  EXPECT_THAT(read("hello\n"), HasSubstr(path_ + ":1: not JSON"));
  EXPECT_THAT(read("{\"a\":1}\n"), HasSubstr(":1: not a plan"));
  EXPECT_THAT(read("{\"tilesmith_plan\":9}\n"), HasSubstr(":1: plan format 9"));
  WritePlan(path_, MakePlan(graph_));
  std::ifstream in(path_);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  const size_t lines = static_cast<size_t>(std::count(good.begin(), good.end(), '\n'));
  const std::string torn = good.substr(0, good.size() - 10);
  EXPECT_THAT(read(torn), HasSubstr(fmt::format(":{}: not JSON", lines)));
  EXPECT_THAT(read(good + "{\"node\":\"x\",\"op\":3}\n"),
              HasSubstr(fmt::format(":{}: field \"op\"", lines + 1)));
  EXPECT_THAT(read(good + R"({"transform":"t","from":"NCHW","to":"NHCW","predicted_seconds":1})" + "\n"),
              HasSubstr("NHCW"));
  const std::string deep = "{\"node\":" + std::string(300'000, '[') + std::string(300'000, ']') + "}\n";
  EXPECT_THAT(read(good + deep), HasSubstr(fmt::format(":{}: not JSON", lines + 1)));
  EXPECT_THAT(read(good + R"({"transform":"t","from":"NCHW","to":"NHWC","predicted_seconds":1e300})" + "\n"),
              HasSubstr("field \"predicted_seconds\" is 1e+300"));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return read(text.replace(text.find(from), from.size(), to));
  };
  EXPECT_THAT(with("\"threads\":2,\"tilesmith_plan\"", "\"threads\":-2,\"tilesmith_plan\""),
              HasSubstr(":1: field \"threads\" is -2"));
  EXPECT_THAT(with("\"threads\":2,\"tilesmith_plan\"", "\"threads\":4294967298,\"tilesmith_plan\""),
              HasSubstr(":1: field \"threads\" is 4294967298"));
  EXPECT_THAT(with("\"graph_hash\"", "\"max_error\":-1,\"graph_hash\""), HasSubstr("\"max_error\" is -1"));
  EXPECT_THAT(with("\"graph_hash\"", "\"input_layout\":\"NCHW65536c\",\"graph_hash\""),
              HasSubstr("\"input_layout\" is \"NCHW65536c\""));
}

TEST_F(PlanFileTest, HowTheModelIsQuantised) {
  Plan plan = MakePlan(graph_);
  WritePlan(path_, plan);
  EXPECT_EQ(ReadPlan(path_).quantization, nullptr);
  ModelQuantization quantization;
  quantization.model_hash = "0123456789abcdef";
  quantization.options = {.activations = {.type = DataType::kI8, .symmetric = true},
                          .largest_weight = kLargestReducedWeight,
                          .keep = {"a", "b"},
                          .op_types = {"Conv"},
                          .keep_last = true};
  quantization.unknown = {"late"};
  quantization.tensors = {{"x", {1e-30f, 0, DataType::kI8}}, {"y", {0.1f, -128, DataType::kI8}}};
  quantization.calibration = "minmax, 8 samples of random inputs (seed 1)";
  quantization.random_inputs = true;
  plan.quantization = std::make_shared<const ModelQuantization>(quantization);
  WritePlan(path_, plan);
  const Plan read = ReadPlan(path_);
  ExpectSame(plan, read);
  ASSERT_NE(read.quantization, nullptr);
  const ModelQuantization& same = *read.quantization;
  EXPECT_EQ(same.model_hash, quantization.model_hash);
  EXPECT_EQ(same.tensors, quantization.tensors);
  EXPECT_EQ(same.unknown, quantization.unknown);
  EXPECT_EQ(same.calibration, quantization.calibration);
  EXPECT_TRUE(same.random_inputs);
  EXPECT_EQ(ActivationName(same.options.activations), "i8-symmetric");
  EXPECT_EQ(same.options.largest_weight, kLargestReducedWeight);
  EXPECT_EQ(same.options.keep, quantization.options.keep);
  EXPECT_EQ(same.options.op_types, quantization.options.op_types);
  EXPECT_FALSE(same.options.keep_first);
  EXPECT_TRUE(same.options.keep_last);

  const std::string good = ReadTextFile(path_);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return Refusal(ErrorCode::kUsage, [&] { ReadPlan(Write(text)); });
  };
  EXPECT_THAT(with("\"i8-symmetric\"", "\"i4\""),
              HasSubstr("activations must be one of u8, i8, i8-symmetric"));
  EXPECT_THAT(with(",-128]", ",-129]"), HasSubstr(":1: tensor \"y\" is "));
  EXPECT_THAT(with(",-128]", "]"), HasSubstr("a scale above 0 and a zero point of i8"));
  EXPECT_THAT(with("\"largest_weight\":63", "\"largest_weight\":0"), HasSubstr("\"largest_weight\" is 0"));
  EXPECT_THAT(with("\"model_hash\"", "\"other\""), HasSubstr("field \"model_hash\" is missing"));
  EXPECT_THAT(with("\"keep\":[\"a\"", "\"keep\":[1"), HasSubstr("field \"keep\" is a number"));
}

TEST_F(PlanFileTest, ABrokenCorrectionCostsThatLine) {
  const Plan plan = MakePlan(graph_);
  Plan corrected = plan;
  corrected.corrections.Learn({Correction::Of::kNode, "a", "NCHW", 1e-3, 2e-3});
  corrected.corrections.Learn({Correction::Of::kNode, "b", "NCHW", 1e-3, 2e-3});
  WritePlan(path_, corrected);
  const std::string good = ReadTextFile(path_), whole = R"({"corrected":"b",)";
  const size_t at = good.find(whole);
  ASSERT_NE(at, std::string::npos);
  Plan left = plan;
  left.corrections.Learn({Correction::Of::kNode, "a", "NCHW", 1e-3, 2e-3});
  const int64_t line = 1 + std::count(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  const auto expect_skipped = [&](const std::string& text, const char* why) {
    std::vector<std::string> skipped;
    ExpectSame(left, ReadPlan(Write(text), &skipped));
    ASSERT_EQ(skipped.size(), 1u);
    EXPECT_THAT(skipped[0], HasSubstr(fmt::format("{}:{}: skipped: ", path_, line)));
    EXPECT_THAT(skipped[0], HasSubstr(why));
    ExpectSame(left, ReadPlan(path_));
  };
  for (size_t torn = 1; torn < good.size() - at - 1; ++torn)
    expect_skipped(good.substr(0, at + torn), "not JSON");
  const std::string before = good.substr(0, at);
  expect_skipped(before + R"({"corrected":"b","opt)" + "\n", "not JSON");
  expect_skipped(before + R"({"corrected":"b","option":"NCHW","stand_alone_seconds":1,"seconds":-1})" + "\n",
                 "\"seconds\" is -1");
  expect_skipped(before + R"({"option":"NCHW","corrected":"b","stand_alone_seconds":1e-300,"seconds":1})",
                 "\"stand_alone_seconds\" is 1e-300");
}

TEST_F(PlanFileTest, TransformsOfUnknownTensorsAreRefused) {
  Plan plan = MakePlan(graph_);
  plan.transforms.push_back({"nowhere", Layout::Nchw(), Layout::Nhwc(), 1e-6});
  EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { CheckPlan(plan, graph_, SyntheticCpu(), 2); }),
              HasSubstr("a transform of \"nowhere\""));
}

TEST_F(PlanFileTest, CheckTellsSizesApart) {
  const auto network = [](int64_t batch, int64_t size) {
    return OptimizeGraph(BuildNetwork("squeezenet1_1", {.batch = batch, .height = size, .width = size}));
  };
  const Plan plan = MakePlan(network(2, 48), true);
  EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { CheckPlan(plan, network(1, 48), SyntheticCpu(), 2); }),
              HasSubstr("made for inputs of input=2x3x48x48, not of input=1x3x48x48"));
}

TEST_F(PlanFileTest, CheckRefusesOtherNetworksMachinesVersionsAndThreads) {
  const Plan plan = MakePlan(graph_);
  auto refusal = [&](const Plan& p, const Graph& graph, const Target& cpu, int threads, bool force) {
    return Refusal(ErrorCode::kUsage, [&] { CheckPlan(p, graph, cpu, threads, force); });
  };
  const Target cpu = SyntheticCpu();
  EXPECT_THAT(refusal(plan, RandomNetwork(13, 10), cpu, 2, false),
              HasSubstr("made for network \"random12\""));
  EXPECT_THAT(refusal(plan, RandomNetwork(13, 10), cpu, 2, true), HasSubstr("node \""));
  Target other = cpu;
  other.model = "another";
  EXPECT_THAT(refusal(plan, graph_, other, 2, false), HasSubstr("made on \"synthetic\""));
  CheckPlan(plan, graph_, other, 2, true);
  Plan older = plan;
  older.target.version = "0.0.1";
  EXPECT_THAT(refusal(older, graph_, cpu, 2, false), HasSubstr("made by tilesmith 0.0.1, this is "));
  CheckPlan(older, graph_, cpu, 2, true);
  EXPECT_THAT(refusal(plan, graph_, cpu, 1, false), HasSubstr("made for 2 threads"));
  CheckPlan(plan, graph_, cpu, 1, true);

  Plan lacking = plan, twice = plan, more = plan, wrong_op = plan, bare = plan, workload = plan;
  lacking.nodes.pop_back();
  EXPECT_THAT(refusal(lacking, graph_, cpu, 2, false), HasSubstr("is missing"));
  twice.nodes.push_back(plan.nodes[0]);
  EXPECT_THAT(refusal(twice, graph_, cpu, 2, false), HasSubstr("appears twice"));
  more.nodes.push_back(plan.nodes[0]);
  more.nodes.back().node = "surplus";
  EXPECT_THAT(refusal(more, graph_, cpu, 2, false), HasSubstr("1 nodes that the network does not have"));
  wrong_op.nodes[0].op_type = "Gemm";
  EXPECT_THAT(refusal(wrong_op, graph_, cpu, 2, false), HasSubstr("is Gemm in the plan"));
  const auto conv = std::find_if(plan.nodes.begin(), plan.nodes.end(),
                                 [](const NodePlan& node) { return node.record.has_value(); });
  ASSERT_NE(conv, plan.nodes.end());
  const size_t index = static_cast<size_t>(conv - plan.nodes.begin());
  bare.nodes[index].record.reset();
  EXPECT_THAT(refusal(bare, graph_, cpu, 2, false), HasSubstr("has no record"));
  workload.nodes[index].record->workload.oc += 8;
  EXPECT_THAT(refusal(workload, graph_, cpu, 2, false), HasSubstr("in the network"));
}

}  // namespace
}  // namespace tilesmith
