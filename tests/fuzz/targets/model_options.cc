// The arguments that say which network and of what size: an argument a line, for one small model.
#include <sstream>

#include "tests/fuzz/targets/onnx_proto.h"
#include "tests/fuzz/targets/targets.h"
#include "tools/cli/model.h"

namespace tilesmith::fuzz {
namespace {

constexpr const char* kModel = R"(
  ir_version: 8
  opset_import { version: 13 }
  graph {
    input { name: "x" type { tensor_type { elem_type: 1 shape {
      dim { dim_param: "batch" } dim { dim_value: 3 } dim { dim_param: "height" } dim { dim_param: "width" } } } } }
    node { op_type: "MaxPool" input: "x" output: "y"
      attribute { name: "kernel_shape" type: INTS ints: 2 ints: 2 }
      attribute { name: "strides" type: INTS ints: 2 ints: 2 } }
    node { op_type: "Flatten" input: "y" output: "z" }
    output { name: "z" }
  })";

constexpr std::string_view kWords[] = {"--batch",
                                       "--max-elements",
                                       "--max-memory",
                                       "--input-shape",
                                       "x=",
                                       "batch=",
                                       "height=",
                                       "width=",
                                       "1x3x8x8",
                                       "x",
                                       "=",
                                       "--time",
                                       "1h30m",
                                       "500ms",
                                       "8m",
                                       "s",
                                       "--",
                                       "-",
                                       "--help"};

void Run(const std::string& input) {
  static const InputFile model(ModelBytes(kModel));
  ModelOptions options;
  double seconds = 0;
  Args args;
  DeclareInputOptions(args, &options);
  args.Duration("--time", &seconds, "A duration");
  std::vector<std::string> arguments;
  std::istringstream lines(input);
  for (std::string line; std::getline(lines, line);) arguments.push_back(line);
  args.Parse(arguments);
  Require(!(seconds < 0), "a duration is not negative");
  options.model = model.path();
  LoadModel(options);
}

}  // namespace

FuzzTarget ModelOptionsTarget() {
  return {.name = "model_options",
          .reads = "--batch, --input-shape and durations",
          .run = Run,
          .mutate = MutateText,
          .words = kWords,
          .short_runs = 2000};
}

}  // namespace tilesmith::fuzz
