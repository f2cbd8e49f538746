// Tuning from C++ and C: progress and cancellation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "tests/support/temporary_files.h"
#include "tools/api/tilesmith.h"
#include "tools/api/tilesmith_c.h"

namespace tilesmith {
namespace {

constexpr const char* kTunedNetwork = "squeezenet1_1";
const std::vector<std::string> kTunedShapes = {"input=1x3x64x64"};

template <typename Action>
std::string TuneErrorOf(const Action& action) {
  try {
    action();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(ApiTuneTest, ChoosesLayoutsAlone) {
  const TemporaryDirectory directory;
  const std::string plan = directory.File("plan.jsonl");
  std::vector<std::string> stages;
  GraphTuneSettings settings = {.seconds = 20,
                                .rounds = 1,
                                .threads = 1,
                                .input_shapes = kTunedShapes,
                                .on_progress = [&](const std::string& stage) { stages.push_back(stage); }};
  GraphTune(kTunedNetwork, "", plan, settings);
  EXPECT_THAT(stages, testing::Contains(testing::HasSubstr("round 1 of 1: running ")));
  EXPECT_GT(Model::Load(kTunedNetwork, {.plan = plan, .threads = 1, .input_shapes = kTunedShapes})
                .predicted_seconds(),
            0);
  EXPECT_THAT(TuneErrorOf([&] { GraphTune(kTunedNetwork, directory.File("no.jsonl"), plan, settings); }),
              testing::HasSubstr("no.jsonl"));
}

TEST(ApiTuneTest, MessagesNameSettingsAndNotOptions) {
  const TemporaryDirectory directory;
  const std::string plan = directory.File("plan.jsonl"), model = kTunedNetwork;
  for (const auto& action : std::vector<std::function<void()>>{
           [&] { Model::Load(model, {.input_shapes = {"input"}}); },
           [&] { GraphTune(model, "", plan, {.input_shapes = {"input"}}); },
           [&] { Optimize(model, plan, {.input_shapes = {"input"}, .program = TILESMITH_BINARY}); },
           [&] { Tune(model, plan, {.input_shapes = {"input"}, .program = TILESMITH_BINARY}); }}) {
    EXPECT_THAT(TuneErrorOf(action), testing::StartsWith("`input_shapes` must be "));
  }
  EXPECT_EQ(TuneErrorOf([&] { Model::Load(model, {.target = "abacus"}); }),
            "`target` must be cpu, cuda or cuda:N, got abacus");
  EXPECT_EQ(TuneErrorOf([&] { GraphTune(model, "", plan, {.rounds = 1001}); }),
            "`rounds` must be from 0 to 1000, got 1001");
  EXPECT_THAT(TuneErrorOf([&] { GraphTune(model, "", plan, {.calibrate = {"x.npz"}}); }),
              testing::StartsWith("`calibrate` is for a precision with int8"));
}

// While plans run: the flag is set by the progress function, between two turns.
TEST(ApiTuneTest, AStopEndsPlansThatRunAndKeepsTheBestSoFar) {
  const TemporaryDirectory directory;
  const std::string plan = directory.File("plan.jsonl");
  std::atomic<bool> stop = false;
  GraphTuneSettings settings = {.seconds = 600,
                                .rounds = 3,
                                .threads = 1,
                                .input_shapes = kTunedShapes,
                                .on_progress =
                                    [&](const std::string& stage) {
                                      if (stage.find("round 1") != std::string::npos) stop = true;
                                    },
                                .stop = &stop};
  EXPECT_THAT(TuneErrorOf([&] { GraphTune(kTunedNetwork, "", plan, settings); }),
              testing::HasSubstr("interrupted; the only plan so far is in " + plan));
  EXPECT_NO_THROW(Model::Load(kTunedNetwork, {.plan = plan, .threads = 1, .input_shapes = kTunedShapes}));
}

struct CProgress {
  int calls = 0;
  tilesmith_stop* stop = nullptr;
};

void CountAndCancel(const char* stage, void* user_data) {
  auto* progress = static_cast<CProgress*>(user_data);
  ++progress->calls;
  if (std::string(stage).find("round 1") != std::string::npos) tilesmith_cancel(progress->stop);
}

TEST(ApiTuneTest, CTunesAndCancels) {
  const TemporaryDirectory directory;
  const std::string plan = directory.File("plan.jsonl"), log = directory.File("log.jsonl");
  const char* shape = kTunedShapes[0].c_str();
  CProgress progress;
  tilesmith_tune_settings settings = {};
  settings.log = log.c_str();
  settings.seconds = 1;
  settings.graph_seconds = 5;
  settings.rounds = -1;
  settings.no_database = 1;
  settings.threads = 1;
  settings.input_shapes = &shape;
  settings.input_shape_count = 1;
  settings.program = TILESMITH_BINARY;
  settings.on_progress = CountAndCancel;
  settings.user_data = &progress;
  ASSERT_EQ(tilesmith_tune(kTunedNetwork, plan.c_str(), &settings), 0) << tilesmith_last_error();
  EXPECT_GT(progress.calls, 3);
  EXPECT_NO_THROW(Model::Load(kTunedNetwork, {.plan = plan, .threads = 1, .input_shapes = kTunedShapes}));

  progress.stop = tilesmith_new_stop();
  settings.stop = progress.stop;
  settings.rounds = 2;
  EXPECT_EQ(tilesmith_graph_tune(kTunedNetwork, log.c_str(), plan.c_str(), &settings), 130);
  EXPECT_THAT(tilesmith_last_error(), testing::HasSubstr("interrupted"));
  EXPECT_EQ(tilesmith_tune(kTunedNetwork, plan.c_str(), &settings), 130) << "cancelled before it began";
  tilesmith_free_stop(progress.stop);
  EXPECT_EQ(tilesmith_tune(nullptr, plan.c_str(), nullptr), 2);
  EXPECT_EQ(tilesmith_graph_tune(kTunedNetwork, nullptr, nullptr, nullptr), 2);
  tilesmith_cancel(nullptr);
  tilesmith_free_stop(nullptr);
}

}  // namespace
}  // namespace tilesmith
