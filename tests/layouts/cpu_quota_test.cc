#include "layouts/base/cpu_quota.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_files.h"

namespace tilesmith {
namespace {

class CpuQuotaTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) const {
    const std::string file = folder_.File(path);
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    std::ofstream(file) << text << "\n";
  }
  std::optional<double> Quota(const std::string& groups) const {
    Write("groups", groups);
    return CpuQuota(folder_.File("groups"), folder_.File("mount"));
  }

  const TemporaryDirectory folder_;
};

TEST_F(CpuQuotaTest, TheLeastOfAGroupAndThoseAroundIt) {
  Write("mount/cpu.max", "max 100000");
  Write("mount/a/cpu.max", "150000 100000");
  Write("mount/a/b/cpu.max", "400000 100000");
  EXPECT_EQ(Quota("0::/a/b"), 1.5);
  EXPECT_EQ(Quota("0::/a"), 1.5);
  EXPECT_EQ(Quota("0::/"), std::nullopt);
  EXPECT_EQ(Quota("0::/missing"), std::nullopt);
}

TEST_F(CpuQuotaTest, OfTheFirstVersion) {
  Write("mount/cpu/x/cpu.cfs_quota_us", "50000");
  Write("mount/cpu/x/cpu.cfs_period_us", "100000");
  Write("mount/cpu/cpu.cfs_quota_us", "-1");
  Write("mount/cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(Quota("4:memory:/x\n2:cpu,cpuacct:/x\n"), 0.5);
  EXPECT_EQ(Quota("2:cpu:/\n"), std::nullopt);
  EXPECT_EQ(Quota("2:cpuset:/x\n"), std::nullopt);
}

TEST_F(CpuQuotaTest, WhatMakesNoSenseLimitsNothing) {
  Write("mount/a/cpu.max", "many 100000");
  Write("mount/b/cpu.max", "100000 0");
  for (const char* text : {"0::/a", "0::/b", "nonsense", "", "0:", "::", "0::"})
    EXPECT_EQ(Quota(text), std::nullopt) << text;
  EXPECT_EQ(CpuQuota(folder_.File("none"), folder_.File("mount")), std::nullopt);
}

}  // namespace
}  // namespace tilesmith
