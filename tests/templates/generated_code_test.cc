// Every template for CPUs: its machine code says nothing of where it lies, and its kernels are made of their
// parts alone. Nothing runs here, so that code for CPUs with AMX is looked at wherever code is generated.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "layouts/random_tensor.h"
#include "templates/base/workload_data.h"
#include "templates/winograd_int8/config.h"
#include "tests/support/random_config.h"
#include "tests/support/random_workload.h"
#include "tests/support/template_cpu.h"
#include "tests/templates/rebuilt_kernel.h"

namespace tilesmith {
namespace {

std::vector<const ConvTemplate*> CpuTemplates() {
  std::vector<const ConvTemplate*> templates(AllConvTemplates().begin(), AllConvTemplates().end());
  std::erase_if(templates, [](const ConvTemplate* one) { return one->DeviceKind() != kCpuDevice; });
  return templates;
}

ConvWorkload DrawWorkload(TestRandom& random, DataType type) {
  if (type == DataType::kI8) {
    ConvWorkload workload = RandomWorkload(random);
    workload.post.activation = {};
    if (random.Integer(0, 1) == 0) {  // as winograd_int8 wants them
      workload.kh = workload.kw = 3;
      workload.g = workload.sh = workload.sw = workload.ph = workload.pw = 1;
      workload.dh = workload.dw = 0;
      workload.oh = workload.ih;
      workload.ow = workload.iw;
    }
    workload.bytes = ByteTypes();
    return workload;
  }
  switch (random.Integer(1, 3)) {
    case 1:
      return RandomFusedWorkload(random);
    case 2:
      return RandomProduct(random);
    default:
      return random.Integer(1, 8) == 1 ? RandomOrderedByTiles(random) : RandomWorkload(random);
  }
}

class GeneratedCode : public testing::TestWithParam<const ConvTemplate*> {};

TEST_P(GeneratedCode, SaysNothingOfWhereItLies) {
  const ConvTemplate& conv_template = *GetParam();
  Target cpu = CpuFor(conv_template);
  if (cpu.isa == Isa::kAvx512) cpu.vnni = cpu.bf16 = cpu.amx = true;
  // It leaves bytes that are multiplied in fours to others.
  if (&conv_template == &WinogradInt8Template()) cpu.vnni = cpu.bf16 = cpu.amx = false;
  if (!conv_template.RunsOn(cpu).ok) GTEST_SKIP() << conv_template.RunsOn(cpu).reason;
  if (conv_template.Name().starts_with("amx") && !cpu.amx) GTEST_SKIP() << "tiles are AVX-512's";
  int seen = 0;
  for (uint64_t seed = 0; seed < 4000 && seen < 25 && !HasFailure(); ++seed) {
    TestRandom random(seed);
    const ConvWorkload workload = DrawWorkload(random, conv_template.Type());
    if (!conv_template.Supports(workload, cpu).ok) continue;
    ++seen;
    const ConfigSpace space = conv_template.Space(workload, cpu);
    const Config config =
        RandomValidConfig(space, random, 2000).value_or(conv_template.Default(workload, cpu));
    SCOPED_TRACE(fmt::format("seed {}: {} {}", seed, WorkloadToString(workload), config.ToString()));
    const WorkloadData data = MakeWorkloadData(workload, seed, [&](Tensor& tensor) {
      FillUniform({tensor.floats(), static_cast<size_t>(tensor.size())}, random.Next());
    });
    BuildRebuilt(conv_template, workload, config, cpu, data.operands().weights);
  }
  EXPECT_GT(seen, 0);
}

INSTANTIATE_TEST_SUITE_P(Templates, GeneratedCode, testing::ValuesIn(CpuTemplates()),
                         [](const auto& info) { return std::string(info.param->Name()); });

}  // namespace
}  // namespace tilesmith
