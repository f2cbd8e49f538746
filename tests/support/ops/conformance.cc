#include "tests/support/ops/conformance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>

#include "layouts/base/error.h"
#include "ops/base/op_registry.h"
#include "ops/onnx/onnx_import.h"

namespace tilesmith {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = "/usr/share/libonnx-testdata/data";
constexpr double kRelative = 1e-3, kAbsolute = 1e-7;

const std::set<std::string> kOperators = {"Abs",
                                          "Add",
                                          "AveragePool",
                                          "BatchNormalization",
                                          "Ceil",
                                          "Clip",
                                          "Concat",
                                          "Constant",
                                          "Conv",
                                          "ConvTranspose",
                                          "DepthToSpace",
                                          "Div",
                                          "Dropout",
                                          "Erf",
                                          "Exp",
                                          "Flatten",
                                          "Floor",
                                          "Gemm",
                                          "GlobalAveragePool",
                                          "GlobalMaxPool",
                                          "HardSigmoid",
                                          "HardSwish",
                                          "Identity",
                                          "LeakyRelu",
                                          "Log",
                                          "LRN",
                                          "MatMul",
                                          "Max",
                                          "MaxPool",
                                          "Min",
                                          "Mul",
                                          "Neg",
                                          "Pad",
                                          "Pow",
                                          "PRelu",
                                          "Reciprocal",
                                          "ReduceL2",
                                          "ReduceMax",
                                          "ReduceMean",
                                          "ReduceMin",
                                          "ReduceSum",
                                          "Relu",
                                          "Reshape",
                                          "Resize",
                                          "Sigmoid",
                                          "Slice",
                                          "Softmax",
                                          "Split",
                                          "Sqrt",
                                          "Squeeze",
                                          "Sub",
                                          "Sum",
                                          "Tanh",
                                          "Transpose",
                                          "Unsqueeze",
                                          "Upsample"};

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Tensor> LoadTensors(const fs::path& folder, const std::string& prefix) {
  std::vector<Tensor> tensors;
  for (int i = 0;; ++i) {
    const fs::path path = folder / fmt::format("{}_{}.pb", prefix, i);
    if (!fs::exists(path)) return tensors;
    try {
      tensors.push_back(ParseOnnxTensor(ReadAll(path), path.string()));
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}_{}.pb is no tensor", prefix, i));
    }
  }
}

double At(const Tensor& tensor, int64_t i) {
  return VisitType(tensor.type(), [&](auto tag) {
    const auto value = tensor.data<typename decltype(tag)::Type>()[i];
    if constexpr (std::is_integral_v<decltype(value)>) return static_cast<double>(value);
    return static_cast<double>(static_cast<float>(value));
  });
}

// Empty when they agree.
std::string Difference(const Tensor& actual, const Tensor& expected) {
  if (actual.shape() != expected.shape() || actual.type() != expected.type()) {
    return fmt::format("{} of {} instead of {} of {}", ShapeToString(actual.shape()),
                       DataTypeName(actual.type()), ShapeToString(expected.shape()),
                       DataTypeName(expected.type()));
  }
  for (int64_t i = 0; i < expected.size(); ++i) {
    const double a = At(actual, i), b = At(expected, i);
    if (a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= kAbsolute + kRelative * std::abs(b))
      continue;
    return fmt::format("element {} of {} is {} instead of {}", i, expected.size(), a, b);
  }
  return "";
}

struct Case {
  std::string name;
  std::string model;
  OnnxSummary summary;
  std::vector<fs::path> data_sets;
};

// None where it is no case, or has operators that are not of `Wanted`.
template <typename Wanted>
std::optional<Case> LoadCase(const fs::path& folder, const Wanted& wanted) {
  Case result;
  result.name = folder.lexically_relative(kRoot).string();
  result.model = ReadAll(folder / "model.onnx");
  try {
    result.summary = SummarizeOnnx(result.model, result.name);
  } catch (const Error&) {
    return std::nullopt;  // sequences and the like
  }
  if (result.summary.op_types.empty() || !std::ranges::all_of(result.summary.op_types, wanted))
    return std::nullopt;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) result.data_sets.push_back(entry.path());
  }
  std::ranges::sort(result.data_sets);
  return result;
}

// With all inputs as activations, or with all but the first as weights, which then are taken out of `inputs`.
// Throws Error(kBadModel) when the importer refuses.
Graph ImportCase(const Case& test, bool weights, std::vector<Tensor>& inputs) {
  ImportOptions options;
  for (size_t i = 0; i < inputs.size() && i < test.summary.inputs.size(); ++i) {
    const std::string& name = test.summary.inputs[i];
    if (weights && i > 0) {
      options.constants[name] = inputs[i];
    } else {
      options.input_shapes[name] = inputs[i].shape();
    }
  }
  if (weights) inputs.resize(1);
  return ImportOnnxBytes(test.model, test.name, options);
}

// Appends to report.failures what differs. Throws as ImportCase.
void RunDataSet(const Case& test, const fs::path& data, bool weights, const RunGraph& run,
                ConformanceReport& report) {
  std::vector<Tensor> inputs = LoadTensors(data, "input");
  const std::vector<Tensor> expected = LoadTensors(data, "output");
  const Graph graph = ImportCase(test, weights, inputs);
  const std::string label = weights ? test.name + " with constant operands" : test.name;
  const std::vector<Tensor> actual = run(graph, inputs);
  if (actual.size() > expected.size() || expected.empty()) {
    report.failures.push_back(
        fmt::format("{}: {} outputs, {} are stored", label, actual.size(), expected.size()));
    return;
  }
  for (size_t i = 0; i < actual.size(); ++i) {
    const std::string difference = Difference(actual[i], expected[i]);
    if (!difference.empty())
      report.failures.push_back(fmt::format("{}, output {}: {}", label, i, difference));
  }
}

// Why no way of importing the case works, without the names of node and file; "" where one does.
std::string WhyRefused(const Case& test) {
  std::string reason;
  for (const bool weights : {true, false}) {
    if (weights && test.summary.inputs.size() < 2) continue;
    try {
      std::vector<Tensor> inputs = LoadTensors(test.data_sets.front(), "input");
      ImportCase(test, weights, inputs);
      return "";
    } catch (const Error& error) {
      if (reason.empty()) reason = error.what();
    }
  }
  if (reason.find("its elements are ") != std::string::npos || reason.ends_with(" is no tensor"))
    return "inputs that are no tensors of floats";
  if (const size_t node = reason.find("): "); node != std::string::npos) return reason.substr(node + 3);
  return reason.substr(std::min(reason.find(": ") + 2, reason.size()));  // behind the source
}

std::string OneLine(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

void RunCase(const Case& test, const RunGraph& run, ConformanceReport& report) {
  bool ran = false;
  std::string reason;  // of the first refusal
  for (const fs::path& data : test.data_sets) {
    for (const bool weights : {true, false}) {
      if (weights && test.summary.inputs.size() < 2) continue;
      try {
        RunDataSet(test, data, weights, run, report);
        ran = true;
      } catch (const Error& error) {
        if (reason.empty()) reason = OneLine(error.what());
        if (error.code() == ErrorCode::kBadModel) continue;
        report.failures.push_back(fmt::format("{}: {}", test.name, error.what()));
      }
    }
  }
  if (ran) {
    report.ran.push_back(test.name);
  } else {
    report.skipped.push_back(reason.starts_with(test.name) ? reason : test.name + ": " + reason);
  }
}

}  // namespace

bool HaveConformanceData() { return fs::is_directory(kRoot); }

ConformanceReport RunConformance(const RunGraph& run) {
  ConformanceReport report;
  std::vector<fs::path> folders;
  for (const char* group : {"node", "pytorch-converted", "pytorch-operator", "simple"}) {
    if (!fs::is_directory(kRoot / group)) continue;
    for (const auto& entry : fs::directory_iterator(kRoot / group)) folders.push_back(entry.path());
  }
  std::ranges::sort(folders);
  for (const fs::path& folder : folders) {
    const auto in_scope = [](const std::string& type) { return kOperators.contains(type); };
    if (const std::optional<Case> test = LoadCase(folder, in_scope)) {
      RunCase(*test, run, report);
    } else {
      ++report.out_of_scope;
    }
  }
  return report;
}

size_t CountNodeCases() {
  const fs::directory_iterator cases(kRoot / "node");
  return static_cast<size_t>(std::distance(begin(cases), end(cases)));
}

std::map<std::string, OperatorCoverage> CoverOperators() {
  std::map<std::string, OperatorCoverage> coverage;
  for (const auto& entry : fs::directory_iterator(kRoot / "node")) {
    std::string op_type;
    const auto alone = [&op_type](const std::string& type) {
      if (op_type.empty()) op_type = type;
      return type == op_type && FindOpImporter(type) != nullptr;
    };
    const std::optional<Case> test = LoadCase(entry.path(), alone);
    if (!test || test->data_sets.empty()) continue;
    OperatorCoverage& of = coverage[op_type];
    ++of.cases;
    const std::string reason = OneLine(WhyRefused(*test));
    if (reason.empty()) {
      ++of.taken;
    } else {
      of.refusals.insert(reason);
    }
  }
  return coverage;
}

std::string DescribeConformance(const ConformanceReport& report) {
  return fmt::format("{} cases ran, {} skipped, {} use other operators\n  skipped {}\n", report.ran.size(),
                     report.skipped.size(), report.out_of_scope, fmt::join(report.skipped, "\n  skipped "));
}

}  // namespace tilesmith
