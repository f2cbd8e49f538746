// ONNX Runtime, from its shared library, through the few entry points of its C interface that a benchmark
// needs. No header of its own is used. Its telemetry is off: nothing of models or machine leaves the process.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ops/graph/graph.h"
#include "tools/cli/model.h"
#include "tools/cli/npz.h"

namespace tilesmith {

// Its library as the user names it: `given` if that is not empty, "none" being none, else
// $TILESMITH_ONNXRUNTIME. "" for none; nothing where neither names any.
std::optional<std::string> NamedOnnxRuntime(const std::string& given);
// Where its library is: as it is named, else where tools/fetch-peers puts it (peers/ in the working
// directory, or beside the build folder). "" when there is none.
std::string FindOnnxRuntime(const std::string& given);
// Throws Error(kEnvironment) where the library cannot be used, as OnnxRuntimeModel would.
void RequireOnnxRuntime(const std::string& library);

struct OutputInfo {
  std::string name;
  std::optional<Shape> shape;      // nothing: it depends on values
  DataType type = DataType::kF32;  // where the shape is given
};

enum class GraphOptimizations { kAll, kNone };

// A model that is loaded, and memory for its tensors. Not thread-safe.
class OnnxRuntimeModel {
 public:
  // `inputs` by their names in the model, float32, plain. Throws Error(kEnvironment) naming the library when
  // it cannot be used, Error(kBadModel) with ONNX Runtime's reason when it refuses the model.
  OnnxRuntimeModel(const std::string& library, const std::string& model_path, int threads,
                   std::vector<NamedTensor> inputs, std::vector<OutputInfo> outputs,
                   GraphOptimizations optimizations = GraphOptimizations::kAll);
  ~OnnxRuntimeModel();
  OnnxRuntimeModel(const OnnxRuntimeModel&) = delete;
  OnnxRuntimeModel& operator=(const OnnxRuntimeModel&) = delete;

  void Run();
  // What the last run gave. Throws Error(kBadModel) naming one whose type is not supported.
  std::vector<NamedTensor> Outputs() const;
  const std::string& version() const;  // "1.30.0"

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A model as a file for it: itself, or a built-in network, which is written to `path`.
std::string OnnxFileOf(const ModelOptions& model, const std::string& path);

// What outputs are held to: of a model of 16-bit floats, to which ONNX Runtime rounds every tensor, its twin
// of f32, which is written to `path`; of others `onnx_path`.
std::string TwinInFloats(const std::string& onnx_path, const std::string& path);

// The file's model with seeded data (SeededInputs) for the inputs of `graph`, which is the same network. A
// graph that is moved here is gone before the model is loaded: what it weighs is not ONNX Runtime's.
std::unique_ptr<OnnxRuntimeModel> OpenOnnxRuntime(
    const std::string& library, const std::string& onnx_path, int threads, Graph graph, uint64_t seed,
    GraphOptimizations optimizations = GraphOptimizations::kAll);

}  // namespace tilesmith
