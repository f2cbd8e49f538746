#include "layouts/base/arm_cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace tilesmith {
namespace {

constexpr uint64_t kDot = 1U << 20, kSve = 1U << 22;
constexpr uint64_t kSveI8mm = 1U << 9, kSveBf16 = 1U << 12, kI8mm = 1U << 13, kBf16 = 1U << 14;

TEST(ArmInstructions, AreThoseOfNeonWithoutSve) {
  EXPECT_EQ(ArmInstructions({}), (Target{.model = "", .isa = Isa::kNeon})) << "Cortex-A72";
  EXPECT_EQ(ArmInstructions({kDot, 0, 0}), (Target{.model = "", .isa = Isa::kNeon, .dot = true}))
      << "Neoverse N1";
  EXPECT_EQ(ArmInstructions({kDot, kI8mm | kBf16, 0}),
            (Target{.model = "", .isa = Isa::kNeon, .bf16 = true, .dot = true, .i8mm = true}))
      << "Apple M2";
}

TEST(ArmInstructions, UsePowersOfTwoOfSve) {
  const uint64_t both = kI8mm | kBf16 | kSveI8mm | kSveBf16;
  for (const auto& [has, used] : {std::pair{16, 16}, {32, 32}, {48, 32}, {64, 64}, {256, 64}}) {
    const Target cpu = ArmInstructions({kDot | kSve, both, has});
    EXPECT_EQ(cpu.isa, Isa::kSve);
    EXPECT_EQ(cpu.sve_bytes, used);
    EXPECT_EQ(cpu.vector_floats(), used / 4);
    EXPECT_TRUE(cpu.dot && cpu.i8mm && cpu.bf16);
  }
  EXPECT_EQ(ArmInstructions({kDot | kSve, both, 0}).isa, Isa::kNeon) << "the kernel gives it no vectors";
  EXPECT_FALSE(ArmInstructions({kDot | kSve, kI8mm | kBf16, 32}).i8mm) << "SVE lacks it";
}

TEST(VectorsText, SaysHowLongThoseOfSveAre) {
  EXPECT_EQ(VectorsText(ArmInstructions({kSve, 0, 32})), "sve of 256 bits");
  EXPECT_EQ(VectorsText(ArmInstructions({})), "neon");
}

std::string NameIn(const std::string& cpuinfo) {
  std::istringstream text(cpuinfo);
  return ArmModelName(text);
}

TEST(ArmModelName, IsThatOfEveryKindOfCore) {
  const auto core = [](const char* implementer, const char* part) {
    return std::string("processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: ") + implementer +
           "\nCPU architecture: 8\nCPU variant\t: 0x1\nCPU part\t: " + part + "\nCPU revision\t: 1\n\n";
  };
  EXPECT_EQ(NameIn(core("0x41", "0xd40") + core("0x41", "0xd40")), "Neoverse V1");
  EXPECT_EQ(NameIn(core("0x41", "0xd44") + core("0x41", "0xd05")), "Cortex-A55 + Cortex-X1");
  EXPECT_EQ(NameIn(core("0x48", "0xd01")), "ARM 0x48:0xd01");
  EXPECT_EQ(NameIn(core("0x00", "0x051")), kEmulated) << "QEMU's own";
  EXPECT_EQ(NameIn("model name\t: AMD EPYC\n"), "emulated by AMD EPYC");
  EXPECT_EQ(NameIn(""), kEmulated);
}

TEST(FastestTeam, LeavesSlowCoresOutWhereTheyWouldBeWaitedFor) {
  using ::testing::ElementsAre;
  EXPECT_THAT(FastestTeam({{3}, {1}, {2}}), ElementsAre(1, 2, 3)) << "all alike";
  EXPECT_THAT(FastestTeam({{0, 400}, {1, 400}, {2, 400}, {3, 400}, {4, 870}, {5, 870}, {6, 870}, {7, 1024}}),
              ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(FastestTeam({{0, 512}, {1, 512}, {2, 1024}, {3, 1024}}), ElementsAre(0, 1, 2, 3)) << "as fast";
  EXPECT_THAT(FastestTeam({{0, 500}, {1, 1024}}), ElementsAre(1));
  EXPECT_THAT(FastestTeam({}), ElementsAre());
}

}  // namespace
}  // namespace tilesmith
