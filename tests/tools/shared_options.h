// What tests of options and settings that several commands and interfaces share work on.
#pragma once

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/ops/onnx_model.h"
#include "tests/support/random.h"
#include "tests/support/temporary_files.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"
#include "tools/cli/npz.h"

namespace tilesmith {

using Names = std::set<std::string>;

// x, of which the width is open -> two convolutions -> y.
inline std::string WriteTinyNetwork(const TemporaryDirectory& directory) {
  OnnxModel model;
  uint64_t seed = 1;
  const auto add_weights = [&](const std::string& name, const std::vector<int64_t>& dims) {
    std::vector<float> values(static_cast<size_t>(ElementCount(Shape(dims.begin(), dims.end()))));
    FillUniform(values, seed++);
    model.Floats(name, dims, values);
  };
  model.Input("x", {1, 3, 12, "width"});
  add_weights("w1", {16, 3, 3, 3});
  add_weights("w2", {8, 16, 1, 1});
  model.Node("Conv", {"x", "w1"}, {"a"}, "first");
  model.Node("Relu", {"a"}, {"b"});
  model.Node("Conv", {"b", "w2"}, {"y"}, "second");
  model.Output("y");
  const std::string path = directory.File("tiny.onnx");
  WriteFile(path, model.Bytes());
  return path;
}

// What all tests work on, made once.
struct TinyNetworkFiles {
  const TemporaryDirectory directory;
  const std::string model = WriteTinyNetwork(directory), samples = directory.File("samples.npz"),
                    log = directory.File("log.jsonl"), plan = directory.File("plan.jsonl");
  static constexpr const char* kShape = "x=1x3x12x10";

  TinyNetworkFiles() {
    std::vector<NamedTensor> arrays;
    arrays.emplace_back("x", Tensor({4, 3, 12, 10}));
    FillUniform({arrays[0].second.floats(), static_cast<size_t>(arrays[0].second.size())}, 7);
    WriteNpz(samples, arrays);
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"tune", model, "-o", log, "--trials", "1", "--no-baseline"},
          {"graph-tune", model, "--log", log, "-o", plan, "--rounds", "0", "--default-schedules",
           "--no-baselines"}}) {
      std::vector<std::string> made = arguments;
      made.insert(made.end(), {"--threads", "1", "--input-shape", kShape, "-q"});
      const ProgramResult result = Tilesmith(made);
      EXPECT_EQ(result.exit_code, 0) << result.err;
    }
  }
  static const TinyNetworkFiles& Made() {
    static const TinyNetworkFiles files;
    return files;
  }
};

// Of the commands that take networks, long names only.
inline std::map<std::string, std::map<std::string, ArgumentDescription>> DeclaredOptions() {
  const Names wanted = {"tune", "graph-tune", "optimize", "explain", "bench", "run", "quantize"};
  std::map<std::string, std::map<std::string, ArgumentDescription>> declared;
  for (const std::unique_ptr<Command>& command : MakeCommands()) {
    if (!wanted.contains(std::string(command->texts().name))) continue;
    Args args;
    command->Declare(args);
    for (const ArgumentDescription& argument : args.Describe()) {
      std::istringstream names(argument.names);
      for (std::string name; std::getline(names, name, ',');)
        if (name.starts_with("--")) declared[std::string(command->texts().name)][name] = argument;
    }
  }
  EXPECT_EQ(declared.size(), wanted.size());
  return declared;
}

}  // namespace tilesmith
