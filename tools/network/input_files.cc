#include "tools/network/input_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "graph_tuner/planner/network_run.h"
#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "tools/cli/output_file.h"
#include "tools/cli/streams.h"

namespace tilesmith {
namespace {

// The entry of an .npz that is given for an input: the one named so, or the only one.
Tensor EntryFor(const std::string& name, const std::string& argument, std::vector<NamedTensor> entries) {
  const auto named = std::ranges::find(entries, name, &NamedTensor::first);
  if (named != entries.end()) return std::move(named->second);
  if (entries.size() == 1) return std::move(entries.front().second);
  std::vector<std::string> names;
  names.reserve(entries.size());
  for (const auto& [entry, tensor] : entries) names.push_back(entry);
  throw Error(ErrorCode::kUsage, fmt::format("--input {}: the file has no entry \"{}\" (it has: {})",
                                             argument, name, fmt::join(names, ", ")));
}

void Assign(std::span<const UserTensor> wanted, std::vector<Tensor>& inputs, std::set<std::string>& given,
            InputFile file) {
  std::vector<std::string> names;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto& [name, shape, layout] = wanted[i];
    names.push_back(name);
    if (name != file.name && !(file.name.empty() && wanted.size() == 1)) continue;
    if (file.tensor.shape() != shape || file.tensor.type() != layout.type()) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("--input {}: input \"{}\" is {} of {}, the file holds {} of {}", file.argument,
                              name, ShapeToString(shape), DataTypeName(layout.type()),
                              ShapeToString(file.tensor.shape()), DataTypeName(file.tensor.type())));
    }
    if (!given.insert(name).second)
      throw Error(ErrorCode::kUsage,
                  fmt::format("--input {}: input \"{}\" is given twice", file.argument, name));
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
    const size_t equals = argument.find('=');
    const std::string name = equals == std::string::npos ? "" : argument.substr(0, equals);
    const std::string path = equals == std::string::npos ? argument : argument.substr(equals + 1);
    if (path.ends_with(".npz") && !name.empty()) {
      files.push_back({argument, name, EntryFor(name, argument, ReadNpz(path))});
    } else if (path.ends_with(".npz")) {
      for (auto& [entry, tensor] : ReadNpz(path)) files.push_back({argument, entry, std::move(tensor)});
    } else if (path.ends_with(".npy")) {
      files.push_back({argument, name, ReadNpy(path)});
    } else {
      throw Error(ErrorCode::kUsage,
                  fmt::format("--input must be FILE.npz, NAME=FILE.npy or NAME=FILE.npz, got {}", argument));
    }
  }
  return files;
}

std::vector<Tensor> InputsOf(std::span<const UserTensor> wanted, std::vector<InputFile> files,
                             uint64_t seed) {
  std::vector<Tensor> inputs = SeededInputs(wanted, seed);
  std::set<std::string> given;
  for (InputFile& file : files) Assign(wanted, inputs, given, std::move(file));
  return inputs;
}

std::vector<Tensor> InputsOf(const Graph& graph, std::vector<InputFile> files, uint64_t seed) {
  return InputsOf(UserTensors(graph, graph.GraphInputs()), std::move(files), seed);
}

void RequireSavable(const std::string& path, const std::vector<std::string>& inputs) {
  if (path.ends_with(".npz")) {
    std::vector<std::string> read;
    read.reserve(inputs.size());
    for (const std::string& argument : inputs) read.push_back(argument.substr(argument.find('=') + 1));
    return RequireReplaceable(path, OutputFormat::kNpz, read);
  }
  const std::filesystem::path as_path = path;
  std::error_code hidden;
  if (as_path.has_extension() && !std::filesystem::is_directory(as_path, hidden)) {
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

Plan OpenPlan(const std::string& path, const Graph& graph, const DevicePtr& machine, PlanLoading loading) {
  std::vector<std::string> notes;
  loading.notes = &notes;
  Plan plan = LoadPlan(path, graph, machine, loading);
  for (const std::string& line : notes) PrintNote(line + "\n");
  return plan;
}

}  // namespace tilesmith
