// Convolutions of bytes by template: random workloads and configs against the exact reference, bit for bit,
// in guarded memory. TILESMITH_SWEEP=N makes the sweep N cases long.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "layouts/transform.h"
#include "ops/quantize/quantized_data.h"
#include "templates/amx_int8/config.h"
#include "templates/base/conv_template.h"
#include "templates/direct_int8/config.h"
#include "templates/winograd_int8/config.h"
#include "tests/support/guarded_run.h"
#include "tests/support/random_config.h"
#include "tests/support/random_workload.h"
#include "tests/support/test_cpu.h"
#include "tests/templates/rebuilt_kernel.h"

namespace tilesmith::int8_conv {
namespace {

struct Case {
  const ConvTemplate& conv_template;
  ConvWorkload workload;
  Config config;
  Target cpu;
  uint64_t seed = 0;
  std::string Text() const {
    return fmt::format("{} {} {} {}{} seed {}", conv_template.Name(), WorkloadToString(workload),
                       config.ToString(), IsaName(cpu.isa), cpu.vnni ? " vnni" : "", seed);
  }
};

int SweepLength() { return CaseCount("TILESMITH_SWEEP", 400); }

DataType AnyByte(TestRandom& random) { return random.Integer(0, 1) == 0 ? DataType::kU8 : DataType::kI8; }

// What templates take of sizes is more than an op takes.
bool IsValid(const ConvWorkload& w) {
  try {
    ValidateWorkload(w);
    return true;
  } catch (const Error&) {
    return false;
  }
}

ConvWorkload RandomByteWorkload(TestRandom& random) {
  ConvWorkload w = RandomWorkload(random);
  while (!IsValid(w)) w = RandomWorkload(random);
  w.post.activation = {};
  const bool real = !w.post.sum && random.Integer(0, 4) == 0;
  w.bytes = {AnyByte(random), AnyByte(random), real ? DataType::kF32 : AnyByte(random)};
  return w;
}

// One that the template computes.
ConvWorkload RandomByteWorkload(const ConvTemplate& conv_template, const Target& cpu, TestRandom& random) {
  for (;;) {
    ConvWorkload w = RandomByteWorkload(random);
    if (&conv_template == &WinogradInt8Template()) {
      w.kh = w.kw = 3;
      w.sh = w.sw = w.g = 1;
      w.dh = w.dw = 0;
      w.ph = random.Integer(0, 4);
      w.pw = random.Integer(0, 4);
      w.oh = w.ih + w.ph + random.Integer(0, 2) - 2;
      w.ow = w.iw + w.pw + random.Integer(0, 2) - 2;
    }
    if (w.oh > 0 && w.ow > 0 && IsValid(w) && conv_template.Supports(w, cpu).ok) return w;
  }
}

// One of seven is the default.
Config RandomConfig(const ConvTemplate& conv_template, const ConvWorkload& w, const Target& cpu,
                    TestRandom& random) {
  const ConfigSpace space = conv_template.Space(w, cpu);
  for (int tries = 0; random.Integer(0, 6) != 0 && tries < 2000; ++tries) {
    const uint64_t index = random.Next() % space.size();
    if (space.IsValid(index)) return space.At(index);
  }
  return conv_template.Default(w, cpu);
}

// What a case computes, in its output's layout, padding included.
Tensor Compute(const Case& c, const QuantizedData& data, TestRandom& random) {
  const ConvWorkload& w = c.workload;
  const LayoutPair layouts = c.conv_template.Layouts(w, c.config);
  const auto kernel = BuildRebuilt(c.conv_template, w, c.config, c.cpu, {.quantized = data.op.get()});
  EXPECT_FALSE(kernel->PackedWeights().empty());
  EXPECT_EQ(kernel->Grid(0).tasks(), c.conv_template.Grid(w, c.config, c.cpu).tasks());
  return RunGuarded(*kernel, w, layouts, data.input, w.post.sum ? &*data.residual : nullptr, random);
}

std::vector<Target> CpusOf(const ConvTemplate& conv_template) {
  std::vector<Target> cpus = TestCpus();
  if (&conv_template == &AmxInt8Template()) std::erase_if(cpus, [](const Target& cpu) { return !cpu.amx; });
  if (&conv_template != &WinogradInt8Template()) return cpus;
  for (Target& cpu : cpus) cpu.vnni = false;  // weights with a sign are for direct_int8 there
  return cpus;
}

void ExpectExact(const Case& c, TestRandom& random) {
  SCOPED_TRACE(c.Text());
  ASSERT_EQ(c.conv_template.Space(c.workload, c.cpu).WhyInvalid(c.config), "");
  const QuantizedData data = MakeQuantizedData(c.workload, c.seed);
  const Tensor got = Compute(c, data, random);
  const Tensor expected = TransformGeneric(data.op->Reference(data.inputs()), got.layout());
  ASSERT_EQ(got.bytes(), expected.bytes());
  const auto differ = std::mismatch(got.raw(), got.raw() + got.bytes(), expected.raw());
  EXPECT_EQ(differ.first - got.raw(), got.bytes()) << "the first byte that is wrong";
}

void ExpectExact(const ConvTemplate& conv_template, int cases) {
  const std::vector<Target> cpus = CpusOf(conv_template);
  for (int i = 0; i < cases && !testing::Test::HasFailure(); ++i) {
    TestRandom random(static_cast<uint64_t>(i) * 16 + 3);
    const Target cpu = random.Pick(cpus);
    Case c{.conv_template = conv_template,
           .workload = RandomByteWorkload(conv_template, cpu, random),
           .config = {},
           .cpu = cpu,
           .seed = random.Next()};
    c.config = RandomConfig(conv_template, c.workload, c.cpu, random);
    ExpectExact(c, random);
  }
}

TEST(DirectInt8, EveryConfigIsExact) { ExpectExact(DirectInt8Template(), SweepLength()); }
TEST(AmxInt8, EveryConfigIsExact) {
  if (CpusOf(AmxInt8Template()).empty()) GTEST_SKIP() << "no AMX";
  ExpectExact(AmxInt8Template(), SweepLength());
}
TEST(WinogradInt8, EveryConfigIsExact) { ExpectExact(WinogradInt8Template(), SweepLength() / 4); }

// Three channels, which become pixels of four bytes by vectors.
TEST(Int8, ImagesAreExact) {
  TestRandom random(1);
  for (const ConvTemplate* conv_template : {&AmxInt8Template(), &DirectInt8Template()}) {
    for (const char* text : {"ic3ih45oc40kh7sh2ph3+bias:u8:i8:u8", "mb2ic3ih37oc16kh3ph1:i8:i8:i8"}) {
      for (const Target& cpu : CpusOf(*conv_template)) {
        const ConvWorkload w = ParseWorkload(text);
        for (const int64_t block : {0, 1}) {
          Case c{*conv_template, w, conv_template->Default(w, cpu), cpu, 1};
          c.config.Set("ic_block", block);
          ExpectExact(c, random);
        }
      }
    }
  }
}

// The largest input and the largest weights everywhere, of either sign, and as many channels as are taken.
TEST(WinogradInt8, ExtremesAreExact) {
  for (const char* text : {"ic1827ih6oc17kh3ph1+bias:u8:i8:f32", "ic917ih5oc3kh3ph1:i8:u8:u8"}) {
    const ConvWorkload w = ParseWorkload(text);
    for (Target cpu : CpusOf(WinogradInt8Template())) {
      ASSERT_TRUE(WinogradInt8Template().Supports(w, cpu).ok) << text;
      for (const int sign : {1, -1}) {
        QuantizedData data = MakeQuantizedData(w, 1);
        VisitType(w.bytes->in, [&](auto tag) {
          using T = typename decltype(tag)::Type;
          const T extreme = sign > 0 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min();
          std::fill_n(data.input.data<T>(), data.input.size(), extreme);
        });
        TestRandom random(1);
        const Case c{WinogradInt8Template(), w, WinogradInt8Template().Default(w, cpu), cpu, 1};
        const Tensor got = Compute(c, data, random);
        const Tensor expected = TransformGeneric(data.op->Reference(data.inputs()), got.layout());
        EXPECT_EQ(std::memcmp(got.raw(), expected.raw(), static_cast<size_t>(got.bytes())), 0) << c.Text();
      }
    }
  }
  ConvWorkload more = ParseWorkload("ic1828ih6oc17kh3ph1:u8:i8:u8");
  Target cpu = TestCpu();
  cpu.vnni = false;
  EXPECT_FALSE(WinogradInt8Template().Supports(more, cpu).ok);
}

// Outputs use their range, so that a wrong one is seen.
TEST(DirectInt8, DataFillsItsRange) {
  for (const char* text : {"ic64ih14oc64kh3ph1+bias:u8:i8:u8", "g32ic32ih14oc32kh3ph1+sum:i8:i8:i8",
                           "ic512ih7oc64kh1:u8:u8:u8", "ic3ih20oc8kh7sh2ph3:i8:u8:i8"}) {
    const QuantizedData data = MakeQuantizedData(ParseWorkload(text), 1);
    EXPECT_EQ(WorkloadToString(data.op->workload()), WorkloadToString(ParseWorkload(text)));
    const Tensor out = data.op->Reference(data.inputs());
    std::vector<int64_t> seen(256);
    for (int64_t i = 0; i < out.bytes(); ++i) ++seen[static_cast<size_t>(out.raw()[i])];
    EXPECT_GT(std::ranges::count_if(seen, [](int64_t times) { return times > 0; }), 100) << text;
    EXPECT_LT(seen[0] + seen[255] + seen[127] + seen[128], out.bytes() / 4) << text;
  }
}

TEST(DirectInt8, TypesAreTheWorkloads) {
  const ConvWorkload w = ParseWorkload("ic64ih14oc64kh3ph1:u8:i8:f32");
  const ConfigSpace space = DirectInt8Template().Space(w, TestCpu());
  const std::vector<LayoutPair> pairs = DirectInt8Template().LayoutPairs(w, space);
  EXPECT_EQ(pairs.size(), 36);  // 1, 8, 16, 32, 64, NHWC on either side
  for (const LayoutPair& pair : pairs) {
    EXPECT_EQ(pair.in.type(), DataType::kU8);
    EXPECT_EQ(pair.out.type(), DataType::kF32);
  }
}

TEST(DirectInt8, FloatsAndBytesHaveTemplatesOfTheirOwn) {
  const ConvWorkload floats = ParseWorkload("ic64ih14oc64kh3ph1"),
                     bytes = ParseWorkload("ic64ih14oc64kh3ph1:u8:i8:u8");
  EXPECT_EQ(DirectInt8Template().Supports(floats, TestCpu()).reason, "computes bytes, not floats");
  for (const ConvTemplate* conv_template : ConvTemplates())
    EXPECT_FALSE(conv_template->Supports(bytes, TestCpu()).ok) << conv_template->Name();
  EXPECT_THAT(ConvTemplatesFor(TestCpu(), bytes),
              testing::ElementsAre(&AmxInt8Template(), &DirectInt8Template(), &WinogradInt8Template()));
  EXPECT_EQ(KnownConvTemplate("direct_int8"), &DirectInt8Template());
  EXPECT_FALSE(DirectInt8Template().Supports(ParseWorkload("ic4ih9000oc4kh4000ph1:u8:i8:u8"), TestCpu()).ok);
}

// The nest covers what there is to multiply.
void ExpectNestsCover(const ConvTemplate& conv_template) {
  const Target cpu = CpusOf(conv_template).back();
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    TestRandom random(seed);
    const ConvWorkload w = RandomByteWorkload(conv_template, cpu, random);
    const Config config = RandomConfig(conv_template, w, cpu, random);
    const LoopNest nest = conv_template.Nest(w, config, cpu);
    EXPECT_GE(nest.multiplications() * (1 + 1e-12), w.flops() / 2)
        << WorkloadToString(w) << config.ToString();
    const LoopFeatures f = conv_template.Features(w, config, cpu);
    for (const float value : FeatureVector(f, w, cpu, 2)) EXPECT_TRUE(std::isfinite(value));
    EXPECT_GE(f.flops * (&conv_template == &WinogradInt8Template() ? 2.25 : 1) * (1 + 1e-12), w.flops());
  }
}

TEST(DirectInt8, NestsCoverTheConvolution) { ExpectNestsCover(DirectInt8Template()); }
TEST(AmxInt8, NestsCoverTheConvolution) {
  if (CpusOf(AmxInt8Template()).empty()) GTEST_SKIP() << "no AMX";
  ExpectNestsCover(AmxInt8Template());
}
TEST(WinogradInt8, NestsCoverTheConvolution) { ExpectNestsCover(WinogradInt8Template()); }

}  // namespace
}  // namespace tilesmith::int8_conv
