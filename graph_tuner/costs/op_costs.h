// What ops other than convs cost in each layout they run in, each distinct one measured once per machine.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "graph_tuner/costs/costs.h"
#include "graph_tuner/costs/costs_file.h"

namespace tilesmith {

// Signature, input shapes and output shape; not the layout.
std::string OpUseText(const OpUse& use);

class OpCosts {
 public:
  using Measure = std::function<double(const OpUse&)>;

  // `file` must outlive this.
  OpCosts(CostFile& file, Measure measure) : file_(file), measure_(std::move(measure)) {}

  // Precondition: use.op->RunsIn(use.layout, use.inputs).
  double Seconds(const OpUse& use);

 private:
  // All of an OpUse but the op.
  using Use = std::tuple<std::vector<Shape>, Shape, Layout, std::vector<DataType>, DataType>;

  double FromFile(const OpUse& use);

  CostFile& file_;
  Measure measure_;
  std::map<std::weak_ptr<const Op>, std::map<Use, double>, std::owner_less<>> known_;
};

// Measures the op's own kernel on `threads` threads; ops without a fast one are run once.
OpCosts::Measure OpMeasure(DevicePtr device);

}  // namespace tilesmith
