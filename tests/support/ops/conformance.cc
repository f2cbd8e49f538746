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

const fs::path kTestData = "/usr/share/libonnx-testdata/data";
constexpr double kRelative = 1e-3, kAbsolute = 1e-7;

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

// What is no model of tensors, a sequence say, throws Error(kBadModel).
Case LoadCase(const fs::path& folder) {
  Case result;
  result.name = folder.lexically_relative(kTestData).string();
  result.model = ReadAll(folder / "model.onnx");
  result.summary = SummarizeOnnx(result.model, result.name);
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) result.data_sets.push_back(entry.path());
  }
  std::ranges::sort(result.data_sets);
  return result;
}

std::vector<const Tensor*> Pointers(const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
  return pointers;
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

void Fail(const Case& test, ConformanceReport& report, std::string difference) {
  report.failed.insert(test.name);
  report.failures.push_back(std::move(difference));
}

// Appends to report.failures what differs. Throws as ImportCase.
void RunDataSet(const Case& test, const fs::path& data, bool weights, const RunGraph& run,
                ConformanceReport& report) {
  std::vector<Tensor> inputs = LoadTensors(data, "input");
  const std::vector<Tensor> expected = LoadTensors(data, "output");
  if (test.name.find("BFLOAT16") != std::string::npos) {
    throw Error(ErrorCode::kBadModel,
                test.name + ".onnx: the package stores numbers of type bf16 as integers");
  }
  const Graph graph = ImportCase(test, weights, inputs);
  const std::string label = weights ? test.name + " with constant operands" : test.name;
  std::vector<Tensor> actual = run(graph, inputs);
  if (graph.tail()) {
    const OpMachine machine{DetectCpu(), 1};
    actual = graph.tail()->Run(Pointers(actual), &machine);
  }
  if (actual.size() > expected.size() || expected.empty()) {
    Fail(test, report, fmt::format("{}: {} outputs, {} are stored", label, actual.size(), expected.size()));
    return;
  }
  for (size_t i = 0; i < actual.size(); ++i) {
    const std::string difference = Difference(actual[i], expected[i]);
    if (!difference.empty()) Fail(test, report, fmt::format("{}, output {}: {}", label, i, difference));
  }
}

std::string OneLine(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

// A refusal without the names of node and file.
std::string WithoutNames(const std::string& reason) {
  if (reason.find("its elements are ") != std::string::npos) {
    return reason.substr(reason.find("its elements are "));
  }
  if (reason.ends_with(" is no tensor")) return "inputs that are no tensors";
  const size_t node = reason.find("): "), type = reason.find("not supported: ");
  if (node != std::string::npos) {
    const std::string op_type =
        type == std::string::npos ? "" : reason.substr(type + 15, reason.find(" (", type) - type - 15) + ": ";
    return op_type + reason.substr(node + 3);
  }
  const size_t source = reason.find(".onnx: ");
  return source == std::string::npos ? reason : reason.substr(source + 7);
}

// Why no way of importing the case works; "" where one does.
std::string WhyRefused(const Case& test) {
  std::string reason;
  for (const bool weights : {true, false}) {
    if (weights && test.summary.inputs.size() < 2) continue;
    try {
      std::vector<Tensor> inputs = LoadTensors(test.data_sets.front(), "input");
      ImportCase(test, weights, inputs);
      return "";
    } catch (const Error& error) {
      if (reason.empty()) reason = OneLine(error.what());
    }
  }
  reason = WithoutNames(reason);
  const std::string own = test.summary.op_types.front() + ": ";
  return reason.starts_with(own) ? reason.substr(own.size()) : reason;
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
        Fail(test, report, fmt::format("{}: {}", test.name, error.what()));
      }
    }
  }
  if (ran) {
    report.ran.push_back(test.name);
  } else {
    report.skipped[WithoutNames(reason)].push_back(test.name);
  }
}

}  // namespace

bool HaveConformanceData() { return fs::is_directory(kTestData); }

ConformanceReport RunConformance(const RunGraph& run) {
  ConformanceReport report;
  std::vector<fs::path> folders;
  for (const char* group : {"node", "pytorch-converted", "pytorch-operator", "simple"}) {
    if (!fs::is_directory(kTestData / group)) continue;
    for (const auto& entry : fs::directory_iterator(kTestData / group)) folders.push_back(entry.path());
  }
  std::ranges::sort(folders);
  for (const fs::path& folder : folders) {
    try {
      RunCase(LoadCase(folder), run, report);
    } catch (const Error& error) {
      report.skipped[OneLine(error.what())].push_back(folder.lexically_relative(kTestData).string());
    }
  }
  return report;
}

size_t CountNodeCases() {
  const fs::directory_iterator cases(kTestData / "node");
  return static_cast<size_t>(std::distance(begin(cases), end(cases)));
}

std::map<std::string, OperatorCoverage> CoverOperators() {
  std::map<std::string, OperatorCoverage> coverage;
  for (const auto& entry : fs::directory_iterator(kTestData / "node")) {
    std::optional<Case> test;
    try {
      test = LoadCase(entry.path());
    } catch (const Error&) {
      continue;  // sequences and the like
    }
    const std::vector<std::string>& types = test->summary.op_types;
    const auto differs = [&](const std::string& type) { return type != types.front(); };
    if (types.empty() || test->data_sets.empty() || std::ranges::any_of(types, differs) ||
        FindOpImporter(types.front()) == nullptr)
      continue;
    OperatorCoverage& of = coverage[types.front()];
    ++of.cases;
    const std::string reason = WhyRefused(*test);
    if (reason.empty()) {
      ++of.taken;
    } else {
      of.refusals.insert(reason);
    }
  }
  return coverage;
}

std::string DescribeConformance(const ConformanceReport& report) {
  size_t skipped = 0;
  std::string reasons;
  for (const auto& [reason, cases] : report.skipped) {
    skipped += cases.size();
    reasons += fmt::format("  {} skipped: {} ({})\n", cases.size(), reason, cases.front());
  }
  return fmt::format("{} cases: {} ran, {} of them with differences, {} skipped\n{}",
                     report.ran.size() + skipped, report.ran.size(), report.failed.size(), skipped, reasons);
}

}  // namespace tilesmith
