#include "tools/quantize/calibration_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "graph_tuner/planner/network_run.h"
#include "layouts/base/error.h"
#include "layouts/base/settings.h"
#include "tools/cli/npz.h"

namespace tilesmith {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kRandomSamples = 8;

bool IsArrayFile(const std::string& path) { return path.ends_with(".npz") || path.ends_with(".npy"); }

void AddFiles(const std::string& path, std::vector<std::string>& files) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    if (!fs::exists(path, error) && !fs::path(path).has_extension())
      throw Error(ErrorCode::kEnvironment, fmt::format("cannot read {}: No such file or directory", path));
    if (!IsArrayFile(path)) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("{} must be FILE.npz, FILE.npy or a directory of those, got {}",
                              settings::kCalibrate, path));
    }
    files.push_back(path);
    return;
  }
  std::vector<std::string> inside;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    if (IsArrayFile(entry->path().string())) inside.push_back(entry->path().string());
  }
  if (error) throw Error(ErrorCode::kEnvironment, fmt::format("{}: {}", path, error.message()));
  if (inside.empty())
    throw Error(ErrorCode::kUsage,
                fmt::format("{} {}: no .npz or .npy file in it", settings::kCalibrate, path));
  std::ranges::sort(inside);
  files.insert(files.end(), inside.begin(), inside.end());
}

std::vector<NamedTensor> ReadArrays(const std::string& file) {
  if (file.ends_with(".npz")) return ReadNpz(file);
  std::vector<NamedTensor> arrays;
  arrays.emplace_back("", ReadNpy(file));
  return arrays;
}

// One input's samples, one behind the other.
struct InputSamples {
  Tensor array;
  Shape shape;  // of a sample
  int64_t count = 0;

  Tensor Sample(int64_t index) const {
    Tensor sample(shape, array.layout());
    const int64_t which = count == 1 ? 0 : index;
    std::memcpy(sample.raw(), array.raw() + which * sample.bytes(), static_cast<size_t>(sample.bytes()));
    return sample;
  }
};

InputSamples SamplesOf(const Node& input, const std::string& file, Tensor array) {
  const auto refuse = [&] {
    return Error(ErrorCode::kUsage,
                 fmt::format("{} {}: input {} is {} of {}, the file holds {} of {}", settings::kCalibrate,
                             file, input.name, ShapeToString(input.shape), DataTypeName(input.type),
                             ShapeToString(array.shape()), DataTypeName(array.type())));
  };
  Shape shape = array.shape();
  if (array.type() != input.type || shape.size() != input.shape.size() || array.size() == 0) throw refuse();
  if (shape.empty()) return {std::move(array), shape, 1};
  const int64_t count = shape[0] / input.shape[0];
  if (shape[0] % input.shape[0] != 0) throw refuse();
  shape[0] = input.shape[0];
  return {std::move(array), std::move(shape), count};
}

void RequireNumbers(const Node& input, const std::string& file, const Tensor& array) {
  if (array.type() != DataType::kF32) return;
  const float* const values = array.floats();
  if (std::any_of(values, values + array.size(), [](float value) { return std::isfinite(value); })) return;
  throw Error(ErrorCode::kUsage, fmt::format("{} {}: none of the values of input {} is finite",
                                             settings::kCalibrate, file, input.name));
}

// A file's arrays in the order of the graph's inputs, with as many samples each, or one for all.
std::vector<InputSamples> ArrangedSamples(const Graph& graph, const std::string& file) {
  std::vector<NamedTensor> arrays = ReadArrays(file);
  const std::vector<Graph::NodeId> ids = graph.GraphInputs();
  std::vector<std::string> names;
  names.reserve(ids.size());
  for (const Graph::NodeId id : ids) names.push_back(graph.node(id).name);
  std::vector<InputSamples> samples;
  for (const Graph::NodeId id : ids) {
    const Node& input = graph.node(id);
    const bool nameless = ids.size() == 1 && file.ends_with(".npy");
    const auto found = nameless ? arrays.begin() : std::ranges::find(arrays, input.name, &NamedTensor::first);
    if (found == arrays.end()) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("{} {}: nothing for the input \"{}\" (the network's: {})", settings::kCalibrate,
                              file, input.name, fmt::join(names, ", ")));
    }
    RequireNumbers(input, file, found->second);
    samples.push_back(SamplesOf(input, file, std::move(found->second)));
    arrays.erase(found);
  }
  if (!arrays.empty()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} {}: no input named \"{}\" (the network's: {})", settings::kCalibrate, file,
                            arrays.front().first, fmt::join(names, ", ")));
  }
  return samples;
}

int64_t CountOf(const std::vector<InputSamples>& inputs, const std::string& file) {
  int64_t count = 1;
  for (const InputSamples& input : inputs) count = std::max(count, input.count);
  for (const InputSamples& input : inputs) {
    if (input.count == 1 || input.count == count) continue;
    throw Error(ErrorCode::kUsage, fmt::format("{} {}: {} samples of one input and {} of another",
                                               settings::kCalibrate, file, input.count, count));
  }
  return count;
}

}  // namespace

CalibrationInputs::CalibrationInputs(const CalibrationSource& source)
    : limit_(source.samples), seed_(source.seed) {
  for (const std::string& path : source.paths) AddFiles(path, files_);
  description_ = random() ? fmt::format("random inputs (seed {})", seed_)
                          : fmt::format("{}", fmt::join(source.paths, ", "));
}

std::map<std::string, Shape> CalibrationInputs::OpenShapes() const {
  std::map<std::string, Shape> shapes;
  if (random()) return shapes;
  std::vector<NamedTensor> arrays = ReadArrays(files_.front());
  for (const auto& [name, array] : arrays) {
    Shape shape = array.shape();
    if (shape.size() > 1) shape[0] = 1;
    shapes[arrays.size() == 1 ? "" : name] = std::move(shape);
  }
  return shapes;
}

void CalibrationInputs::ForEach(const Graph& graph,
                                const std::function<void(std::vector<Tensor>)>& visit) const {
  int64_t done = 0;
  if (random()) {
    const int64_t samples = limit_ > 0 ? limit_ : kRandomSamples;
    const auto step = static_cast<uint64_t>(graph.GraphInputs().size());
    for (; done < samples; ++done) visit(SeededInputs(graph, seed_ + static_cast<uint64_t>(done) * step));
    count_ = done;
    return;
  }
  int64_t seen_files = 0;
  for (const std::string& file : files_) {
    const std::vector<InputSamples> inputs = ArrangedSamples(graph, file);
    const int64_t in_file = CountOf(inputs, file);
    if (++seen_files > seen_files_) seen_samples_ += in_file, seen_files_ = seen_files;
    for (int64_t i = 0; i < in_file; ++i, ++done) {
      if (limit_ > 0 && done == limit_) break;
      std::vector<Tensor> sample;
      sample.reserve(inputs.size());
      for (const InputSamples& input : inputs) sample.push_back(input.Sample(i));
      visit(std::move(sample));
    }
    if (limit_ > 0 && done == limit_) break;
  }
  count_ = done;
}

std::vector<std::vector<Tensor>> SamplesOf(const Graph& graph, const CalibrationSource& source,
                                           int64_t most) {
  CalibrationSource first = source;
  first.samples = source.samples > 0 ? std::min(source.samples, most) : most;
  if (source.paths.empty() && source.samples == 0) first.samples = std::min(most, kRandomSamples);
  const std::vector<Graph::NodeId> ids = graph.GraphInputs();
  std::vector<std::vector<Tensor>> samples;
  CalibrationInputs(first).ForEach(graph, [&](std::vector<Tensor> inputs) {
    const bool fits = std::ranges::equal(inputs, ids, [&](const Tensor& tensor, Graph::NodeId id) {
      return tensor.shape() == graph.node(id).shape;
    });
    if (fits) samples.push_back(std::move(inputs));
  });
  if (samples.empty()) samples.push_back(SeededInputs(graph, source.seed));
  return samples;
}

int64_t CalibrationInputs::ExpectedCount() const {
  if (count_) return *count_;
  if (random()) return limit_ > 0 ? limit_ : kRandomSamples;
  const int64_t each = seen_files_ == 0 ? 1 : std::max<int64_t>(seen_samples_ / seen_files_, 1);
  const int64_t expected = each * std::ssize(files_);
  return limit_ > 0 ? std::min(limit_, expected) : expected;
}

}  // namespace tilesmith
