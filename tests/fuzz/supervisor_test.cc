#include "tests/fuzz/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "layouts/base/error.h"

namespace tilesmith::fuzz {
namespace {

using testing::HasSubstr;

// Does what the input says.
void Obey(const std::string& input) {
  if (input == "refuse") throw Error(ErrorCode::kBadModel, "refused");
  if (input == "internal") throw Error(ErrorCode::kInternal, "a check failed");
  if (input == "logic") throw std::logic_error("out of range");
  if (input == "number") throw 1;
  if (input == "abort") std::abort();
  if (input == "exit") std::_Exit(3);
  if (input.find('(') < input.find(')') && input.find(')') != std::string::npos) throw std::logic_error("()");
  for (volatile bool loop = input == "loop"; loop;) continue;
  if (input != "memory") return;
  static std::vector<std::string> blocks;
  for (;;) blocks.emplace_back(size_t{8} << 20, 'x');
}

const FuzzTarget kTarget{
    .name = "obey", .reads = "what to do", .run = Obey, .mutate = MutateText, .words = {}, .short_runs = 1};
// More than the test itself takes, sanitizers included.
constexpr Limits kLimits{.seconds = 2, .mib = 700};

std::string FindingOf(const std::string& input) {
  const Outcome outcome = Supervise(kTarget, {.inputs = {"fine", input, "fine"}}, kLimits);
  EXPECT_EQ(outcome.input, outcome.finding.empty() ? "" : input);
  EXPECT_EQ(outcome.runs, outcome.finding.empty() ? 3 : 2);
  return outcome.finding;
}

TEST(SupervisorTest, WhatIsRefusedIsNoFinding) {
  EXPECT_EQ(FindingOf("accept"), "");
  EXPECT_EQ(FindingOf("refuse"), "");
}

TEST(SupervisorTest, ExceptionsThatAreNoRefusalAreFound) {
  EXPECT_EQ(FindingOf("internal"), "internal error: a check failed");
  EXPECT_EQ(FindingOf("logic"), "an exception that is no Error: out of range");
  EXPECT_EQ(FindingOf("number"), "an exception that is no std::exception");
}

TEST(SupervisorTest, AnEndOfTheProcessIsFound) {
  EXPECT_NE(FindingOf("abort"), "");
  EXPECT_EQ(FindingOf("exit"), "exit code 3");
}

TEST(SupervisorTest, TimeAndMemoryAreLimited) {
  EXPECT_EQ(FindingOf("loop"), "takes over 2 s");
  EXPECT_EQ(FindingOf("memory"), "takes over 700 MiB");
}

TEST(SupervisorTest, MutationsOfTheInputsFollowThem) {
  const Outcome outcome = Supervise(kTarget, {.inputs = {"fine"}, .runs = 50}, kLimits);
  EXPECT_EQ(outcome.finding, "");
  EXPECT_EQ(outcome.runs, 51);
}

TEST(SupervisorTest, MinimizingKeepsTheFinding) {
  EXPECT_EQ(Minimized(kTarget, "some (text) in brackets", kLimits), "()");
}

TEST(MutationTest, TheSameSeedGivesTheSameMutations) {
  const std::string other = "{\"c\":[1,2]}";
  std::vector<std::string> texts[2];
  for (std::vector<std::string>& list : texts) {
    TestRandom random(1);
    Mutation mutation{random, other, {}};
    for (int i = 0; i < 100; ++i) list.push_back(MutateJsonLines("{\"a\":1}\n{\"b\":\"x\"}", mutation));
  }
  EXPECT_EQ(texts[0], texts[1]);
}

TEST(MutationTest, MostMutatedLinesAreStillJson) {
  TestRandom random(1);
  const std::string other;
  Mutation mutation{random, other, {}};
  int parsed = 0, same = 0;
  for (int i = 0; i < 400; ++i) {
    const std::string line = R"({"workload":"ic16ih8oc16kh3","samples":[0.1,0.2],"target":{"cores":2}})";
    const std::string mutated = MutateJsonLines(line, mutation);
    parsed += nlohmann::json::accept(mutated) ? 1 : 0;
    same += mutated == line ? 1 : 0;
  }
  EXPECT_GT(parsed, 200);
  EXPECT_LT(same, 80);
}

TEST(MutationTest, EmptyInputsGrow) {
  TestRandom random(1);
  const std::string other = "other";
  Mutation mutation{random, other, {}};
  size_t longest = 0;
  for (int i = 0; i < 100; ++i) {
    longest = std::max({longest, MutateBytes("", mutation).size(), MutateText("", mutation).size(),
                        MutateJsonLines("", mutation).size()});
  }
  EXPECT_GT(longest, 0u);
}

}  // namespace
}  // namespace tilesmith::fuzz
