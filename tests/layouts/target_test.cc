#include "layouts/base/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "layouts/base/error.h"

namespace tilesmith {
namespace {

TEST(Isa, ParsesWhatItPrints) {
  for (const Isa isa : kIsas) EXPECT_EQ(ParseIsa(IsaName(isa)), isa);
  for (const Isa isa : kAllIsas) EXPECT_EQ(ParseIsa(IsaName(isa), kAllIsas), isa);
}

TEST(Isa, UnknownNameThrowsNamingTheKnown) {
  for (const char* text : {"", "AVX2", "sse4", "avx5"}) {
    try {
      ParseIsa(text);
      ADD_FAILURE() << "accepted \"" << text << '"';
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      EXPECT_THAT(error.what(), ::testing::HasSubstr('"' + std::string(text) + '"'));
      for (const Isa isa : kIsas) EXPECT_THAT(error.what(), ::testing::HasSubstr(std::string(IsaName(isa))));
    }
  }
}

TEST(Isa, AnotherArchitecturesIsNoneOfThisBuilds) {
  for (const Isa isa : kAllIsas) {
    if (std::ranges::find(kIsas, isa) != std::end(kIsas)) continue;
    EXPECT_THROW(ParseIsa(IsaName(isa)), Error);
    EXPECT_FALSE(Includes(std::end(kIsas)[-1], isa));
    EXPECT_TRUE(Includes(isa, Isa::kPortableFused));
  }
}

TEST(CapIsa, LowersAndNeverRaises) {
  Target cpu;
  cpu.isa = Isa::kAvx512;
  cpu.cores = 7;
  cpu.vnni = cpu.bf16 = cpu.amx = true;
  EXPECT_EQ(CapIsa(cpu, Isa::kAvx2).isa, Isa::kAvx2);
  EXPECT_EQ(CapIsa(cpu, Isa::kAvx2).cores, 7);
  EXPECT_FALSE(CapIsa(cpu, Isa::kAvx2).vnni);
  EXPECT_FALSE(CapIsa(cpu, Isa::kAvx2).bf16);
  EXPECT_FALSE(CapIsa(cpu, Isa::kAvx2).amx);
  EXPECT_TRUE(CapIsa(cpu, Isa::kAvx512).vnni);
  EXPECT_TRUE(CapIsa(cpu, Isa::kAvx512).bf16);
  EXPECT_TRUE(CapIsa(cpu, Isa::kAvx512).amx);
  EXPECT_EQ(CapIsa(cpu, Isa::kAvx512).isa, Isa::kAvx512);
  EXPECT_EQ(CapIsa(cpu, Isa::kPortableFused).isa, Isa::kPortableFused);
  cpu.isa = Isa::kPortable;
  EXPECT_EQ(CapIsa(cpu, Isa::kAvx512).isa, Isa::kPortable);
  EXPECT_EQ(Reproducible(cpu).isa, Isa::kPortableFused);
}

TEST(CapIsa, SharesPortableCodeWithAnotherArchitecture) {
  Target cpu{.model = "", .isa = Isa::kSve, .bf16 = true, .sve_bytes = 32, .dot = true, .i8mm = true};
  const Target neon = CapIsa(cpu, Isa::kNeon);
  EXPECT_EQ(neon.isa, Isa::kNeon);
  EXPECT_EQ(neon.sve_bytes, 0);
  EXPECT_TRUE(neon.dot && neon.i8mm && neon.bf16) << "NEON has them, too";
  for (const Isa cap : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512})
    EXPECT_EQ(CapIsa(cpu, cap), Target{}) << IsaName(cap);
  EXPECT_EQ(CapIsa({.model = "", .isa = Isa::kAvx512, .vnni = true}, Isa::kNeon), Target{});
}

TEST(Target, VectorsFollowTheIsa) {
  Target cpu;
  for (const auto& [isa, floats, registers] : {std::tuple{Isa::kPortable, 4, 16},
                                               {Isa::kPortableFused, 4, 16},
                                               {Isa::kAvx2, 8, 16},
                                               {Isa::kAvx512, 16, 32},
                                               {Isa::kNeon, 4, 30},
                                               {Isa::kSve, 8, 30}}) {
    cpu.isa = isa;
    cpu.sve_bytes = isa == Isa::kSve ? 32 : 0;
    EXPECT_EQ(cpu.vector_floats(), floats);
    EXPECT_EQ(cpu.vector_registers(), registers);
  }
}

TEST(DetectCpu, IsPlausible) {
  const Target cpu = DetectCpu();
  EXPECT_FALSE(cpu.model.empty());
  EXPECT_GE(cpu.cores, 1);
  EXPECT_GE(cpu.l1d_bytes, 4 << 10);
  EXPECT_GE(cpu.l2_bytes, cpu.l1d_bytes);
#ifdef TILESMITH_X86
  EXPECT_EQ(cpu.isa >= Isa::kAvx2, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
#elif defined(TILESMITH_ARM)
  EXPECT_EQ(ArchitectureOf(cpu.isa), Architecture::kArm);
#else
  EXPECT_EQ(cpu.isa, Isa::kPortable);
#endif
  EXPECT_TRUE(!cpu.vnni || cpu.isa == Isa::kAvx512);
  EXPECT_TRUE(!cpu.bf16 || cpu.isa == Isa::kAvx512 || cpu.dot);
  EXPECT_TRUE(!cpu.amx || (cpu.vnni && cpu.bf16));
}

}  // namespace
}  // namespace tilesmith
