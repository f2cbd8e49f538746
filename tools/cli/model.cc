#include "tools/cli/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <span>

#include "layouts/base/close_names.h"
#include "layouts/base/error.h"
#include "layouts/base/settings.h"
#include "layouts/base/text_file.h"
#include "ops/networks/networks.h"
#include "ops/onnx/onnx_export.h"
#include "ops/onnx/onnx_import.h"
#include "ops/passes/passes.h"
#include "tools/cli/system_files.h"

namespace tilesmith {
namespace {

std::vector<std::string> BuiltInNames() {
  std::vector<std::string> names;
  for (const BuiltInNetwork& network : BuiltInNetworks()) names.emplace_back(network.name);
  return names;
}

// "known: resnet18, ...", behind the one that was meant, if one is close.
std::string KnownText(const std::string& given) {
  const std::string meant = MeantText(given, BuiltInNames());
  return fmt::format("{}known: {}", meant.empty() ? "" : meant + " ", fmt::join(BuiltInNames(), ", "));
}

// "name=1x3x224x224" or "name=224".
struct NamedSize {
  std::string name;
  Shape sizes;
};

NamedSize ParseNamedSize(const std::string& text) {
  const auto reject = [&]() -> Error {
    return Error(ErrorCode::kUsage, fmt::format("{} must be INPUT=1x3x224x224 or NAME=224, got {}",
                                                settings::kInputShapes, text));
  };
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) throw reject();
  NamedSize named{text.substr(0, equals), {}};
  const char* at = text.data() + equals + 1;
  const char* const end = text.data() + text.size();
  while (true) {
    int64_t size = 0;
    const auto [after, error] = std::from_chars(at, end, size);
    if (error != std::errc() || size < 0) throw reject();
    named.sizes.push_back(size);
    if (after == end) return named;
    if (*after != 'x') throw reject();
    at = after + 1;
  }
}

NetworkOptions BuiltInOptions(const ModelOptions& options) {
  NetworkOptions network;
  network.limits = LimitsOf(options);
  if (options.batch > 0) network.batch = options.batch;
  const auto fits = [](const std::string& name, const Shape& s) {
    return name == "input" && s.size() == 4 && s[1] == 3 && std::ranges::find(s, 0) == s.end();
  };
  for (const auto& [name, shape] : options.shapes) {
    if (!fits(name, shape)) {
      throw Error(ErrorCode::kUsage, fmt::format("the input of {} is input=Nx3xHxW, got {}={}", options.model,
                                                 name, ShapeToString(shape)));
    }
    network.batch = shape[0], network.height = shape[2], network.width = shape[3];
    return network;
  }
  for (const std::string& text : options.input_shapes) {
    const NamedSize named = ParseNamedSize(text);
    const Shape& sizes = named.sizes;
    if (!fits(named.name, sizes) || (options.batch != 0 && sizes[0] != options.batch)) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("the input of {} is input=Nx3xHxW (N as the batch, if given), got {} {}",
                              options.model, settings::kInputShapes, text));
    }
    network.batch = sizes[0];
    network.height = sizes[2];
    network.width = sizes[3];
  }
  return network;
}

ImportOptions ImportOptionsOf(const ModelOptions& options) {
  ImportOptions import;
  import.limits = LimitsOf(options);
  if (options.batch > 0) import.batch = options.batch;
  for (const std::string& text : options.input_shapes) {
    const NamedSize named = ParseNamedSize(text);
    if (named.sizes.size() == 1) {
      import.dims[named.name] = named.sizes[0];
    } else {
      import.input_shapes[named.name] = named.sizes;
    }
  }
  for (const auto& [name, shape] : options.shapes) import.input_shapes[name] = shape;
  import.open_shapes = options.open_shapes;
  return import;
}

void RequireOneSize(const ModelOptions& options) {
  if (const size_t sizes = SizesOf(options).size(); sizes > 1) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} gives {} sizes, where one is needed", settings::kInputShapes, sizes));
  }
}

bool IsBuiltIn(const ModelOptions& options) { return !options.memory && IsBuiltInNetwork(options.model); }

void RequireModelName(const ModelOptions& options) {
  if (LooksLikeModel(options.model)) return;
  throw Error(ErrorCode::kUsage, fmt::format("{} is neither an ONNX file nor a built-in network ({})",
                                             options.model, KnownText(options.model)));
}

// Quantised where the options say how.
OnnxFile ReadOnnx(const ModelOptions& options) {
  const SizeLimits limits = LimitsOf(options);
  if (options.quantization) return OnnxFile::Parse(QuantizedFile(options), options.model, limits);
  if (options.memory) return OnnxFile::Parse(*options.memory, options.model, limits);
  RequireModelName(options);
  return OnnxFile::Read(options.model, limits);
}

}  // namespace

SizeLimits LimitsOf(const ModelOptions& options) {
  constexpr int64_t kMebibyte = 1 << 20;
  SizeLimits limits;
  if (options.max_elements > kMaxTensorElements) {
    throw Error(ErrorCode::kUsage, fmt::format("{} must be at most {}, got {}", settings::kMaxElements,
                                               kMaxTensorElements, options.max_elements));
  }
  if (options.max_elements > 0) limits.tensor_elements = options.max_elements;
  limits.network_bytes =
      options.max_memory == 0 ? MemoryBytes() : (Checked(options.max_memory) * kMebibyte).value();
  return limits;
}

std::string BuiltInText() { return fmt::format("{}", fmt::join(BuiltInNames(), ", ")); }

void DeclareModelOptions(Args& args, ModelOptions* options) {
  args.Positional("MODEL", &options->model, fmt::format("An ONNX file, or one of {}", BuiltInText()));
  DeclareInputOptions(args, options);
}

void DeclareInputOptions(Args& args, ModelOptions* options) {
  const std::string heading = args.Group("Model");
  args.Positive("--batch", &options->batch, "First size of every input");
  args.Texts(
      "--input-shape", &options->input_shapes,
      "INPUT=1x3x224x224, or NAME=224 for an open size that has a name or an input's only size; may be "
      "repeated, also for several sizes of an input (tune, graph-tune, optimize)",
      "NAME=SIZE");
  args.Positive(
      "--max-elements", &options->max_elements,
      fmt::format("Refuse a network with a larger tensor (default {})", SizeLimits().tensor_elements));
  args.Positive("--max-memory", &options->max_memory,
                "Refuse a network that needs more, in MiB (default: what this process may use)");
  args.Group(heading);
}

bool LooksLikeModel(const std::string& text) {
  return IsBuiltInNetwork(text) || text.ends_with(".onnx") || FileExists(text);
}

std::vector<ModelOptions> SizesOf(const ModelOptions& options) {
  std::map<std::string, std::vector<std::string>> texts;
  size_t count = 1;
  for (const std::string& text : options.input_shapes) {
    std::vector<std::string>& of_name = texts[text.substr(0, text.rfind('='))];
    of_name.push_back(text);
    count = std::max(count, of_name.size());
  }
  std::vector<ModelOptions> sizes(count, options);
  for (ModelOptions& size : sizes) size.input_shapes.clear();
  for (const auto& [name, of_name] : texts) {
    if (of_name.size() != 1 && of_name.size() != count) {
      throw Error(ErrorCode::kUsage, fmt::format("{} {} is given {} times, others {} times: once, "
                                                 "or once for each size, is allowed",
                                                 settings::kInputShapes, name, of_name.size(), count));
    }
    for (size_t i = 0; i < count; ++i) {
      sizes[i].input_shapes.push_back(of_name[of_name.size() == 1 ? 0 : i]);
    }
  }
  return sizes;
}

namespace {

// Sizes that do not go together are found where they are used: the message says that they were asked for.
template <typename Load>
auto WithShapesNamed(const ModelOptions& options, const Load& load) {
  try {
    return load();
  } catch (const Error& error) {
    if (options.input_shapes.empty() || error.code() != ErrorCode::kBadModel) throw;
    throw Error(error.code(),
                fmt::format("{} (with {} {})", error.what(), settings::kInputShapes,
                            fmt::join(options.input_shapes, fmt::format(" {} ", settings::kInputShapes))));
  }
}

}  // namespace

Graph LoadModel(const ModelOptions& options) {
  RequireOneSize(options);
  if (IsBuiltIn(options)) {
    if (!options.quantization) return OptimizeGraph(BuildNetwork(options.model, BuiltInOptions(options)));
    const ModelFile file = QuantizedFile(options);
    return OptimizeGraph(ImportOnnxBytes(file, file.source, file.import));
  }
  return WithShapesNamed(options, [&] {
    const ImportOptions import = ImportOptionsOf(options);
    return OptimizeGraph(options.file ? options.file->Import(import) : ReadOnnx(options).Import(import));
  });
}

std::shared_ptr<const OnnxFile> ReadForSizes(const ModelOptions& options) {
  return IsBuiltIn(options) ? nullptr : std::make_shared<const OnnxFile>(ReadOnnx(options));
}

ModelEnds EndsOf(const ModelOptions& options) { return options.file->Ends(ImportOptionsOf(options)); }

ModelFile ReadModel(const ModelOptions& options) {
  RequireOneSize(options);
  if (IsBuiltIn(options)) return {BuiltInAsOnnx(options), options.model, {.limits = LimitsOf(options)}};
  const ImportOptions import = ImportOptionsOf(options);
  if (options.memory)
    return {{std::string(options.memory->bytes), options.memory->parts}, options.model, import};
  RequireModelName(options);
  return {{ReadModelFile(options.model), FilesBeside(options.model)}, options.model, import};
}

ModelFile QuantizedFile(const ModelOptions& options) {
  const ModelFile file = ReadModel(options);
  return {QuantizedBytes(file, file.source, *options.quantization), file.source, file.import};
}

namespace {

// Beside the model.
std::string PartIn(const std::string& path, const std::string& location) {
  return std::filesystem::path(path).replace_filename(location);
}

}  // namespace

std::vector<std::string> FilesOf(const ModelOptions& options) {
  if (options.memory || IsBuiltIn(options)) return {};
  RequireModelName(options);
  std::vector<std::string> files = {options.model};
  for (const std::string& part : SummarizeOnnxFile(options.model).parts)
    files.push_back(PartIn(options.model, part));
  return files;
}

std::string PartPath(const std::string& path) { return PartIn(path, PlacementBeside(path, true).location); }

DataPlacement PlacementBeside(const std::string& path, bool always) {
  return {.location = std::filesystem::path(path).filename().string() + ".data", .always = always};
}

void WriteModel(const std::string& path, const ModelBytes& model, const DataPlacement& placement) {
  if (model.parts) {
    NewFile file(PartIn(path, placement.location));
    std::string piece;
    const int64_t bytes = model.parts->Size(placement.location);
    for (int64_t at = 0; at < bytes; at += std::ssize(piece)) {
      piece.resize(static_cast<size_t>(std::min<int64_t>(bytes - at, 1 << 24)));
      model.parts->Read(placement.location, at, std::as_writable_bytes(std::span(piece)));
      file.Write(piece);
    }
    file.Finish();
  }
  WriteTextFile(path, model.bytes);
}

ModelBytes BuiltInAsOnnx(const ModelOptions& options, const DataPlacement& placement) {
  if (!IsBuiltInNetwork(options.model)) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} is no built-in network ({})", options.model, KnownText(options.model)));
  }
  return OnnxBytes(ListNetwork(options.model, BuiltInOptions(options)), placement);
}

}  // namespace tilesmith
