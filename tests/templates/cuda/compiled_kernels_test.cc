// What NVIDIA's compiler makes of kernels of all CUDA templates, for compute capabilities 8.0 and 9.0: it
// takes them, and keeps in registers what validity says fits. Skipped where there is no nvcc. What runs on a
// GPU is compiled by NVRTC, which refuses some of what nvcc takes: it is asked, too, where there is one.
// TILESMITH_CUDA_CASES=N compiles N random configs of each template and workload, instead of 1.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <regex>
#include <sstream>

#include "layouts/base/error.h"
#include "ops/dense/softmax.h"
#include "ops/elementwise/batch_norm.h"
#include "templates/base/workload_data.h"
#include "templates/cuda_device/driver.h"
#include "templates/cuda_device/modules.h"
#include "templates/cuda_device/op_programs.h"
#include "templates/cuda_gemm/config.h"
#include "tests/support/cuda/cuda_targets.h"
#include "tests/support/cuda/emulated_programs.h"
#include "tests/support/random.h"
#include "tests/support/random_config.h"
#include "tests/support/temporary_files.h"

namespace tilesmith {
namespace compiled_kernels {
namespace {

std::string Nvcc() {
  const char* path = std::getenv("PATH");
  std::istringstream folders((path == nullptr ? "" : std::string(path) + ":") + "/usr/local/cuda/bin");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const std::string program = folder + "/nvcc"; access(program.c_str(), X_OK) == 0) return program;
  return "";
}

struct Built {
  std::string text;
  int64_t threads = 0;  // of its largest block
  std::unique_ptr<ConvKernel> kernel;
};

void Add(std::vector<Built>& built, const ConvTemplate& conv_template, const std::string& text,
         int random_configs) {
  const ConvWorkload w = ParseWorkload(text);
  // The smaller of the two, so that its configs are the other's as well.
  const Target target = CudaTargetForTests(80, true);
  if (!conv_template.Supports(w, target).ok) return;
  const WorkloadData data = MakeWorkloadData(w, 1, [](Tensor&) {});
  const ConfigSpace space = conv_template.Space(w, target);
  std::vector<Config> configs = {conv_template.Default(w, target)};
  TestRandom random(built.size() + 1);
  while (static_cast<int>(configs.size()) <= random_configs)
    if (const uint64_t index = random.Next() % space.size(); space.IsValid(index))
      configs.push_back(space.At(index));
  for (const Config& config : configs) {
    Built& b = built.emplace_back();
    b.text = fmt::format("{} {} {}", conv_template.Name(), text, config.ToString());
    b.kernel = conv_template.Build(w, config, target, data.operands().weights);
    for (const CudaLaunch& launch : dynamic_cast<const CudaConv&>(*b.kernel).program().launches)
      b.threads = std::max(b.threads, launch.threads);
  }
}

struct Compiled {
  std::string function;  // "k_7_gemm"
  size_t program = 0;
  int64_t spilled_bytes = -1, registers = 0;
};

// The number in front of `what`, or -1.
int64_t NumberBefore(const std::string& line, const std::string& what) {
  const size_t at = line.find(what);
  if (at == std::string::npos) return -1;
  const size_t begin = line.find_last_not_of("0123456789", at - 1) + 1;
  return std::atoll(line.c_str() + begin);
}

// What ptxas -v says, by function.
std::vector<Compiled> FunctionsIn(const std::string& log) {
  std::vector<Compiled> compiled;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const std::string entry = "Compiling entry function '";
    if (const size_t at = line.find(entry); at != std::string::npos) {
      Compiled& c = compiled.emplace_back();
      c.function = line.substr(at + entry.size(), line.find('\'', at + entry.size()) - at - entry.size());
      c.program = static_cast<size_t>(std::atoll(c.function.c_str() + 2));
    }
    if (compiled.empty()) continue;
    if (const int64_t bytes = NumberBefore(line, " bytes spill stores"); bytes >= 0)
      compiled.back().spilled_bytes = bytes;
    if (const int64_t registers = NumberBefore(line, " registers"); registers >= 0)
      compiled.back().registers = registers;
  }
  return compiled;
}

// What nvcc says of the programs; a failure where it does not take them.
std::string CompilerLog(const std::string& nvcc, const std::string& arch,
                        const std::vector<const CudaProgram*>& programs) {
  const TemporaryDirectory folder;
  const std::string source = folder.File("kernels.cu"), log = folder.File("log");
  WriteFile(source, OneSource(programs, "k"));
  const std::string command = fmt::format("{} -std=c++17 -cubin -arch={} -Xptxas -v {} -o {} > {} 2>&1", nvcc,
                                          arch, source, folder.File("kernels.cubin"), log);
  const int status = std::system(command.c_str());
  const std::string said = ReadFile(log);
  EXPECT_EQ(status, 0) << said.substr(0, 4000);
  return said;
}

class CompiledKernels : public testing::TestWithParam<const char*> {};

// Configs of all templates: their defaults, and `cases` random ones of each and workload.
std::vector<Built> BuildSample(int cases) {
  std::vector<Built> built;
  for (const ConvTemplate* conv_template : ConvTemplates(kCudaDevice))
    for (const char* workload :
         {"ic3ih224oc64kh7sh2ph3+bias+relu", "ic512ih7oc512kh3ph1+bias+sum+relu",
          "g96ic96ih28oc96kh3ph1+bias+clip:0:6", "g32ic128ih28oc128kh3ph1+hard_swish"}) {
      const bool of_groups =
          conv_template->Name() == "cuda_depthwise" || conv_template->Name() == "cuda_grouped";
      if (of_groups != std::string_view(workload).starts_with("g")) continue;
      Add(built, *conv_template, workload, cases);
    }
  for (const char* workload : {"ic3ih224oc64kh7sh2ph3+bias+relu", "ic512ih7oc512kh3ph1+bias+sum+relu"})
    Add(built, CudaTensorBf16Template(), workload, cases);
  for (const char* workload : {"ic64ih56oc64kh1+bias:i8:i8:f32", "ic512ih7oc512kh3ph1+bias+sum:u8:i8:u8"})
    Add(built, CudaTensorInt8Template(), workload, cases);
  return built;
}

const CudaProgram& ProgramOf(const Built& built) {
  return dynamic_cast<const CudaConv&>(*built.kernel).program();
}

TEST_P(CompiledKernels, FitRegistersAsValiditySays) {
  const std::string nvcc = Nvcc();
  if (nvcc.empty()) GTEST_SKIP() << "no nvcc: only the emulation ran";
  const std::vector<Built> built = BuildSample(CaseCount("TILESMITH_CUDA_CASES", 1));
  std::vector<const CudaProgram*> programs;
  for (const Built& b : built) programs.push_back(&ProgramOf(b));

  const std::string said = CompilerLog(nvcc, GetParam(), programs);
  const std::vector<Compiled> functions_compiled = FunctionsIn(said);
  for (const Compiled& f : functions_compiled) {
    const Built& b = built.at(f.program);
    EXPECT_EQ(f.spilled_bytes, 0) << f.function << " of " << b.text;
    EXPECT_LE(f.registers * b.threads, 65536) << f.function << " of " << b.text;
  }
  size_t functions = 0;
  for (const CudaProgram* program : programs) functions += program->launches.size();
  EXPECT_EQ(functions_compiled.size(), functions) << said.substr(0, 2000);
}

// Programs of ops that read their shapes at run time have all their functions in one text.
std::vector<CudaProgram> OpPrograms() {
  const Shape shape = {1, 2, 3, 4};
  const ScaleShiftOp silu({1, 2}, {3, 4}, {ActivationKind::kSilu});
  return {*cuda::TransformProgram(shape, Layout::Nchw(), Layout::Nhwc()),
          *cuda::ProgramOf(silu, {{shape}, shape, Layout::Nhwc(), CudaTargetForTests(80)}),
          *cuda::ProgramOf(SoftmaxOp(1, 1), {{shape}, shape, Layout::Nchw(), CudaTargetForTests(80)})};
}

TEST_P(CompiledKernels, OpsSpillNothing) {
  const std::string nvcc = Nvcc();
  if (nvcc.empty()) GTEST_SKIP() << "no nvcc: only the emulation ran";
  const std::vector<CudaProgram> programs = OpPrograms();
  std::vector<const CudaProgram*> pointers;
  for (const CudaProgram& program : programs) pointers.push_back(&program);
  const std::vector<Compiled> compiled = FunctionsIn(CompilerLog(nvcc, GetParam(), pointers));
  constexpr size_t kMapAndFourOps = 5, kWalks = 10;
  EXPECT_EQ(compiled.size(), kMapAndFourOps + kWalks);
  for (const Compiled& f : compiled) EXPECT_EQ(f.spilled_bytes, 0) << f.function;
}

// nvcc takes functions that are neither __device__ nor __global__ as the host's.
TEST(CudaTexts, FunctionsAreTheDevices) {
  const std::regex function(R"(^(?!struct|template|typedef|using|namespace|#|//|\s|\})[^=;]*\w\([^;]*\{$)");
  std::vector<std::string> texts;
  for (const Built& b : BuildSample(0)) texts.push_back(ProgramOf(b).text);
  for (const CudaProgram& program : OpPrograms()) texts.push_back(program.text);
  int seen = 0;
  for (const std::string& text : texts) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (!std::regex_search(line, function)) continue;
      ++seen;
      EXPECT_TRUE(line.find("__device__") != std::string::npos ||
                  line.find("__global__") != std::string::npos)
          << line;
    }
  }
  EXPECT_GT(seen, 20);
}

TEST(CudaTexts, NvrtcTakesThem) {
  try {
    int major = 0, minor = 0;
    cuda::LoadedNvrtc().version(&major, &minor);
    if (major == 0) GTEST_SKIP() << "a test before this one loaded the fake";
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const std::vector<Built> built = BuildSample(CaseCount("TILESMITH_CUDA_CASES", 1));
  for (const Built& b : built) EXPECT_NO_THROW(cuda::Compile(ProgramOf(b).text, b.text, 80));
  for (const CudaProgram& program : OpPrograms()) EXPECT_NO_THROW(cuda::Compile(program.text, "ops", 80));
}

INSTANTIATE_TEST_SUITE_P(Architectures, CompiledKernels, testing::Values("sm_80", "sm_90a"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace compiled_kernels
}  // namespace tilesmith
