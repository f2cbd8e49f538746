// The inputs that a model is calibrated on: files, one after the other, so that no more than one is in
// memory; or random data.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ops/graph/graph.h"
#include "tools/cli/model.h"

namespace tilesmith {

class CalibrationInputs {
 public:
  // Throws Error(kUsage) when a path is neither, or a directory holds no such file.
  explicit CalibrationInputs(const CalibrationSource& source);

  bool random() const { return files_.empty(); }
  // "random inputs", or where they are from.
  const std::string& description() const { return description_; }
  // For sizes that the model leaves open: those of the first file's samples, by input, "" being the only one.
  std::map<std::string, Shape> OpenShapes() const;

  // Every sample, as tensors in the order of the graph's inputs. Their sizes may differ from the graph's but
  // for the first. Throws Error(kUsage) naming the file where a name, rank or type is not the graph's.
  void ForEach(const Graph& graph, const std::function<void(std::vector<Tensor>)>& visit) const;
  // How many that is, once ForEach has come to its end.
  std::optional<int64_t> count() const { return count_; }
  // How many there are, for estimates: files not yet looked at hold as many as those before them.
  int64_t ExpectedCount() const;

 private:
  std::vector<std::string> files_;
  std::string description_;
  int64_t limit_ = 0;
  uint64_t seed_ = 1;
  mutable std::optional<int64_t> count_;
  mutable int64_t seen_samples_ = 0, seen_files_ = 0;
};

// Those of the source's first `most` samples that have the graph's sizes; random ones where none have.
std::vector<std::vector<Tensor>> SamplesOf(const Graph& graph, const CalibrationSource& source, int64_t most);

}  // namespace tilesmith
