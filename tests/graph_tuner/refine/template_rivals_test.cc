#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "graph_tuner/refine/rivals.h"
#include "tests/graph_tuner/support/synthetic.h"

namespace tilesmith {
namespace {

// Two convs, and a record of each template that supports them here, the later in the list the slower.
class TemplateRivalsTest : public testing::Test {
 protected:
  TemplateRivalsTest() {
    const Graph::NodeId a = AddConv(graph_, "a", AddInput(graph_, {1, 64, 8, 8}), 64, 3);
    graph_.MarkOutput(AddConv(graph_, "b", a, 32, 3));
    options_.cpu = DetectCpu();
    options_.threads = 2;
    for (Graph::NodeId id = 0; id < graph_.size(); ++id)
      if (const auto* conv = graph_.As<ConvOp>(id)) AddRecords(conv->workload());
  }

  void AddRecords(const ConvWorkload& workload) {
    double seconds = 1e-3;
    for (Record& record : RecordOfEachTemplate(workload, options_.cpu)) {
      record.seconds = seconds;
      record.sample_seconds = {seconds};
      log_.push_back(record);
      seconds *= 10;
    }
  }

  Plan Solve() { return GraphTune(graph_, log_, costs_, options_).plan; }
  std::vector<RivalPlan> Rivals() {
    return TemplateRivals(NetworkProblem(graph_, log_, costs_, options_), Solve());
  }

  static std::set<std::string> TemplatesOf(const Plan& plan) {
    std::set<std::string> names;
    for (const NodePlan& node : plan.nodes)
      if (node.record) names.insert(node.record->template_name);
    return names;
  }

  Graph graph_{"net"};
  GraphTuneOptions options_;
  SyntheticCosts costs_{1};
  std::vector<Record> log_;
};

TEST_F(TemplateRivalsTest, DoWithoutATemplateOfTheSolution) {
  const std::set<std::string> used = TemplatesOf(Solve());
  ASSERT_EQ(used.size(), 1u);
  const bool others = log_.back().template_name != *used.begin();
  const std::vector<RivalPlan> rivals = Rivals();
  ASSERT_EQ(rivals.size(), others ? 1u : 0u);
  if (!others) return;
  EXPECT_EQ(rivals[0].name, "without " + *used.begin());
  EXPECT_EQ(rivals[0].plan.certificate, "optimal among schedules without " + *used.begin());
  EXPECT_THAT(TemplatesOf(rivals[0].plan), testing::Not(testing::Contains(*used.begin())));
}

TEST_F(TemplateRivalsTest, KeepWhatAConvCannotDoWithout) {
  const std::string fastest = *TemplatesOf(Solve()).begin();
  const ConvWorkload only = log_.front().workload;
  std::erase_if(
      log_, [&](const Record& record) { return record.workload == only && record.template_name != fastest; });
  for (const RivalPlan& rival : Rivals()) EXPECT_EQ(TemplatesOf(rival.plan).count(fastest), 1u) << rival.name;
  std::erase_if(log_, [&](const Record& record) { return record.template_name != fastest; });
  EXPECT_TRUE(Rivals().empty());
}

// So that a solution can come back to what the log takes for slower.
TEST_F(TemplateRivalsTest, CandidatesAreKeptForEachTemplate) {
  std::set<std::string> supporting, kept;
  for (const Record& record : log_) {
    if (record.workload != log_.front().workload) continue;
    supporting.insert(record.template_name);
  }
  const Candidates candidates = FindCandidates(graph_, log_, options_.cpu, options_.threads);
  for (const Record& record : candidates.at(WorkloadToString(log_.front().workload)))
    kept.insert(record.template_name);
  EXPECT_EQ(kept, supporting);
}

}  // namespace
}  // namespace tilesmith
