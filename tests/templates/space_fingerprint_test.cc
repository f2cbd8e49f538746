#include <gtest/gtest.h>

#include "templates/base/conv_template.h"

namespace tilesmith {
namespace {

TEST(SpaceFingerprint, IsShortStableAndOfTheIsa) {
  const std::string fingerprint = SpaceFingerprint(Isa::kAvx512);
  EXPECT_EQ(fingerprint.size(), 8u);
  EXPECT_EQ(fingerprint.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(SpaceFingerprint(Isa::kAvx512), fingerprint);
  EXPECT_NE(SpaceFingerprint(Isa::kAvx2), fingerprint) << "has other knobs";
  EXPECT_NE(SpaceFingerprint(Isa::kPortable), SpaceFingerprint(Isa::kAvx2));
}

}  // namespace
}  // namespace tilesmith
