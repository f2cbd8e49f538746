#include "tools/ort/plugin/context.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <filesystem>

#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "tools/api/model_impl.h"
#include "tools/ort/plugin/host_graph.h"

namespace tilesmith {
namespace {

std::filesystem::path ModelPath(const OrtApi& api, const OrtGraph* graph) {
  const ORTCHAR_T* path = nullptr;
  CheckOrt(api, api.Graph_GetModelPath(graph, &path));
  return path == nullptr ? "" : path;
}

// Where region number `index` of the model that is written is to be.
std::filesystem::path FileFor(const std::filesystem::path& read, size_t index,
                              const ContextOptions& options) {
  std::filesystem::path written = options.path;
  if (written.empty() && !read.empty()) written = read.parent_path() / (read.stem().string() + "_ctx.onnx");
  if (written.empty()) {
    throw Error(ErrorCode::kUsage,
                "a compiled region is a file beside the model: ep.context_file_path says "
                "where that will be; or ep.context_embed_mode is 1");
  }
  return written.replace_extension(fmt::format(".{}.tsc", index));
}

class OpAttributes {
 public:
  explicit OpAttributes(const OrtApi& api) : api_(api) {}
  OpAttributes(const OpAttributes&) = delete;
  OpAttributes& operator=(const OpAttributes&) = delete;
  ~OpAttributes() {
    for (OrtOpAttr* attribute : all_) api_.ReleaseOpAttr(attribute);
  }
  void Add(const char* name, const std::string& text) {
    if (text.size() > INT_MAX / 8 * 7)
      throw Error(ErrorCode::kUsage,
                  "a compiled region of 1.75 GiB or more cannot be embedded in an ONNX "
                  "file: ep.context_embed_mode is to be 0");
    Add(name, text.data(), static_cast<int>(text.size()), ORT_OP_ATTR_STRING);
  }
  void Add(const char* name, int64_t number) { Add(name, &number, 1, ORT_OP_ATTR_INT); }
  std::vector<OrtOpAttr*>& all() { return all_; }

 private:
  void Add(const char* name, const void* data, int size, OrtOpAttrType type) {
    OrtOpAttr* attribute = nullptr;
    CheckOrt(api_, api_.CreateOpAttr(name, data, size, type, &attribute));
    all_.push_back(attribute);
  }

  const OrtApi& api_;
  std::vector<OrtOpAttr*> all_;
};

// Bytes as a file that has no name in any folder and lives as long as it is open or mapped.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& bytes) : file_(memfd_create("tilesmith", MFD_CLOEXEC)) {
    for (size_t done = 0; file_ >= 0 && done < bytes.size();) {
      const ssize_t written = write(file_, bytes.data() + done, bytes.size() - done);
      if (written <= 0) throw Error(ErrorCode::kEnvironment, "no memory for a compiled region");
      done += static_cast<size_t>(written);
    }
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { close(file_); }
  std::string path() const { return fmt::format("/proc/self/fd/{}", file_); }

 private:
  const int file_;
};

// Names a file beside the model, nothing else.
void CheckFileName(const std::filesystem::path& name) {
  const bool leaves = std::ranges::find(name, std::filesystem::path("..")) != name.end();
  if (name.empty() || name.is_absolute() || leaves)
    throw Error(ErrorCode::kBadModel,
                fmt::format("its ep_cache_context \"{}\" names no file beside the model", name.string()));
}

Model LoadBeside(const std::filesystem::path& name, const std::filesystem::path& folder,
                 const LoadOptions& load) {
  CheckFileName(name);
  return ModelFromFile::Load((folder / name).string(), load);
}

void CheckFloats(const std::vector<HostValue>& values, const std::vector<TensorInfo>& tensors) {
  const bool alike =
      std::ranges::equal(values, tensors, [](const HostValue& value, const TensorInfo& tensor) {
        return value.type.element_type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT && tensor.type == "f32";
      });
  if (!alike)
    throw Error(ErrorCode::kBadModel, "its inputs or outputs are not those of the compiled network");
}

}  // namespace

ContextOptions ParseContextOptions(const std::map<std::string, std::string>& entries) {
  const auto text = [&](const std::string& name) {
    const auto found = entries.find(name);
    return found == entries.end() ? "" : found->second;
  };
  return {text("enable") == "1", text("embed_mode") == "1", text("file_path")};
}

OrtNodePtr MakeContextNode(const OrtApi& api, const OrtGraph* graph, const OrtNode* fused, size_t index,
                           const CompiledModel& model, const ContextOptions& options) {
  std::string content;
  if (options.embedded) {
    WriteCompiled({&model, 1}, [&](std::span<const std::byte> bytes) {
      content.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    });
  } else {
    const std::filesystem::path path = FileFor(ModelPath(api, graph), index, options);
    NewFile file(path.string());
    WriteCompiled({&model, 1}, [&](std::span<const std::byte> bytes) {
      file.Write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    });
    file.Finish();
    content = path.filename().string();
  }
  const char* name = nullptr;
  CheckOrt(api, api.Node_GetName(fused, &name));
  OpAttributes attributes(api);
  attributes.Add("ep_cache_context", content);
  attributes.Add("embed_mode", options.embedded ? 1 : 0);
  attributes.Add("main_context", 1);
  attributes.Add("source", kProviderName);
  attributes.Add("partition_name", name);
  attributes.Add("ep_sdk_version", model.origin.version);
  const std::vector<HostValue> inputs = InputsOf(api, fused), outputs = OutputsOf(api, fused);
  std::vector<const char*> input_names, output_names;
  for (const HostValue& input : inputs)
    if (input.constant == nullptr) input_names.push_back(input.name.c_str());
  for (const HostValue& output : outputs) output_names.push_back(output.name.c_str());
  const OrtModelEditorApi* const editor = api.GetModelEditorApi();
  if (editor == nullptr)
    throw Error(ErrorCode::kEnvironment, "this ONNX Runtime, a minimal build, cannot write compiled models");
  OrtNode* node = nullptr;
  CheckOrt(api, editor->CreateNode(kContextOp, kContextDomain, name, input_names.data(), input_names.size(),
                                   output_names.data(), output_names.size(), attributes.all().data(),
                                   attributes.all().size(), &node));
  return {node, api.ReleaseNode};
}

Model LoadContextNode(const OrtApi& api, const OrtGraph* graph, const OrtNode* node,
                      const ContextOptions& options, const LoadOptions& load) {
  const char* name = nullptr;
  CheckOrt(api, api.Node_GetName(node, &name));
  std::optional<MemoryFile> memory;
  try {
    const std::string content = TextAttribute(api, node, "ep_cache_context");
    const std::filesystem::path read = ModelPath(api, graph);
    const bool embedded = NumberAttribute(api, node, "embed_mode", 1) == 1;
    if (embedded) memory.emplace(content);
    Model model =
        embedded
            ? ModelFromFile::Load(memory->path(), load)
            : LoadBeside(content, (read.empty() ? std::filesystem::path(options.path) : read).parent_path(),
                         load);
    CheckFloats(InputsOf(api, node), model.inputs());
    CheckFloats(OutputsOf(api, node), model.outputs());
    return model;
  } catch (const Error& error) {
    std::string what = error.what();
    if (memory && what.starts_with(memory->path()))
      what.replace(0, memory->path().size(), "its ep_cache_context");
    throw Error(error.code(), fmt::format("{} \"{}\": {}", kContextOp, name, what));
  }
}

}  // namespace tilesmith
