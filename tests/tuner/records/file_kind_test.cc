#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tuner/records/log.h"

namespace tilesmith {
namespace {

std::string KindOf(const char* line) { return FileKind(nlohmann::json::parse(line)); }

TEST(FileKind, IsKnownByTheMembersOfALine) {
  EXPECT_EQ(KindOf(R"({"tilesmith": 1, "config": {}})"), "a tuning log");
  EXPECT_EQ(KindOf(R"({"tilesmith_plan": 1, "network": "n"})"), "a plan");
  EXPECT_EQ(KindOf(R"({"tilesmith_cost": 2, "threads": 2})"), "a file of costs");
  EXPECT_EQ(KindOf(R"({"tilesmith_space": 1})"), "a measured space");
  EXPECT_EQ(KindOf(R"({"checksum": "1", "feature_version": 1})"), "a cost model");
  EXPECT_EQ(KindOf(R"({"input": [], "config": {}, "result": []})"),
            "a log of AutoTVM's, which `tilesmith log import` reads");
  EXPECT_EQ(KindOf(R"({"config": {}})"), "");
  EXPECT_EQ(KindOf("[1]"), "");
  EXPECT_EQ(KindOf("null"), "");
}

}  // namespace
}  // namespace tilesmith
