// Kernels of one convolution for images of several sizes, which share parts by their keys: a key that lacks
// something would give a kernel the parts of another one.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "layouts/kernel_parts.h"
#include "templates/base/conv_template.h"
#include "tests/support/random.h"
#include "tests/support/test_cpu.h"

namespace tilesmith {
namespace {

struct Size {
  int64_t height, width;
};

constexpr Size kSizes[] = {{7, 7},  {8, 20},  {13, 33}, {16, 16}, {9, 40}, {8, 21},
                           {3, 64}, {16, 17}, {6, 32},  {6, 48},  {5, 64}};

ConvWorkload OfSize(const std::string& text, const Size& size) {
  ConvWorkload w = ParseWorkload(text);
  w.ih = size.height, w.iw = size.width;
  w.oh = (w.ih + 2 * w.ph - (w.kh - 1) * (w.dh + 1) - 1) / w.sh + 1;
  w.ow = (w.iw + 2 * w.pw - (w.kw - 1) * (w.dw + 1) - 1) / w.sw + 1;
  return w;
}

std::vector<Config> SomeConfigs(const ConvTemplate& conv_template, const ConvWorkload& w,
                                const std::vector<Config>& of_other_sizes, const Target& cpu,
                                TestRandom& random) {
  constexpr int kTries = 40, kMost = 2;
  const ConfigSpace space = conv_template.Space(w, cpu);
  std::vector<Config> configs = {conv_template.Default(w, cpu)};
  for (const Config& config : of_other_sizes) {
    if (space.IndexOf(config) && space.WhyInvalid(config).empty()) configs.push_back(config);
  }
  const size_t most = configs.size() + kMost;
  for (int i = 0; i < kTries && configs.size() < most; ++i) {
    const auto index = static_cast<uint64_t>(random.Integer(0, static_cast<int64_t>(space.size()) - 1));
    if (space.IsValid(index)) configs.push_back(space.At(index));
  }
  return configs;
}

bool SameBytes(const KernelPart& a, const KernelPart& b) {
  return a.is_code == b.is_code && a.functions == b.functions &&
         std::ranges::equal(a.memory.bytes(), b.memory.bytes());
}

class SharedParts : public testing::TestWithParam<const char*> {};

TEST_P(SharedParts, AreThoseThatAKernelMakesByItself) {
  TestRandom random(1);
  const Target cpu = TestCpu();
  const ConvWorkload any = OfSize(GetParam(), kSizes[0]);
  const auto weights = std::make_shared<Tensor>(any.weights_shape());
  FillUniform({weights->floats(), static_cast<size_t>(weights->size())}, 2);
  std::vector<float> bias(static_cast<size_t>(any.oc));
  FillUniform(bias, 3);
  BufferPool pool;
  int code_parts = 0, data_parts = 0, shared_code = 0, shared_data = 0;
  for (const DataType type : {DataType::kF32, DataType::kBf16}) {
    for (const ConvTemplate* conv_template : ConvTemplates(kCpuDevice, type)) {
      std::vector<Config> configs;
      std::vector<std::shared_ptr<ConvKernel>> kernels;  // whose data live as long as all sizes are built
      for (const Size& size : kSizes) {
        const ConvWorkload w = OfSize(GetParam(), size);
        if (!conv_template->Supports(w, cpu).ok) continue;
        configs = SomeConfigs(*conv_template, w, configs, cpu, random);
        for (const Config& config : configs) {
          SCOPED_TRACE(std::string(conv_template->Name()) + " " + WorkloadToString(w) + " " +
                       config.ToString());
          KernelParts own,
              shared(
                  {.pool = &pool,
                   .kernel = PartKey(conv_template->Name()).Add(WorkloadToString(w)).Add(config.ToString()),
                   .weights = {weights}});
          ConvWeights given{.weights = weights->floats(), .bias = w.post.bias ? bias.data() : nullptr};
          for (KernelParts* parts : {&own, &shared}) {
            given.parts = parts;
            kernels.push_back(conv_template->Build(w, config, cpu, given));
          }
          ASSERT_EQ(own.parts().size(), shared.parts().size());
          for (size_t i = 0; i < own.parts().size(); ++i) {
            const KernelPart &made = own.parts()[i], &found = shared.parts()[i];
            EXPECT_TRUE(SameBytes(made, found)) << "part " << i;
            (made.is_code ? code_parts : data_parts) += 1;
          }
        }
      }
      // Equal parts lie at one place.
      std::vector<const uint8_t*> code;
      std::vector<const std::byte*> data;
      for (size_t i = 1; i < kernels.size(); i += 2) {
        for (const CodeBlob& blob : kernels[i]->Code()) code.push_back(blob.bytes.data());
        data.push_back(kernels[i]->PackedWeights().data());
      }
      const auto repeated = [](auto places) {
        std::ranges::sort(places);
        return static_cast<int>(std::ranges::unique(places).size());
      };
      shared_code += repeated(code);
      shared_data += repeated(data);
    }
  }
  EXPECT_GT(code_parts + data_parts, 0);
  EXPECT_GT(shared_data, 0);
  const bool is_dense = any.g == 1 && any.oc >= 16;  // rows of the direct template
  if (is_dense && cpu.isa != Isa::kPortable) {
    EXPECT_GT(shared_code, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(OfSizes, SharedParts,
                         testing::Values("ic32ih7oc48oh7kh3ph1+bias+relu", "ic64ih7oc40oh7kh1+bias",
                                         "ic64ih7oc96oh7kh1+bias+sum", "g32ic32ih7oc32oh7kh3ph1+bias",
                                         "g40ic40ih7oc40oh4kh5sh2ph2", "ic3ih7oc24oh4kh3sh2ph1+bias",
                                         "g4ic32ih7oc32oh7kh3ph1", "ic20ih7oc33oh7kh3ph2dh1+bias",
                                         "ic16ih7oc2oh7kh3ph1+bias"),
                         [](const auto& info) { return "N" + std::to_string(info.index); });

}  // namespace
}  // namespace tilesmith
