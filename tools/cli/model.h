// MODEL arguments: a built-in network by name, or an ONNX file.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph_tuner/planner/network_source.h"
#include "ops/graph/graph.h"
#include "tools/cli/args.h"

namespace tilesmith {

struct CalibrationSource {
  // .npz files, whose entries are named after the model's inputs, .npy files for a model's only input, and
  // directories of such files, taken in the order of their names. An array may hold several samples, one
  // behind the other along its first axis. None: random inputs.
  std::vector<std::string> paths = {};
  int64_t samples = 0;  // at most; 0: all there are, or 8 random ones
  uint64_t seed = 1;    // of random ones
};

struct ModelOptions {
  std::string model;
  int64_t batch = 0;  // 0: the model's own, or 1 where it leaves it open
  // "input=1x3x224x224", or "height=224" for a named open size. One that is named several times, or gives a
  // range, "input=1x3x224x64..640:8", has several sizes (SizesOf).
  std::vector<std::string> input_shapes;
  int64_t max_elements = 0;                       // of one tensor; 0: SizeLimits' own
  int64_t max_memory = 0;                         // MiB of the network; 0: what this process may use
  std::map<std::string, Shape> shapes = {};       // of inputs, as input_shapes, which they win over
  std::map<std::string, Shape> open_shapes = {};  // for sizes that are left open otherwise
  CalibrationSource calibration = {};             // of what is to be quantised (in_place.h)
  std::shared_ptr<const ModelQuantization> quantization = {};  // with one LoadModel gives the model so
  // A model in memory, which outlives these: `model` is what messages call it then.
  std::optional<ModelInMemory> memory = {};
  // What ReadForSizes gave: LoadModel reads nothing then.
  std::shared_ptr<const OnnxFile> file = {};
};
// The names of the built-in networks.
std::string BuiltInText();
// Declares the positional MODEL and the options.
void DeclareModelOptions(Args& args, ModelOptions* options);
// The options alone, for commands whose positional may be something else too.
void DeclareInputOptions(Args& args, ModelOptions* options);

// Whether the text can only mean a model: a built-in name, an existing file, or something that ends in .onnx.
bool LooksLikeModel(const std::string& text);

// The options for each size of the inputs, in order: the i-th text of each name; a name that is there once
// has one size in all of them. "x=1x3x48x64..640:8" stands for as many texts as it has sizes, 64, 72, ...,
// 640, and two ranges in a text for all pairs; a range without a step has steps of 1. Throws Error(kUsage)
// when names have different numbers of sizes, for a range of fewer than two, and for more than 4096 sizes.
std::vector<ModelOptions> SizesOf(const ModelOptions& options);
// Of a range the first and the last alone, whose plans lend their schedules to the sizes between
// (PlanOfOtherSize); of two ranges in a text the least sizes of both, and the largest.
std::vector<ModelOptions> SizesToTune(const ModelOptions& options);

// Reads or generates the network, quantises it where the options say how, and optimizes it: what tasks, plans
// and the executor see. Throws
// Error(kUsage) for an unknown name or a senseless shape, Error(kBadModel) for a file that is no supported
// network, and for options of several sizes.
Graph LoadModel(const ModelOptions& options);
// The options' shapes of inputs by name. Throws Error(kUsage) for one that is none, or given twice.
std::map<std::string, Shape> ShapesByName(const ModelOptions& options);
// For LoadModel with other sizes of the inputs behind this, when files may have changed; null for a built-in
// network, which has none. Throws as LoadModel does.
std::shared_ptr<const OnnxFile> ReadForSizes(const ModelOptions& options);

// Inputs and outputs of a model that ReadForSizes gave, as far as the options give their sizes. Precondition:
// options.file.
ModelEnds EndsOf(const ModelOptions& options);
// As the options say.
SizeLimits LimitsOf(const ModelOptions& options);

// The model as a file says it; a built-in network as `export` writes it.
// Without quantising it.
// Throws as LoadModel does for what is no model.
ModelFile ReadModel(const ModelOptions& options);

// The model as QuantizedBytes writes it. Precondition: the options have a quantization.
ModelFile QuantizedFile(const ModelOptions& options);

// A built-in network as the bytes of an ONNX file. Throws Error(kUsage) for other models and a senseless
// shape.
ModelBytes BuiltInAsOnnx(const ModelOptions& options, const DataPlacement& placement = {});

// The files that the model is read from; none for a built-in network. Throws as LoadModel does for what is no
// model.
std::vector<std::string> FilesOf(const ModelOptions& options);

// Where the weights of a model that is written to `path` go if its own file is not to hold them: "FILE.data"
// beside it, as PyTorch names it.
DataPlacement PlacementBeside(const std::string& path, bool always);
// The path of that part.
std::string PartPath(const std::string& path);
// Writes a model placed so, its own file last. Throws Error(kEnvironment).
void WriteModel(const std::string& path, const ModelBytes& model, const DataPlacement& placement);

}  // namespace tilesmith
