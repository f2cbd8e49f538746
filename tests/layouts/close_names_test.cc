#include "layouts/base/close_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilesmith {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(CloseNames, ThoseThatContainTheTextComeFirst) {
  const std::vector<std::string> names = {"conv2", "stage1.conv1.relu", "Conv1", "pool"};
  EXPECT_THAT(CloseNames("conv1", names, 5), ElementsAre("stage1.conv1.relu", "Conv1", "conv2"));
  EXPECT_THAT(CloseNames("conv1", names, 1), ElementsAre("stage1.conv1.relu"));
}

TEST(CloseNames, AFewLettersMayDiffer) {
  EXPECT_THAT(CloseNames("convv1", {"conv1"}, 5), ElementsAre("conv1"));
  EXPECT_THAT(CloseNames("cnov1", {"conv1"}, 5), ElementsAre("conv1"));
  EXPECT_THAT(CloseNames("features.3.expnd3x3", {"features.3.expand3x3", "features.12.squeeze"}, 5),
              ElementsAre("features.3.expand3x3"));
  EXPECT_THAT(CloseNames("abc", {"xyz", "conv1"}, 5), IsEmpty());
  EXPECT_THAT(CloseNames("abc", {}, 5), IsEmpty());
  EXPECT_THAT(CloseNames("foo", {"log", "for"}, 5), ElementsAre("for")) << "of three letters one may differ";
}

TEST(CloseNames, ANameMayBePartOfTheText) {
  EXPECT_THAT(CloseNames("num-threads", {"seed", "threads"}, 5), ElementsAre("threads"));
  EXPECT_THAT(CloseNames("grph-tune", {"tune", "graph-tune"}, 5), ElementsAre("graph-tune", "tune"));
  EXPECT_THAT(CloseNames("forward", {"for"}, 5), IsEmpty()) << "too short to be meant";
}

}  // namespace
}  // namespace tilesmith
