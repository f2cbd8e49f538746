// MODEL arguments: a built-in network by name, or an ONNX file.
#pragma once

#include <string>
#include <vector>

#include "ops/graph/graph.h"
#include "tools/cli/args.h"

namespace tilesmith {

struct ModelOptions {
  std::string model;
  int64_t batch = 0;                      // 0: the model's own, or 1 where it leaves it open
  std::vector<std::string> input_shapes;  // "input=1x3x224x224", or "height=224" for a named open size
  int64_t max_elements = 0;               // of one tensor; 0: SizeLimits' own
  int64_t max_memory = 0;                 // MiB of the network; 0: what this process may use
};
// Declares the positional MODEL and the options.
void DeclareModelOptions(Args& args, ModelOptions* options);
// The options alone, for commands whose positional may be something else too.
void DeclareInputOptions(Args& args, ModelOptions* options);

// Whether the text can only mean a model: a built-in name, an existing file, or something that ends in .onnx.
bool LooksLikeModel(const std::string& text);

// Reads or generates the network and optimizes it: what tasks, plans and the executor see. Throws
// Error(kUsage) for an unknown name or a senseless shape, Error(kBadModel) for a file that is no supported
// network.
Graph LoadModel(const ModelOptions& options);

// A built-in network as the bytes of an ONNX file. Throws Error(kUsage) for other models and a senseless
// shape.
std::string BuiltInAsOnnx(const ModelOptions& options);

}  // namespace tilesmith
