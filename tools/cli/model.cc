#include "tools/cli/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <span>

#include "graph_tuner/compiled/compiled_file.h"
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
  if (IsCompiledFile(options.model)) {
    throw Error(
        ErrorCode::kUsage,
        fmt::format("{} is a compiled network, for run and bench: here the model is needed that it was "
                    "compiled from",
                    options.model));
  }
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
      "repeated, also for several sizes of an input, and 64..640:8 is a range of them, whose ends are tuned "
      "(tune, graph-tune, optimize, compile)",
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

namespace {

constexpr size_t kMostSizes = 4096;

// Of "64..640:8" 64, 72, ..., 640, or 64 and 640.
std::vector<int64_t> SizesOfRange(std::string_view range, bool only_ends, const std::string& text) {
  const auto reject = [&](const std::string& wrong) -> Error {
    return Error(ErrorCode::kUsage,
                 fmt::format("{} {}: {} {}; a range is FIRST..LAST or FIRST..LAST:STEP, such as 64..640:8",
                             settings::kInputShapes, text, range, wrong));
  };
  const auto number = [&](std::string_view digits) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < 1)
      throw reject("is no range of sizes from 1 on");
    return value;
  };
  const size_t dots = range.find(".."), colon = range.find(':', dots);
  const int64_t first = number(range.substr(0, dots));
  const int64_t last = number(range.substr(dots + 2, colon == range.npos ? colon : colon - dots - 2));
  const int64_t step = colon == range.npos ? 1 : number(range.substr(colon + 1));
  if (first > last || last - first < step) throw reject("has fewer than two sizes");
  const int64_t count = (last - first) / step + 1;
  if (only_ends) return {first, first + (count - 1) * step};
  if (count > static_cast<int64_t>(kMostSizes))
    throw reject(fmt::format("has {} sizes, at most {} are allowed", count, kMostSizes));
  std::vector<int64_t> all;
  all.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) all.push_back(first + i * step);
  return all;
}

// The texts that one with ranges stands for.
std::vector<std::string> TextsOf(const std::string& text, bool only_ends) {
  const size_t dots = text.find("..", std::min(text.rfind('='), text.size()));
  if (dots == text.npos) return {text};
  const size_t begin = text.find_last_of("=x", dots) + 1, end = std::min(text.find('x', dots), text.size());
  const std::string_view range = std::string_view(text).substr(begin, end - begin);
  std::vector<std::string> texts;
  std::vector<int64_t> sizes = SizesOfRange(range, only_ends, text);
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::vector<std::string> behind =
        TextsOf(fmt::format("{}{}{}", text.substr(0, begin), sizes[i], text.substr(end)), only_ends);
    if (only_ends) {
      texts.push_back(i == 0 ? behind.front() : behind.back());
    } else {
      texts.insert(texts.end(), behind.begin(), behind.end());
    }
    if (texts.size() > kMostSizes) {
      throw Error(ErrorCode::kUsage, fmt::format("{} {} stands for more than {} sizes",
                                                 settings::kInputShapes, text, kMostSizes));
    }
  }
  return texts;
}

std::vector<ModelOptions> SizesOf(const ModelOptions& options, bool only_ends) {
  std::map<std::string, std::vector<std::string>> texts;
  size_t count = 1;
  for (const std::string& given : options.input_shapes) {
    std::vector<std::string>& of_name = texts[given.substr(0, given.rfind('='))];
    for (std::string& text : TextsOf(given, only_ends)) of_name.push_back(std::move(text));
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

}  // namespace

std::vector<ModelOptions> SizesOf(const ModelOptions& options) { return SizesOf(options, false); }
std::vector<ModelOptions> SizesToTune(const ModelOptions& options) { return SizesOf(options, true); }

std::map<std::string, Shape> ShapesByName(const ModelOptions& options) {
  RequireOneSize(options);
  std::map<std::string, Shape> shapes;
  for (const std::string& text : options.input_shapes) {
    NamedSize named = ParseNamedSize(text);
    shapes.insert({std::move(named.name), std::move(named.sizes)});
  }
  return shapes;
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
  if (IsBuiltIn(options)) return nullptr;
  return std::make_shared<const OnnxFile>(ReadOnnx(SizesOf(options).front()));
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
