#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "graph_tuner/compiled/compiled_file.h"
#include "layouts/base/error.h"
#include "layouts/base/fork_gate.h"
#include "layouts/base/settings.h"
#include "tools/api/model_impl.h"

namespace tilesmith {
namespace {

InputShapes ShapesOf(const std::vector<UserTensor>& tensors) {
  InputShapes shapes;
  for (const UserTensor& tensor : tensors) shapes.push_back(tensor.shape);
  return shapes;
}

std::vector<TensorInfo> Describe(const std::vector<UserTensor>& tensors) {
  std::vector<TensorInfo> infos;
  infos.reserve(tensors.size());
  for (const UserTensor& tensor : tensors) {
    infos.push_back({tensor.name,
                     {tensor.shape.begin(), tensor.shape.end()},
                     tensor.layout.WithType(DataType::kF32).ToString(),
                     std::string(DataTypeName(tensor.layout.type())),
                     static_cast<size_t>(PaddedElementCount(tensor.shape, tensor.layout)),
                     static_cast<size_t>(PaddedBytes(tensor.shape, tensor.layout))});
  }
  return infos;
}

}  // namespace

PreparedSize SizeOf(std::shared_ptr<const CompiledNetwork> network, double predicted_seconds) {
  PreparedSize size;
  size.network = std::move(network);
  size.shapes = ShapesOf(size.network->inputs);
  size.inputs = Describe(size.network->inputs);
  if (const std::shared_ptr<const Tail>& tail = size.network->tail) {
    for (const std::string& name : tail->outputs()) size.outputs.emplace_back().name = name;
  } else {
    size.outputs = Describe(size.network->outputs);
  }
  size.predicted_seconds = predicted_seconds;
  return size;
}

Model ModelFromFile::Load(const std::string& path, const LoadOptions& options) {
  if (!options.plan.empty() || options.batch > 0 || !options.input_shapes.empty() ||
      options.precision != "f32") {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} is compiled: plan, batch, input_shapes and precision are what "
                            "it says itself",
                            path));
  }
  const auto file = std::make_shared<const CompiledFile>(path);
  const char* const cap = std::getenv("TILESMITH_MAX_ISA");
  const bool capped = cap != nullptr && *cap != '\0';
  const Target cpu = capped ? CapIsa(DetectCpu(), ParseIsa(cap)) : DetectCpu();
  const int threads = options.threads > 0 ? options.threads : cpu.cores;
  const auto prepare = [=, wait = ParseWaitPolicy(options.wait)](const InputShapes* shapes) {
    const size_t index = file->Choose(cpu, threads, shapes);
    return SizeOf(LoadCompiled(*file, index, wait), file->networks()[index].origin.predicted_seconds);
  };
  auto impl = std::make_shared<Model::Impl>();
  PreparedSize first = prepare(nullptr);
  impl->device = first.network->device;
  if (options.strict && impl->device->threads() != threads) {
    throw Error(ErrorCode::kUsage, fmt::format("{}: compiled for {} threads, asked to run with {}", path,
                                               impl->device->threads(), threads));
  }
  if (options.reproducible && !impl->device->target().reproducible)
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: compiled without {}, which is asked for", path, settings::kReproducible));
  // One that is not kept is loaded again in less than a millisecond.
  constexpr size_t kMostKept = 64;
  const size_t others =
      std::min(file->networks().size(), std::max(kMostKept, static_cast<size_t>(options.sizes))) - 1;
  impl->sizes = std::make_unique<PreparedSizes>(
      std::move(first), SizesLimit{others, others > 0 ? SIZE_MAX : 0},
      [prepare](const InputShapes& shapes, bool) { return prepare(&shapes); });
  return Model(std::move(impl));
}

}  // namespace tilesmith
