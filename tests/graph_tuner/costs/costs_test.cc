#include "graph_tuner/costs/costs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "graph_tuner/costs/costs_file.h"
#include "graph_tuner/costs/crossing_costs.h"
#include "graph_tuner/costs/layout_forms.h"
#include "layouts/transform.h"
#include "tests/graph_tuner/support/synthetic.h"
#include "tests/support/temporary_files.h"
#include "tests/support/test_cpu.h"
#include "tuner/records/json_fields.h"
#include "tuner/records/record.h"

namespace tilesmith {
namespace {

using testing::HasSubstr;

class CostsTest : public testing::Test {
 protected:
  std::string Text() const {
    std::ifstream in(path_);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const TemporaryDirectory folder_;
  const std::string path_ = folder_.File("costs.jsonl");
};

TEST_F(CostsTest, FileKeepsFiguresByMachineAndThreads) {
  const CostKey key{{"kind", "transform"}, {"shape", "1x8x4x4"}, {"from", "NCHW"}, {"to", "NCHW8c"}};
  CostFile(path_, SyntheticCpu(), 2).Add(key, 1.5e-6);
  EXPECT_EQ(Text(), "{\"tilesmith_cost\":2,\"target\":" + JsonLine(TargetToJson(SyntheticCpu())) +
                        ",\"threads\":2,\"from\":\"NCHW\",\"kind\":\"transform\",\"shape\":\"1x8x4x4\","
                        "\"to\":\"NCHW8c\",\"seconds\":1.5e-06}\n");
  EXPECT_EQ(CostFile(path_, SyntheticCpu(), 2).Find(key), 1.5e-6);
  EXPECT_EQ(CostFile(path_, SyntheticCpu(), 1).Find(key), std::nullopt);
  Target other = SyntheticCpu();
  other.isa = Isa::kAvx2;
  EXPECT_EQ(CostFile(path_, other, 2).Find(key), std::nullopt);
  EXPECT_EQ(CostFile("", SyntheticCpu(), 2).Find(key), std::nullopt);
}

TEST_F(CostsTest, LinesOfTheFirstFormatAreRead) {
  const auto line = [](const char* isa, const char* op) {
    return fmt::format(R"({{"tilesmith_cost":1,"cpu":"synthetic","isa":"{}","tool":"{}","threads":2,)"
                       R"("kind":"op","op":"{}","seconds":1.5e-06}})",
                       isa, SyntheticCpu().version, op);
  };
  std::ofstream(path_) << line("portable", "a") << "\n"
                       << line("avx512", "b") << "\n"
                       << line("sve", "c") << "\n";
  const CostFile file(path_, SyntheticCpu(), 2);
  EXPECT_TRUE(file.warnings().empty());
  EXPECT_EQ(file.figures(), (std::map<CostKey, double>{{{{"kind", "op"}, {"op", "a"}}, 1.5e-6}}));
}

TEST_F(CostsTest, BadLinesCostThemselves) {
  const CostKey a{{"kind", "op"}, {"op", "a"}}, b{{"kind", "op"}, {"op", "b"}};
  CostFile(path_, SyntheticCpu(), 2).Add(a, 1);
  std::ofstream(path_, std::ios::app) << "garbage\n\n[1]\n"
                                      << R"({"tilesmith_cost":1,"cpu":"x","isa":"y","seconds":-1})"
                                      << "\n"
                                      << R"({"tilesmith_cost":1,"cpu":)";  // torn, no newline
  CostFile file(path_, SyntheticCpu(), 2);
  ASSERT_EQ(file.warnings().size(), 4u);
  EXPECT_THAT(file.warnings()[0], HasSubstr(path_ + ":2: skipped: "));
  EXPECT_THAT(file.warnings()[1], HasSubstr(":4: "));
  EXPECT_THAT(file.warnings()[2], HasSubstr("\"seconds\" is -1"));
  EXPECT_EQ(file.Find(a), 1);
  file.Add(b, 2);  // starts on a fresh line
  file.Add(a, 3);  // later lines win
  CostFile again(path_, SyntheticCpu(), 2);
  EXPECT_EQ(again.Find(b), 2);
  EXPECT_EQ(again.Find(a), 3);
  EXPECT_EQ(again.warnings().size(), 4u);
}

TEST_F(CostsTest, DamagedLinesAreNoFigures) {
  const std::string head = R"({"tilesmith_cost":1,"cpu":"synthetic","isa":"portable","tool":")" +
                           SyntheticCpu().version + R"(","threads":2,)";
  const std::vector<std::string> lines = {
      head + R"("shape":"1x8x4x4","from":"NCHW","to":"NCHW8c","seconds":1})",
      head + R"("kind":"transform","shape":"1x8x4x4","from":"NCHW","to":"NCHW8c","seconds":1e300})",
      head + R"("kind":"transform","shape":"1x8x4x4","from":"NCHW","to":"NCHW8c","seconds":"soon"})",
      head + R"("kind":["transform"],"seconds":1})",
      head + R"("kind":)" + std::string(300'000, '[') + std::string(300'000, ']') + R"(,"seconds":1})"};
  for (const std::string& line : lines) std::ofstream(path_, std::ios::app) << line << "\n";
  const CostFile file(path_, SyntheticCpu(), 2);
  EXPECT_EQ(file.warnings().size(), lines.size());
  EXPECT_TRUE(file.figures().empty());
}

TEST_F(CostsTest, AnyNumberOfBadLinesIsSaidInAFew) {
  for (int i = 0; i < 1000; ++i) std::ofstream(path_, std::ios::app) << "garbage\n";
  const CostFile file(path_, SyntheticCpu(), 2);
  ASSERT_EQ(file.warnings().size(), 11u);
  EXPECT_EQ(file.warnings().back(), path_ + ": 990 more lines skipped");
}

TEST_F(CostsTest, NothingIsInterpolatedFromShapesThatAreNone) {
  CostFile file("", SyntheticCpu(), 2);
  for (const char* shape : {"", "x", "1x0x4x4", "1x-8x4x4", "1x8x4", "99999999999999999999x1x1x1",
                            "4000000000x4000000000x4000000000x4"}) {
    file.Add({{"kind", "transform"}, {"shape", shape}, {"from", "NCHW"}, {"to", "NCHW8c"}}, 1);
  }
  file.Add({{"kind", "transform"}}, 1);
  int measured = 0;
  TransformCosts costs(
      file, [&](const Shape&, const Layout&, const Layout&) { return static_cast<double>(++measured); },
      true);
  EXPECT_EQ(costs.Seconds({1, 8, 4, 4}, Layout::Nchw(), Layout::Blocked(8)), 1);
}

TEST_F(CostsTest, FileErrorsNameTheFile) {
  try {
    CostFile("/nonexistent/costs.jsonl", SyntheticCpu(), 2).Add({{"kind", "op"}}, 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
    EXPECT_THAT(error.what(), HasSubstr("/nonexistent/costs.jsonl"));
  }
}

TEST_F(CostsTest, EachDistinctTransformIsMeasuredOnce) {
  CostFile file("", SyntheticCpu(), 2);
  std::vector<std::string> measured;
  TransformCosts costs(file, [&](const Shape& shape, const Layout& from, const Layout& to) {
    measured.push_back(ShapeToString(shape) + " " + from.ToString() + " " + to.ToString());
    return static_cast<double>(measured.size());
  });
  const Shape shape = {1, 16, 4, 4};
  const Layout plain = Layout::Nchw(), b16 = Layout::Blocked(16), nhwc = Layout::Nhwc();
  EXPECT_EQ(costs.Seconds(shape, b16, nhwc), 0);  // the same memory
  EXPECT_EQ(costs.Seconds(shape, plain, b16), 1);
  EXPECT_EQ(costs.Seconds(shape, plain, nhwc), 1);
  EXPECT_EQ(costs.Seconds(shape, b16, plain), 2);
  EXPECT_EQ(costs.Seconds({2, 16, 4, 4}, plain, b16), 3);
  EXPECT_EQ(costs.CopySeconds(shape, nhwc), 4);
  EXPECT_EQ(costs.CopySeconds(shape, b16), 4);
  EXPECT_EQ(costs.CopySeconds({2, 5, 4, 4, 3}, plain), 5);
  EXPECT_THAT(measured,
              testing::ElementsAre("1x16x4x4 NCHW NCHW16c", "1x16x4x4 NCHW16c NCHW", "2x16x4x4 NCHW NCHW16c",
                                   "1x16x4x4 NCHW16c NCHW16c", "2x240x1x1 NCHW NCHW"));
}

TEST_F(CostsTest, TransformsAreInterpolatedOnlyWhenAskedAndMarked) {
  const Layout plain = Layout::Nchw(), b8 = Layout::Blocked(8), nhwc = Layout::Nhwc();
  CostFile file(path_, SyntheticCpu(), 2);
  int measured = 0;
  const auto measure = [&](const Shape& shape, const Layout&, const Layout&) {
    ++measured;
    return static_cast<double>(ElementCount(shape));
  };
  TransformCosts exact(file, measure), estimating(file, measure, /*interpolate=*/true);
  for (const Layout& to : {b8, nhwc}) {
    exact.Seconds({1, 16, 4, 4}, plain, to);
    exact.Seconds({1, 32, 8, 8}, plain, to);
  }
  EXPECT_EQ(measured, 4);
  const Shape between = {1, 24, 6, 6}, outside = {1, 64, 8, 8};
  for (const Layout& to : {b8, nhwc}) {
    EXPECT_DOUBLE_EQ(estimating.Seconds(between, plain, to), 24 * 36);
    EXPECT_TRUE(estimating.IsInterpolated(between, plain, to));
    EXPECT_FALSE(exact.IsInterpolated(between, plain, to));
    EXPECT_FALSE(estimating.IsInterpolated({1, 16, 4, 4}, plain, to));
  }
  EXPECT_EQ(measured, 4);
  EXPECT_EQ(estimating.Seconds(outside, plain, b8), 64 * 64);
  EXPECT_EQ(estimating.Seconds(between, b8, plain), 24 * 36);  // the other way round is not known at all
  EXPECT_EQ(estimating.CopySeconds(between, b8), 24 * 36);
  EXPECT_EQ(measured, 7);
  exact.Seconds({1, 24, 6, 5}, plain, b8);
  EXPECT_DOUBLE_EQ(estimating.Seconds(between, plain, b8), 24 * 36) << "an answer stays";
  exact.Seconds(between, plain, b8);
  EXPECT_EQ(measured, 9);
  EXPECT_FALSE(TransformCosts(file, measure, true).IsInterpolated(between, plain, b8));
  // Sizes too far apart say nothing.
  exact.Seconds({1, 16, 64, 64}, plain, b8);
  EXPECT_EQ(estimating.Seconds({1, 16, 40, 40}, plain, b8), 16 * 1600);
  EXPECT_EQ(measured, 11);
}

TEST_F(CostsTest, TypesAreCostsOfTheirOwn) {
  const std::string path = folder_.File("typed.jsonl");
  const Shape shape = {1, 16, 8, 8};
  const Layout plain = Layout::Nchw(DataType::kBf16), nhwc = Layout::Nhwc(DataType::kBf16);
  int measured = 0;
  const auto measure = [&](const Shape& of, const Layout& from, const Layout&) {
    ++measured;
    return static_cast<double>(ElementCount(of) * from.element_bytes());
  };
  {
    CostFile file(path, SyntheticCpu(), 2);
    TransformCosts costs(file, measure, true);
    EXPECT_EQ(costs.Seconds(shape, plain, nhwc), 2048);
    EXPECT_EQ(costs.Seconds({1, 16, 4, 4}, plain, nhwc), 512);
    EXPECT_EQ(costs.Seconds(shape, Layout::Nchw(), Layout::Nhwc()), 4096);
    EXPECT_EQ(measured, 3);
    EXPECT_DOUBLE_EQ(costs.Seconds({1, 24, 6, 6}, plain, nhwc), 24 * 36 * 2) << "between figures of its type";
    EXPECT_EQ(measured, 3);
  }
  CostFile file(path, SyntheticCpu(), 2);
  EXPECT_TRUE(file.Find(
      {{"kind", "transform"}, {"shape", "1x16x8x8"}, {"from", "NCHW:bf16"}, {"to", "NCHW16c:bf16"}}));
  TransformCosts costs(file, measure, false);
  EXPECT_EQ(costs.Seconds(shape, plain, nhwc), 2048);
  EXPECT_EQ(costs.Seconds(shape, Layout::Nchw(), Layout::Nhwc()), 4096);
  EXPECT_EQ(measured, 3);
}

TEST_F(CostsTest, CanonicalLayoutIsTheSameMemory) {
  for (int64_t channels : {1, 3, 8, 16, 20}) {
    for (int64_t size : {1, 3}) {
      const Shape shape = {2, channels, size, size};
      for (const char* name : {"NCHW", "NHWC", "NCHW4c", "NCHW8c", "NCHW16c"}) {
        const Layout layout = Layout::Parse(name);
        EXPECT_TRUE(SameMemory(shape, layout, CanonicalLayout(shape, layout)))
            << ShapeToString(shape) << " " << name;
        for (const char* other_name : {"NCHW", "NHWC", "NCHW4c", "NCHW8c", "NCHW16c"}) {
          const Layout other = Layout::Parse(other_name);
          EXPECT_EQ(SameMemory(shape, layout, other),
                    CanonicalLayout(shape, layout) == CanonicalLayout(shape, other))
              << ShapeToString(shape) << " " << name << " " << other_name;
        }
      }
    }
  }
  EXPECT_EQ(CanonicalLayout({1, 8, 3, 3}, Layout::Nhwc()), Layout::Blocked(8));
  EXPECT_EQ(CanonicalLayout({1, 8, 3, 3}, Layout::Nhwc(DataType::kU8)), Layout::Blocked(8, DataType::kU8));
  EXPECT_EQ(CanonicalLayout({1, 16, 1, 1}, Layout::Blocked(8, DataType::kU8)), Layout::Nchw(DataType::kU8));
  EXPECT_EQ(CanonicalLayout({1, 16, 1, 1}, Layout::Blocked(8)), Layout::Nchw());
  EXPECT_EQ(CanonicalLayout({1, 10, 1, 1}, Layout::Blocked(8)), Layout::Blocked(16));
  // Blocks are not so large.
  EXPECT_EQ(CanonicalLayout({1, 70000, 3, 3}, Layout::Nhwc()), Layout::Nhwc());
  EXPECT_EQ(CanonicalLayout({1, 70001, 1, 1}, Layout::Blocked(16)), Layout::Blocked(16));
  EXPECT_EQ(CanonicalLayout({1, 0, 3, 3}, Layout::Nhwc()), Layout::Nhwc());
}

TEST_F(CostsTest, OpsAreMeasuredOncePerShapesAndLayout) {
  CostFile file("", SyntheticCpu(), 2);
  int measured = 0;
  OpCosts costs(file, [&](const OpUse&) { return static_cast<double>(++measured); });
  const OpPtr relu = std::make_shared<ActivationOp>(Activation{ActivationKind::kRelu, 0, 0});
  const OpUse use{relu, {{1, 8, 4, 4}}, {1, 8, 4, 4}, Layout::Blocked(8)};
  OpUse other_layout = use, other_shape = use;
  other_layout.layout = Layout::Nchw();
  other_shape.inputs = {{1, 8, 4, 5}};
  EXPECT_EQ(costs.Seconds(use), 1);
  EXPECT_EQ(costs.Seconds(use), 1);
  EXPECT_EQ(costs.Seconds(other_layout), 2);
  EXPECT_EQ(costs.Seconds(other_shape), 3);
}

TEST_F(CostsTest, QuestionsAreAskedOnce) {
  CostQuestions questions;
  const Shape shape = {1, 8, 4, 4};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(questions.TransformSeconds(shape, Layout::Nchw(), Layout::Blocked(8)), 0);
    EXPECT_EQ(questions.CopySeconds(shape, Layout::Blocked(8)), 0);
  }
  SyntheticCosts costs(1);
  questions.Ask(costs, {});
  EXPECT_EQ(questions.size(), 2u);
  EXPECT_EQ(costs.asked, 2);
}

// The real thing, on tiny tensors: positive times, and a cache that answers without measuring.
TEST_F(CostsTest, MeasuredCostsComeFromTheCacheTheSecondTime) {
  const Target cpu = CapIsa(TestCpu(), Isa::kPortable);
  const Shape shape = {1, 20, 6, 6};
  const OpPtr relu = std::make_shared<ActivationOp>(Activation{ActivationKind::kRelu, 0, 0});
  std::vector<double> answers[2];
  std::string text;
  for (auto& answer : answers) {
    std::vector<std::string> warnings = {"stale"};
    const auto costs = MeasuredCosts(OpenDevice(cpu, 1), {path_}, &warnings);
    EXPECT_TRUE(warnings.empty());
    answer = {costs->TransformSeconds(shape, Layout::Nchw(), Layout::Blocked(8)),
              costs->CopySeconds(shape, Layout::Blocked(8)),
              costs->OpSeconds({relu, {shape}, shape, Layout::Blocked(8)})};
    for (double seconds : answer) EXPECT_GT(seconds, 0);
    if (text.empty()) text = Text();
  }
  EXPECT_EQ(answers[0], answers[1]);
  EXPECT_EQ(text, Text());
}

TEST_F(CostsTest, CrossingsAreMeasuredOnceForEachDistance) {
  int measured = 0;
  double barrier_seconds = 70e-9;
  const CrossingMeasure measure{
      .barrier_seconds = [&] { return barrier_seconds; },
      .time = [&](int64_t bytes) -> CrossingTiming {
        ++measured;
        return {{1e-9 * static_cast<double>(bytes), barrier_seconds < 100e-9 ? 1e-6 : 2e-6, 0}};
      }};
  CostFile none("", SyntheticCpu(), 2);
  const auto seconds = [&](Crossing crossing, double bytes) {
    CostFile file(path_, SyntheticCpu(), 2), machine("", SyntheticCpu(), 2);
    return CrossingCosts(file, machine, measure).Prices().Seconds(crossing, bytes);
  };
  for (const double bytes : {0.0, 1000.0, 16384.0, 50000.0, 1e6, 1e7})
    EXPECT_NEAR(seconds(Crossing::kRead, bytes), 1e-9 * bytes, 1e-15) << bytes;
  const int once = measured;
  EXPECT_GT(once, 1);
  EXPECT_NEAR(seconds(Crossing::kWrite, 8192), 0.5e-6, 1e-15) << "half of the least that was measured";
  EXPECT_NEAR(seconds(Crossing::kWrite, 1e9), 1e-6, 1e-15);
  EXPECT_EQ(measured, once);
  barrier_seconds = 300e-9;
  EXPECT_NEAR(seconds(Crossing::kWrite, 1e6), 1e-6, 1e-15) << "there are prices";
  EXPECT_EQ(measured, once);
  {
    CostFile file(path_, SyntheticCpu(), 2);
    CrossingCosts costs(file, none, measure);
    EXPECT_EQ(costs.Prices().distances().size(), 1u);
    costs.SeeDistance();
    EXPECT_EQ(costs.Prices().distances().size(), 2u);
    costs.SeeDistance();
  }
  EXPECT_EQ(measured, 2 * once);
  EXPECT_NEAR(seconds(Crossing::kWrite, 1e6), 1.5e-6, 1e-15) << "the mean of both";
  CostFile both(path_, SyntheticCpu(), 2);
  const CrossingPrices prices = CrossingCosts(both, none, measure).Prices();
  EXPECT_NEAR(prices.At({290e-9, 1e-6}).Seconds(Crossing::kWrite, 1e6), 2e-6, 1e-15);
  EXPECT_NEAR(prices.At({60e-9, 1e-6}).Seconds(Crossing::kWrite, 1e6), 1e-6, 1e-15);
  EXPECT_THAT(Text(), HasSubstr("\"access\":\"read\",\"bytes\":\"16384\",\"distance\":\"64ns\",\"kind\":"
                                "\"crossing\",\"seconds\":"));
  CostFile file("", SyntheticCpu(), 2);
  EXPECT_EQ(CrossingCosts(file, none, {}).Prices().Seconds(Crossing::kRead, 1e6), 0);
}

// Two networks that each saw the cores at one distance.
TEST_F(CostsTest, CrossingsAreTheMachines) {
  double barrier_seconds = 70e-9;
  const CrossingMeasure measure{.barrier_seconds = [&] { return barrier_seconds; },
                                .time = [&](int64_t) -> CrossingTiming {
                                  return {{1e-6, barrier_seconds < 100e-9 ? 1e-6 : 3e-6, 0}};
                                }};
  const TemporaryDirectory directory;
  const std::string of_machine = directory.File("machine.costs.jsonl");
  const auto tune = [&](const std::string& network) {
    CostFile file(directory.File(network), SyntheticCpu(), 2), machine(of_machine, SyntheticCpu(), 2);
    file.Add({{"kind", "op"}, {"op", network}}, 1);
    CrossingCosts costs(file, machine, measure);
    costs.SeeDistance();
    return costs.Prices();
  };
  EXPECT_EQ(tune("first").distances().size(), 1u);
  barrier_seconds = 300e-9;
  const CrossingPrices both = tune("second");
  EXPECT_EQ(both.distances().size(), 2u);
  EXPECT_NEAR(both.Seconds(Crossing::kWrite, 1e6), 2e-6, 1e-15);
  const CostFile second(directory.File("second"), SyntheticCpu(), 2);
  const CostFile machine(of_machine, SyntheticCpu(), 2);
  EXPECT_EQ(second.figures().size(), machine.figures().size() + 1) << "an op is its network's";
}

TEST_F(CostsTest, TimingInputsHaveZeroPadding) {
  const Tensor tensor = TimingInput({1, 5, 2, 2}, Layout::Blocked(8));
  for (int64_t i = 0; i < tensor.padded_size(); ++i) EXPECT_EQ(tensor.floats()[i] == 0, i % 8 >= 5) << i;
}

}  // namespace
}  // namespace tilesmith
