#include "tuner/tune.h"

#include <gtest/gtest.h>

#include "tests/support/test_cpu.h"
#include "tuner/measure/process_measurer.h"

namespace tilesmith {
namespace {

TEST(TuneTask, TunesASmallConvEndToEnd) {
  TuneRequest request;
  request.workload = ParseWorkload("mb1ic32ih14oc32oh14kh3ph1+bias+relu");
  request.cpu = TestCpu();
  request.templates = {&FindConvTemplate("portable")};
  request.options.trials = 60;
  ProcessMeasurer measurer({TILESMITH_TEST_WORKER});
  int logged = 0;
  const TuneResult result = TuneTask(request, measurer, {.on_record = [&](const Record&) { ++logged; }});
  ASSERT_TRUE(result.best.has_value());
  EXPECT_EQ(result.trials_measured, 60);
  EXPECT_GT(logged, 60);
  fprintf(stderr, "%f s for 60\n", result.search_seconds);
  EXPECT_TRUE(result.failures.empty());
}

}  // namespace
}  // namespace tilesmith
