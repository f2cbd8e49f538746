// Outputs that are the same bits wherever they are computed (ops/order.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "layouts/random_tensor.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_files.h"
#include "tests/support/test_cpu.h"
#include "tests/tools/cli.h"
#include "tools/api/tilesmith.h"

namespace tilesmith {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

// The instructions that models use from here on in this process.
class CappedInstructions {
 public:
  explicit CappedInstructions(Isa isa) {
    if (const char* const before = std::getenv(kVariable)) before_ = before;
    setenv(kVariable, std::string(IsaName(isa)).c_str(), 1);
  }
  ~CappedInstructions() { before_.empty() ? unsetenv(kVariable) : setenv(kVariable, before_.c_str(), 1); }
  CappedInstructions(const CappedInstructions&) = delete;
  CappedInstructions& operator=(const CappedInstructions&) = delete;

 private:
  static constexpr const char* kVariable = "TILESMITH_MAX_ISA";
  std::string before_;
};

// FNV-1a, of the bits of the outputs for inputs of RandomTensor.
uint64_t HashOfOutputs(const Model& model) {
  std::vector<Tensor> inputs;
  std::vector<InputTensor> given;
  for (const TensorInfo& input : model.inputs()) {
    inputs.push_back(RandomTensor(Shape(input.shape.begin(), input.shape.end()), inputs.size() + 1));
    given.push_back({inputs.back().raw()});
  }
  for (size_t i = 0; i < inputs.size(); ++i) given[i].data = inputs[i].raw();
  Session session = model.NewSession();
  uint64_t hash = 0xcbf29ce484222325;
  for (const OutputTensor& output : session.Run(given)) {
    for (size_t i = 0; i < output.bytes; ++i)
      hash = (hash ^ static_cast<const uint8_t*>(output.data)[i]) * 0x100000001b3;
  }
  return hash;
}

struct Hashed {
  const char* network;
  const char* shape;
  uint64_t hash;
};

// Of order version 1. Another order is another version, and other hashes.
constexpr Hashed kHashes[] = {
    {"resnet18", "1x3x64x64", 0x846afe2453a8e909},      {"resnet34", "1x3x64x64", 0x69ffda2f32ce6357},
    {"resnet50", "1x3x64x64", 0x09626f1a128608a9},      {"resnet101", "1x3x32x32", 0x579e18f1ac7de458},
    {"vgg16", "1x3x32x32", 0x051ce99fba061be1},         {"vgg19", "1x3x32x32", 0x0dca7326fc48b659},
    {"mobilenet_v1", "1x3x64x64", 0xfa02f993e98e9a5f},  {"mobilenet_v2", "1x3x64x64", 0xb6081e7759327937},
    {"squeezenet1_1", "1x3x64x64", 0xdf8e9297932d192a}, {"densenet121", "1x3x64x64", 0x14d1e87073cb9bac},
    {"inception_v3", "1x3x96x96", 0x2018043ea06db006},  {"unet", "1x3x32x32", 0x95889bc2fb0e226e},
    {"resnet18", "3x3x71x97", 0xd171611c6bd73c90},      {"resnet50", "2x3x75x51", 0x55fa74e9f3e2d452},
    {"mobilenet_v1", "2x3x33x47", 0x190e08909cb259e2},  {"mobilenet_v2", "2x3x96x81", 0xfdbdb6260b3dc6ac},
    {"squeezenet1_1", "2x3x65x51", 0x482d48c372154406}, {"densenet121", "2x3x50x66", 0xcb3a8912ac7d68d7},
    {"inception_v3", "1x3x111x87", 0xfe56fb5bc3001d56}, {"unet", "2x3x32x48", 0x7a762367f59b2364},
};

TEST(ReproducibleTest, NetworksHaveTheBitsThatEveryMachineHas) {
  for (const Isa isa : kTestIsas) {
    if (isa > TestCpu().isa) continue;
    const CappedInstructions capped(isa);
    for (const Hashed& hashed : kHashes) {
      // Without instructions for fused products a large one takes many seconds.
      if (isa == Isa::kPortable && &hashed - kHashes > 8 && TestCpu().isa > isa) continue;
      for (const int threads : {1, 2}) {
        if (threads > TestCpu().cores) continue;
        const Model model =
            Model::Load(hashed.network, {.threads = threads,
                                         .input_shapes = {"input=" + std::string(hashed.shape)},
                                         .reproducible = true});
        EXPECT_TRUE(model.reproducible());
        EXPECT_EQ(HashOfOutputs(model), hashed.hash) << hashed.network << " of " << hashed.shape << " in "
                                                     << IsaName(isa) << ", " << threads << " threads";
      }
    }
  }
}

TEST(ReproducibleTest, APlanCarriesIt) {
  const TemporaryDirectory directory;
  const std::string plan = directory.File("plan.jsonl"), free_plan = directory.File("free.jsonl");
  const std::vector<std::string> small = {"resnet18", "--input-shape", "input=1x3x32x32", "--threads", "1"};
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin() + 1, small.begin(), small.end());
    return Tilesmith(arguments);
  };
  const std::vector<std::string> choose = {"graph-tune", "--default-schedules", "--rounds", "0", "--time",
                                           "1ms"};
  for (const std::string& path : {plan, free_plan}) {
    std::vector<std::string> arguments = choose;
    arguments.insert(arguments.end(), {"-o", path});
    if (path == plan) arguments.emplace_back("--reproducible");
    const ProgramResult chosen = run(arguments);
    ASSERT_EQ(chosen.exit_code, 0) << chosen.err;
  }
  const ProgramResult by_plan = run({"run", "--plan", plan, "--runs", "1", "--check"});
  EXPECT_EQ(by_plan.exit_code, 0) << by_plan.err;
  EXPECT_THAT(by_plan.out, HasSubstr("reproducible"));
  const ProgramResult refused = run({"run", "--plan", free_plan, "--reproducible"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("made without --reproducible"));
  const std::string text = ReadFile(plan), order = "\"order\":1";
  ASSERT_NE(text.find(order), std::string::npos) << text.substr(0, text.find('\n'));
  const std::string other = directory.File("other.jsonl");
  WriteFile(other, std::string(text).replace(text.find(order), order.size(), "\"order\":2"));
  EXPECT_THAT(run({"run", "--plan", other}).err, HasSubstr("\"order\" is 2 (this version adds by order 1)"));
  const LoadOptions by_api = {
      .plan = plan, .threads = 1, .input_shapes = {"input=1x3x32x32"}};  // it asks by itself
  const Model model = Model::Load("resnet18", by_api);
  EXPECT_TRUE(model.reproducible());
  EXPECT_EQ(HashOfOutputs(model),
            HashOfOutputs(Model::Load(
                "resnet18", {.threads = 1, .input_shapes = {"input=1x3x32x32"}, .reproducible = true})));
  const std::string compiled = directory.File("compiled.tsc");
  const ProgramResult written = run({"compile", "--plan", plan, "-o", compiled});
  ASSERT_EQ(written.exit_code, 0) << written.err;
  EXPECT_EQ(HashOfOutputs(Model::Load(compiled, {.reproducible = true})), HashOfOutputs(model));
}

TEST(ReproducibleTest, RefusesWhatCpusRoundInTheirOwnWay) {
  const ProgramResult bf16 = Tilesmith(
      {"optimize", "resnet18", "-o", "plan.jsonl", "--for", "1s", "--reproducible", "--precision", "bf16"});
  EXPECT_EQ(bf16.exit_code, 2);
  EXPECT_THAT(bf16.err, HasSubstr("--reproducible takes f32 and int8"));
  const ProgramResult space = Tilesmith({"space", "ic64ih56oc64oh56kh3ph1", "--reproducible", "--json"});
  ASSERT_EQ(space.exit_code, 0) << space.err;
  for (const Json& row : Json::parse(space.out)["templates"]) {
    if (row["template"] != "winograd") continue;
    EXPECT_EQ(row["supported"], false);
    EXPECT_THAT(row["note"].get<std::string>(), HasSubstr("an order of its own"));
  }
}

}  // namespace
}  // namespace tilesmith
