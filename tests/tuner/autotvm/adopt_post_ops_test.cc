#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "templates/base/conv_template.h"
#include "tests/support/test_cpu.h"
#include "tuner/autotvm/autotvm.h"

namespace tilesmith {
namespace {

using testing::HasSubstr;

Record PortableRecord(const std::string& workload) {
  Record record;
  record.target = TestCpu();
  record.workload = ParseWorkload(workload);
  record.template_name = "portable";
  record.config = FindConvTemplate("portable").Default(record.workload, TestCpu());
  record.layouts = FindConvTemplate("portable").Layouts(record.workload, record.config);
  record.sample_seconds = {1e-3};
  record.seconds = 1e-3;
  return record;
}

std::vector<ConvWorkload> Workloads(const std::vector<std::string>& texts) {
  std::vector<ConvWorkload> workloads;
  for (const std::string& text : texts) workloads.push_back(ParseWorkload(text));
  return workloads;
}

TEST(AdoptPostOps, ServesTheSameConvWithAnyPostOps) {
  const Record record = PortableRecord("ic16ih8oc16kh3ph1");
  const std::vector<ConvWorkload> workloads =
      Workloads({"ic16ih8oc16kh3ph1+bias+sum+relu", "ic16ih8oc16kh3ph1", "ic16ih8oc16kh1+bias",
                 "mb2ic16ih8oc16kh3ph1+bias", "scale_shift>ic16ih8oc16kh3ph1"});
  const std::vector<Record> adopted = AdoptPostOps(record, workloads);
  ASSERT_EQ(adopted.size(), 2u);
  EXPECT_EQ(adopted[0].workload, workloads[0]);
  EXPECT_EQ(adopted[0].seconds, record.seconds);
  EXPECT_THAT(adopted[0].detail, HasSubstr("times of mb1ic16ih8oc16oh8kh3ph1"));
  EXPECT_EQ(adopted[0].layouts, FindConvTemplate("portable").Layouts(adopted[0].workload, adopted[0].config));
  EXPECT_EQ(adopted[1].workload, record.workload);
  EXPECT_EQ(adopted[1].detail, "");
  EXPECT_EQ(adopted[1].config, record.config);
}

TEST(AdoptPostOps, UnknownTemplatesServeNothing) {
  Record record = PortableRecord("ic16ih8oc16kh3ph1");
  record.template_name = "of another time";
  EXPECT_TRUE(AdoptPostOps(record, Workloads({"ic16ih8oc16kh3ph1+bias"})).empty());
}

}  // namespace
}  // namespace tilesmith
