#include "tools/network/input_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <filesystem>

#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "tools/network/network_run.h"

namespace tilesmith {
namespace {

void Assign(const Graph& graph, std::vector<Tensor>& inputs, InputFile file) {
  const std::vector<Graph::NodeId> ids = graph.GraphInputs();
  std::vector<std::string> names;
  for (size_t i = 0; i < ids.size(); ++i) {
    const Node& node = graph.node(ids[i]);
    names.push_back(node.name);
    if (node.name != file.name && !(file.name.empty() && ids.size() == 1)) continue;
    if (file.tensor.shape() != node.shape || file.tensor.type() != node.type) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("--input {}: input {} is {} of {}, the file holds {} of {}", file.argument,
                              node.name, ShapeToString(node.shape), DataTypeName(node.type),
                              ShapeToString(file.tensor.shape()), DataTypeName(file.tensor.type())));
    }
    inputs[i] = std::move(file.tensor);
    return;
  }
  throw Error(ErrorCode::kUsage, fmt::format("--input {}: no input named \"{}\" (the network's: {})",
                                             file.argument, file.name, fmt::join(names, ", ")));
}

}  // namespace

std::vector<InputFile> ReadInputs(const std::vector<std::string>& arguments) {
  std::vector<InputFile> files;
  for (const std::string& argument : arguments) {
    if (argument.ends_with(".npz")) {
      for (auto& [name, tensor] : ReadNpz(argument)) files.push_back({argument, name, std::move(tensor)});
    } else if (argument.ends_with(".npy")) {
      const size_t equals = argument.find('=');
      const bool has_name = equals != std::string::npos;
      files.push_back({argument, has_name ? argument.substr(0, equals) : "",
                       ReadNpy(has_name ? argument.substr(equals + 1) : argument)});
    } else {
      throw Error(ErrorCode::kUsage,
                  fmt::format("--input must be NAME=FILE.npy or FILE.npz, got {}", argument));
    }
  }
  return files;
}

std::vector<Tensor> InputsOf(const Graph& graph, std::vector<InputFile> files, uint64_t seed) {
  std::vector<Tensor> inputs = RandomInputs(graph, seed);
  for (InputFile& file : files) Assign(graph, inputs, std::move(file));
  return inputs;
}

void RequireSavable(const std::string& path) {
  if (path.ends_with(".npz")) return RequireWritable(path);
  const std::filesystem::path as_path = path;
  if (as_path.has_extension() && !std::filesystem::is_directory(as_path)) {
    throw Error(
        ErrorCode::kUsage,
        fmt::format("--output must be FILE.npz or a directory, got {} (with / at its end it is a directory)",
                    path));
  }
  RequireWritableDirectory(path);
}

void SaveOutputs(const std::string& path, const std::vector<NamedTensor>& outputs) {
  if (path.ends_with(".npz")) {
    WriteNpz(path, outputs);
    return;
  }
  RequireWritableDirectory(path);
  for (const auto& [name, tensor] : outputs) {
    std::string file = name;
    for (char& c : file) {
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-' && c != '_') c = '_';
    }
    WriteNpy(fmt::format("{}/{}.npy", path, file), tensor);
  }
}

}  // namespace tilesmith
