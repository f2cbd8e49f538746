#include "tools/peers/onnx_runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "graph_tuner/planner/network_run.h"
#include "layouts/base/error.h"
#include "layouts/base/shared_library.h"
#include "layouts/base/text_file.h"
#include "ops/base/onnx_type.h"
#include "ops/qdq/qdq_model.h"

namespace tilesmith {
namespace {

// What OrtGetApiBase returns. The functions of a version are a table that only ever grows at its end; these
// are positions in that of version 1. Source: onnxruntime_c_api.h of ONNX Runtime.
struct ApiBase {
  const void* const* (*get_api)(uint32_t version);
  const char* (*get_version)();
};
enum Entry {
  kGetErrorMessage = 2,
  kCreateEnv = 3,
  kCreateSession = 7,
  kRun = 9,
  kCreateSessionOptions = 10,
  kSetGraphOptimizationLevel = 23,
  kSetIntraOpThreads = 24,
  kCreateTensorWithData = 49,
  kGetTensorData = 51,
  kGetElementType = 60,
  kGetDimensionsCount = 61,
  kGetDimensions = 62,
  kGetTypeAndShape = 65,
  kCreateCpuMemoryInfo = 69,
  kReleaseEnv = 92,
  kReleaseStatus = 93,
  kReleaseMemoryInfo = 94,
  kReleaseSession = 95,
  kReleaseValue = 96,
  kReleaseTypeAndShape = 99,
  kReleaseSessionOptions = 100,
};
constexpr int kLogErrors = 3, kNoOptimizations = 0, kAllOptimizations = 99, kDeviceAllocator = 0,
              kDefaultMemory = 0;

}  // namespace

class OnnxRuntimeLibrary {
 public:
  explicit OnnxRuntimeLibrary(const std::string& path) : path_(path) {
    // Its Linux builds since 1.29 report models and machine to their maker, with a database and threads of
    // their own, unless told not to before they start. Source: ONNX Runtime's pull request 27379.
    setenv("ORT_DISABLE_TELEMETRY", "1", 1);
    void* const handle = OpenLibrary(path.c_str());
    if (handle == nullptr) Fail(dlerror());
    const ApiBase* (*get_base)() = nullptr;
    if (!FindFunction(handle, "OrtGetApiBase", get_base)) Fail("it has no OrtGetApiBase");
    const ApiBase* const base = get_base();
    version_ = base->get_version();
    table_ = base->get_api(1);
    if (table_ == nullptr) Fail("it does not offer version 1 of its interface");
  }

  const std::string& version() const { return version_; }

  // The entry, as what its C declaration says it is.
  template <typename Result, typename... Arguments>
  auto Function(Entry entry) const {
    return reinterpret_cast<Result (*)(Arguments...)>(const_cast<void*>(table_[entry]));
  }

  // Calls an entry that returns a status. Every argument must have the type of the C declaration.
  template <typename... Arguments>
  void Call(Entry entry, Arguments... arguments) const {
    void* const status = Function<void*, Arguments...>(entry)(arguments...);
    if (status == nullptr) return;
    const std::string message = Function<const char*, void*>(kGetErrorMessage)(status);
    Release(kReleaseStatus, status);
    throw Error(ErrorCode::kBadModel, fmt::format("ONNX Runtime {}: {}", version_, message));
  }
  void Release(Entry entry, void* object) const { Function<void, void*>(entry)(object); }

 private:
  [[noreturn]] void Fail(const std::string& why) const {
    throw Error(ErrorCode::kEnvironment, fmt::format("{} cannot be used as ONNX Runtime: {}", path_, why));
  }

  std::string path_, version_;
  const void* const* table_ = nullptr;
};

std::optional<std::string> NamedOnnxRuntime(const std::string& given) {
  if (!given.empty()) return given == "none" ? "" : given;
  if (const char* variable = std::getenv("TILESMITH_ONNXRUNTIME"); variable != nullptr) return variable;
  return std::nullopt;
}

std::string FindOnnxRuntime(const std::string& given) {
  namespace fs = std::filesystem;
  if (const auto named = NamedOnnxRuntime(given)) return *named;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  for (const fs::path& folder : {fs::path("peers"), program.parent_path().parent_path() / "peers"}) {
    const fs::path library = fs::absolute(folder / "libonnxruntime.so", error);
    if (!error && fs::exists(library, error)) return library.string();
  }
  return "";
}

void RequireOnnxRuntime(const std::string& library) { const OnnxRuntimeLibrary usable(library); }

struct OnnxRuntimeModel::Impl {
  using Handle = std::unique_ptr<void, std::function<void(void*)>>;

  explicit Impl(const std::string& path) : library(path) {}

  template <typename... Arguments>
  Handle Create(Entry create, Entry release, Arguments... arguments) const {
    void* object = nullptr;
    library.Call(create, arguments..., &object);
    return Owned(object, release);
  }
  Handle Owned(void* object, Entry release) const {
    return Handle(object, [this, release](void* o) { library.Release(release, o); });
  }

  void AddTensor(Tensor& tensor, std::vector<void*>& values) {
    constexpr auto kCreate = kCreateTensorWithData;
    const void* const info = memory_info.get();
    const Shape& shape = tensor.shape();
    Handle value = Create(kCreate, kReleaseValue, info, static_cast<void*>(tensor.raw()),
                          static_cast<size_t>(tensor.bytes()), static_cast<const int64_t*>(shape.data()),
                          shape.size(), static_cast<int>(OnnxTypeNumber(tensor.type())));
    values.push_back(value.get());
    tensor_values.push_back(std::move(value));
  }

  // A tensor that it made itself, as ours.
  Tensor CopyOf(void* value, const std::string& name) const {
    const Handle info = Create(kGetTypeAndShape, kReleaseTypeAndShape, static_cast<const void*>(value));
    const void* const described = info.get();
    int number = 0;
    size_t rank = 0;
    library.Call(kGetElementType, described, &number);
    library.Call(kGetDimensionsCount, described, &rank);
    Shape shape(rank);
    library.Call(kGetDimensions, described, shape.data(), rank);
    const std::optional<DataType> type = TypeOfOnnx(number);
    if (!type || OnnxTypeNumber(*type) != number) {
      throw Error(ErrorCode::kBadModel,
                  fmt::format("output {} of ONNX Runtime: type {} is not supported", name, number));
    }
    void* data = nullptr;
    library.Call(kGetTensorData, value, &data);
    Tensor tensor(shape, Layout::Nchw(*type));
    std::copy_n(static_cast<const std::byte*>(data), tensor.bytes(), tensor.raw());
    return tensor;
  }

  OnnxRuntimeLibrary library;
  Handle env, options, memory_info, session;
  std::vector<NamedTensor> inputs;
  std::vector<OutputInfo> output_infos;
  std::vector<Tensor> outputs;  // of those whose sizes are known; empty ones of the others
  std::vector<Handle> made;     // the others, of the last run
  std::vector<Handle> tensor_values;
  std::vector<void*> input_values, output_values;
  std::vector<const char*> input_names, output_names;
};

OnnxRuntimeModel::OnnxRuntimeModel(const std::string& library, const std::string& model_path, int threads,
                                   std::vector<NamedTensor> inputs, std::vector<OutputInfo> outputs,
                                   GraphOptimizations optimizations)
    : impl_(std::make_unique<Impl>(library)) {
  Impl& impl = *impl_;
  impl.env = impl.Create(kCreateEnv, kReleaseEnv, kLogErrors, static_cast<const char*>("tilesmith"));
  impl.options = impl.Create(kCreateSessionOptions, kReleaseSessionOptions);
  impl.library.Call(kSetIntraOpThreads, impl.options.get(), threads);
  impl.library.Call(kSetGraphOptimizationLevel, impl.options.get(),
                    optimizations == GraphOptimizations::kAll ? kAllOptimizations : kNoOptimizations);
  impl.memory_info = impl.Create(kCreateCpuMemoryInfo, kReleaseMemoryInfo, kDeviceAllocator, kDefaultMemory);
  impl.session = impl.Create(kCreateSession, kReleaseSession, static_cast<const void*>(impl.env.get()),
                             model_path.c_str(), static_cast<const void*>(impl.options.get()));
  impl.inputs = std::move(inputs);
  impl.output_infos = std::move(outputs);
  impl.outputs.reserve(impl.output_infos.size());
  for (auto& [name, tensor] : impl.inputs) {
    impl.input_names.push_back(name.c_str());
    impl.AddTensor(tensor, impl.input_values);
  }
  for (const OutputInfo& output : impl.output_infos) {
    impl.output_names.push_back(output.name.c_str());
    impl.outputs.push_back(output.shape ? Tensor(*output.shape, Layout::Nchw(output.type)) : Tensor());
    if (output.shape) {
      impl.AddTensor(impl.outputs.back(), impl.output_values);
    } else {
      impl.output_values.push_back(nullptr);
    }
  }
}

OnnxRuntimeModel::~OnnxRuntimeModel() = default;

void OnnxRuntimeModel::Run() {
  Impl& impl = *impl_;
  impl.made.clear();
  for (size_t i = 0; i < impl.output_infos.size(); ++i) {
    if (!impl.output_infos[i].shape) impl.output_values[i] = nullptr;
  }
  const void* const run_options = nullptr;
  impl.library.Call(kRun, impl.session.get(), run_options,
                    static_cast<const char* const*>(impl.input_names.data()),
                    static_cast<const void* const*>(impl.input_values.data()), impl.input_values.size(),
                    static_cast<const char* const*>(impl.output_names.data()), impl.output_names.size(),
                    static_cast<void**>(impl.output_values.data()));
  for (size_t i = 0; i < impl.output_infos.size(); ++i) {
    if (!impl.output_infos[i].shape) impl.made.push_back(impl.Owned(impl.output_values[i], kReleaseValue));
  }
}

std::vector<NamedTensor> OnnxRuntimeModel::Outputs() const {
  std::vector<NamedTensor> result;
  result.reserve(impl_->outputs.size());
  for (size_t i = 0; i < impl_->outputs.size(); ++i) {
    const OutputInfo& info = impl_->output_infos[i];
    result.emplace_back(info.name,
                        info.shape ? impl_->outputs[i] : impl_->CopyOf(impl_->output_values[i], info.name));
  }
  return result;
}
const std::string& OnnxRuntimeModel::version() const { return impl_->library.version(); }

std::string OnnxFileOf(const ModelOptions& model, const std::string& path) {
  if (!model.quantization && FileExists(model.model)) return model.model;
  WriteModel(path, model.quantization ? QuantizedFile(model) : BuiltInAsOnnx(model), {});
  return path;
}

std::string TwinInFloats(const std::string& onnx_path, const std::string& path) {
  const ModelPartsPtr parts = FilesBeside(onnx_path);
  const std::string bytes = ReadModelFile(onnx_path);
  const std::optional<ModelBytes> widened = WidenedModel({bytes, parts.get()}, onnx_path);
  if (!widened) return onnx_path;
  WriteModel(path, *widened, {});
  return path;
}

std::unique_ptr<OnnxRuntimeModel> OpenOnnxRuntime(const std::string& library, const std::string& onnx_path,
                                                  int threads, Graph graph, uint64_t seed,
                                                  GraphOptimizations optimizations) {
  std::vector<NamedTensor> inputs;
  std::vector<OutputInfo> outputs;
  std::vector<Tensor> tensors = SeededInputs(graph, seed);
  inputs.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i)
    inputs.emplace_back(graph.node(graph.GraphInputs()[i]).name, std::move(tensors[i]));
  if (graph.tail()) {
    for (const std::string& name : graph.tail()->outputs()) outputs.push_back({name, std::nullopt});
  } else {
    for (const Graph::NodeId id : graph.outputs())
      outputs.push_back({graph.node(id).name, graph.node(id).shape, graph.node(id).type});
  }
  graph = Graph();
  return std::make_unique<OnnxRuntimeModel>(library, onnx_path, threads, std::move(inputs),
                                            std::move(outputs), optimizations);
}

}  // namespace tilesmith
