// `tilesmith explain`, end to end on a network of two convolutions whose records are made up: differences of
// half a second, beside which no measured transform or pooling counts.
#include <onnx/onnx_pb.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "graph_tuner/plan/plan_file.h"
#include "graph_tuner/problem/graph_tune.h"
#include "tests/graph_tuner/support/region_plans.h"
#include "tests/graph_tuner/support/synthetic.h"
#include "tests/support/temporary_files.h"
#include "tests/support/test_cpu.h"
#include "tests/tools/cli.h"
#include "tools/cli/model.h"
#include "tuner/records/log.h"

namespace tilesmith {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

void AddConvNode(onnx::GraphProto& graph, const std::string& name, const std::string& input,
                 int64_t in_channels) {
  constexpr int64_t kChannels = 16;
  onnx::TensorProto* weights = graph.add_initializer();
  weights->set_name(name + ".weight");
  weights->set_data_type(onnx::TensorProto::FLOAT);
  for (const int64_t dim : {kChannels, in_channels, int64_t{1}, int64_t{1}}) weights->add_dims(dim);
  for (int64_t i = 0; i < kChannels * in_channels; ++i) weights->add_float_data(0.01f);
  onnx::NodeProto* node = graph.add_node();
  node->set_op_type("Conv");
  node->set_name(name);
  node->add_input(input);
  node->add_input(name + ".weight");
  node->add_output(name);
}

// x: 1x8x8x8 -> first (1x1 conv) -> pool -> second (1x1 conv).
std::string TwoConvs() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  onnx::ValueInfoProto* input = graph.add_input();
  input->set_name("x");
  onnx::TypeProto_Tensor* tensor = input->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(onnx::TensorProto::FLOAT);
  for (const int64_t dim : {1, 8, 8, 8}) tensor->mutable_shape()->add_dim()->set_dim_value(dim);
  AddConvNode(graph, "first", "x", 8);
  onnx::NodeProto* pool = graph.add_node();
  pool->set_op_type("MaxPool");
  pool->set_name("pool");
  pool->add_input("first");
  pool->add_output("pool");
  onnx::AttributeProto* kernel = pool->add_attribute();
  kernel->set_name("kernel_shape");
  kernel->set_type(onnx::AttributeProto::INTS);
  kernel->add_ints(2);
  kernel->add_ints(2);
  AddConvNode(graph, "second", "pool", 16);
  graph.add_output()->set_name("second");
  return model.SerializeAsString();
}

class ExplainTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TemporaryDirectory();
    WriteFile(Model(), TwoConvs());
    LogWriter log(Log());
    for (const Record& record : Records()) log.Append(record);
  }
  static void TearDownTestSuite() {
    delete directory_;
    directory_ = nullptr;
  }
  static std::string File(const std::string& name) { return directory_->File(name); }
  static std::string Model() { return File("net.onnx"); }
  static std::string Log() { return File("log.jsonl"); }
  static Graph Network() { return LoadModel({Model(), 0, {}}); }

  static Record Tried(const char* node, int64_t in, int64_t out, double seconds) {
    const Graph graph = Network();
    const auto& conv = *graph.As<ConvOp>(graph.Find(node).value());
    Record record = SyntheticRecord(conv.workload(), in, out, seconds);
    record.target = TestCpu();
    record.conditions.threads = 1;
    return record;
  }
  // The best: first and pool in 16c, second from 16c to NCHW.
  static std::vector<Record> Records() {
    Record failed = Tried("second", 16, 16, 1);
    failed.status = TrialStatus::kRunCrash;
    failed.seconds = 0;
    return {Tried("first", 1, 16, 1.0), Tried("first", 1, 1, 1.75), Tried("second", 16, 1, 0.5),
            Tried("second", 1, 1, 1.0), failed};
  }

  static ProgramResult Explain(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"explain", Model(), "--log", Log(), "--threads", "1"});
    return Tilesmith(arguments);
  }
  static Json ExplainAsJson(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    const ProgramResult result = Explain(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out, nullptr, false);
  }

 private:
  static inline TemporaryDirectory* directory_ = nullptr;
};

std::string Text(const Json& json) { return json.get<std::string>(); }
double Milli(const Json& json) { return json.get<double>() * 1e3; }

TEST_F(ExplainTest, ANodeWithEveryOption) {
  const Json json = ExplainAsJson({"second"});
  EXPECT_EQ(json["certificate"], "optimal");
  EXPECT_NEAR(Milli(json["predicted_seconds"]), 1500, 100);
  ASSERT_EQ(json["options"].size(), 2u);
  const Json &best = json["options"][0], &other = json["options"][1];
  EXPECT_EQ(best["mark"], "best");
  EXPECT_EQ(best["reads"], "NCHW16c");
  EXPECT_EQ(best["off_seconds"], 0);
  EXPECT_EQ(best["own_seconds"], 0.5);
  EXPECT_EQ(best["template"], "portable");
  EXPECT_EQ(other["reads"], "NCHW");
  EXPECT_NEAR(Milli(other["off_seconds"]), 500, 100);
  double sum = 0;
  for (const Json& term : json["terms"]) sum += term["seconds"].get<double>();
  EXPECT_NEAR(sum, json["off_seconds"].get<double>(), 1e-12);
  EXPECT_EQ(json["off_seconds"], other["off_seconds"]);
  EXPECT_EQ(json["why_not"], "NCHW");
  EXPECT_THAT(Text(json["why"]), testing::StartsWith("NCHW: 1000.0000"));
  EXPECT_THAT(Text(json["why"]), HasSubstr(" > NCHW16c -> NCHW: 500.0000"));
}

TEST_F(ExplainTest, BesideALogThatIsOnlyForReading) {
  const TemporaryDirectory directory;
  const std::string log = directory.File("log.jsonl"), model = directory.File("model.onnx");
  WriteFile(log, ReadFile(Log()));
  WriteFile(model, ReadFile(Model()));
  using std::filesystem::perms;
  std::filesystem::permissions(
      directory.path(), perms::owner_read | perms::owner_exec | perms::others_read | perms::others_exec);
  std::vector<std::string> command = {TILESMITH_BINARY, "explain", model, "--log", log, "--threads", "1"};
  if (geteuid() == 0)  // whom permissions do not bind
    command.insert(command.begin(), {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"});
  const ProgramResult result = RunProgram(command);
  std::filesystem::permissions(directory.path(), perms::owner_all);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("log.costs.jsonl may not be written to: costs that it lacks are not kept "
                                    "(--costs names another file)"));
}

TEST_F(ExplainTest, TheSameAsText) {
  const ProgramResult result = Explain({"second"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("every way to compute it"));
  EXPECT_THAT(result.out, HasSubstr("why not"));
  EXPECT_THAT(result.out, HasSubstr(" > NCHW16c -> NCHW: 500.0000"));
}

TEST_F(ExplainTest, ASummaryOfAllNodes) {
  const Json json = ExplainAsJson({});
  ASSERT_EQ(json["nodes"].size(), 3u);
  EXPECT_EQ(json["nodes"][0]["node"], "first");
  EXPECT_EQ(json["nodes"][0]["chosen"], "NCHW -> NCHW16c");
  EXPECT_EQ(json["nodes"][0]["other"], "NCHW");
  EXPECT_NEAR(Milli(json["nodes"][0]["off_seconds"]), 750, 100);
  EXPECT_EQ(json["nodes"][1]["node"], "pool");
  EXPECT_LT(Milli(json["nodes"][1]["off_seconds"]), 100);
  EXPECT_EQ(json["nodes"][2]["node"], "second");
  EXPECT_NEAR(Milli(json["nodes"][2]["off_seconds"]), 500, 100);
  // Two layouts of each convolution, two of the pooling in between.
  EXPECT_EQ(json["plans"].size(), 3u);
  EXPECT_EQ(ExplainAsJson({"--plans", "20"})["plans"].size(), 8u);
  EXPECT_FALSE(ExplainAsJson({"--plans", "0"}).contains("plans"));
}

TEST_F(ExplainTest, WasALayoutTried) {
  const Json tried = ExplainAsJson({"second", "--layout", "NCHW16c"});
  EXPECT_EQ(tried["tried"], true);
  EXPECT_EQ(tried["trials"], 2);
  EXPECT_EQ(tried["failures"]["run_crash"], 1);
  EXPECT_EQ(tried["layout_best_seconds"], 0.5);
  EXPECT_EQ(tried["layout_off_seconds"], 0);
  const Json loser = ExplainAsJson({"first", "--layout", "NCHW"});
  EXPECT_EQ(loser["layout_choice"], "NCHW -> NCHW16c") << "it is read";
  const Json untried = ExplainAsJson({"second", "--layout", "NCHW8c"});
  EXPECT_EQ(untried["tried"], false);
  EXPECT_EQ(untried["layout_missing"], "it was never tried");
  EXPECT_THAT(Text(untried["try"]), testing::StartsWith("tilesmith tune mb1ic16ih7oc16oh7kh1 -o "));
  EXPECT_THAT(Text(untried["try"]), HasSubstr(" --resume --trials "));
  EXPECT_THAT(Text(untried["try"]), HasSubstr(" --threads 1"));
  const Json pool = ExplainAsJson({"pool", "--layout", "NCHW8c"});
  EXPECT_THAT(Text(pool["layout_missing"]), HasSubstr("no candidate of any convolution has NCHW8c"));
  EXPECT_FALSE(pool.contains("try"));
}

TEST_F(ExplainTest, ALayoutInTheWholeNetwork) {
  const Json json = ExplainAsJson({"--layout", "NCHW16c"});
  EXPECT_LT(Milli(json["uniform_off_seconds"]), 100);
  ASSERT_EQ(json["convolutions"].size(), 2u);
  EXPECT_EQ(json["convolutions"][0]["node"], "first");
  EXPECT_EQ(json["convolutions"][0]["off_seconds"], 0);
  EXPECT_EQ(json["convolutions"][1]["trials"], 2);
  EXPECT_EQ(json["convolutions"][1]["failures"]["run_crash"], 1);
  const Json untried = ExplainAsJson({"--layout", "NCHW8c"});
  EXPECT_TRUE(untried["convolutions"][1]["choice"].is_null());
  EXPECT_EQ(untried["convolutions"][1]["trials"], 0);
}

TEST_F(ExplainTest, APlanBesideTheBest) {
  // Made when the log did not have the better record yet.
  const Graph graph = Network();
  SyntheticCosts costs(1);
  GraphTuneOptions options;
  options.cpu = TestCpu();
  options.threads = 1;
  WritePlan(File("old.jsonl"),
            GraphTune(graph, {Tried("first", 1, 16, 1.0), Tried("second", 1, 1, 1.0)}, costs, options).plan);
  const Json summary = ExplainAsJson({"--plan", File("old.jsonl")});
  EXPECT_NEAR(Milli(summary["plan_off_seconds"]), 500, 100);
  EXPECT_EQ(summary["plan_missing"], 0);
  EXPECT_EQ(summary["nodes"][0]["off_seconds"], 0);
  EXPECT_EQ(summary["nodes"][2]["other"], "NCHW");
  EXPECT_EQ(summary["terms"][0]["node"], "second");
  const Json node = ExplainAsJson({"second", "--plan", File("old.jsonl")});
  EXPECT_EQ(node["given"], "NCHW");
  EXPECT_EQ(node["options"][1]["mark"], "plan");

  WritePlan(File("same.jsonl"), GraphTune(graph, Records(), costs, options).plan);
  const Json same = ExplainAsJson({"first", "--plan", File("same.jsonl")});
  EXPECT_LT(Milli(same["plan_off_seconds"]), 100);
  EXPECT_EQ(same["options"][0]["mark"], "best, plan");
  EXPECT_EQ(same["why_not"], "NCHW") << "the runner-up";

  WritePlan(File("gone.jsonl"),
            GraphTune(graph, {Tried("first", 1, 8, 1.0), Tried("second", 8, 8, 1.0)}, costs, options).plan);
  EXPECT_GE(ExplainAsJson({"--plan", File("gone.jsonl")})["plan_missing"], 2);
}

TEST_F(ExplainTest, TheRegionOfANode) {
  const Graph graph = Network();
  Plan plan = FewRowsPlan(graph, TestCpu(), 1);
  WritePlan(File("layers.jsonl"), plan);
  const Json layers = ExplainAsJson({"--plan", File("layers.jsonl")});
  EXPECT_EQ(layers["regions"], 0);
  const std::string text = Explain({"--plan", File("layers.jsonl")}).out;
  EXPECT_THAT(text, HasSubstr("none: no layers that read each other could be in one"));

  AddRegion(plan, {"first", "pool"}, 2);
  WritePlan(File("regions.jsonl"), plan);
  EXPECT_EQ(ExplainAsJson({"--plan", File("regions.jsonl")})["regions"], 1);
  const Json first = ExplainAsJson({"first", "--plan", File("regions.jsonl")});
  EXPECT_EQ(first["region"], 1);
  EXPECT_EQ(first["region_band_rows"], 2);
  EXPECT_GE(first["region_buffer_rows"], 4);
  EXPECT_EQ(first["region_is_whole"], false);
  EXPECT_EQ(first["region_result_rows"], 8);
  EXPECT_FALSE(first.contains("region_ends"));
  const Json second = ExplainAsJson({"second", "--plan", File("regions.jsonl")});
  EXPECT_EQ(second["region"], 0);
  EXPECT_EQ(second["region_ends"][0]["why"], "second reads and writes what stays in the caches anyway");
  EXPECT_FALSE(second.contains("region_band_rows"));
  EXPECT_THAT(Explain({"pool", "--plan", File("regions.jsonl")}).out, HasSubstr("of first to pool, 2 nodes"));
}

TEST_F(ExplainTest, Refusals) {
  const auto refused = [](std::vector<std::string> arguments, int code, const std::string& mentions) {
    arguments.insert(arguments.begin(), {"explain", Model(), "--threads", "1"});
    ExpectRefusal(arguments, code, mentions);
  };
  refused({"seconds", "--log", Log()}, 2, "has no node \"seconds\" (close: second)");
  refused({"entirely_different", "--log", Log()}, 2, "without a NODE, all 3 are listed");
  refused({"x", "--log", Log()}, 2, "has no node \"x\"");
  refused({"second"}, 2, "--log LOG is required");
  refused({"second", "--log", Log(), "--layout", "CHWN"}, 2, "CHWN");
  refused({"second", "--log", File("missing.jsonl")}, 7, "missing.jsonl");
  WriteFile(File("empty.jsonl"), "");
  refused({"second", "--log", File("empty.jsonl")}, 4, "tilesmith tune");
  refused({"second", "--log", Log(), "--plan", File("missing.plan")}, 7, "missing.plan");
  ExpectRefusal({"explain"}, 2, "MODEL is required");
}

}  // namespace
}  // namespace tilesmith
