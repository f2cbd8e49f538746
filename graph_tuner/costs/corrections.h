// What running plans has taught about costs in context.
//
// The log and the costs file hold stand-alone costs: a kernel by itself, again and again. In a network its
// weights may be cold, its tensors lie in a neighbour's cache, and the team has just done something else. The
// corrected cost is
//   of an option that was measured in context: that measurement, the last one where there are several;
//   of another option of the same node: its stand-alone cost times the node's ratio, which is the sum of the
//     node's measurements over the sum of the stand-alone costs of what was measured, schedules aside whose
//     stand-alone cost is not known (0);
//   of any option of a node that never ran: its stand-alone cost.
// The ratio is there because what slows one option of a node in context mostly slows the others as well.
// Without it every option not yet tried would look better than it is, and solving again would chase whatever
// has not been tried.
//
// What a step waits for since other threads wrote its inputs (plan/crossings.h) depends on the nodes around
// it and is charged apart. So of what was measured only the rest is the option's, and where the price of the
// crossing seems to be more than most of the measurement, all crossings of the node cost less by one factor
// (CrossingScale), so that a plan that ran costs what it took.
//
// Costs are kept by node, not by workload: two nodes of one workload differ in context. All conversions of a
// tensor, transforms and copies into slices of concats, are the options of one more "node", the tensor.
// Source: original.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "layouts/base/split.h"
#include "ops/graph/graph.h"
#include "tuner/records/record.h"

namespace tilesmith {

// What was measured of one option.
struct Correction {
  enum class Of { kNode, kTensor };  // a tensor's options are its conversions
  Of of = Of::kNode;
  std::string name;    // the node's, or that of the node that produces the tensor
  std::string option;  // "conv2d ... direct {...}", "NCHW16c", "NCHW -> NCHW16c"
  double stand_alone_seconds = 0, seconds = 0;
  double crossing_seconds = 0;  // by its price, of what crossed then; not in stand_alone_seconds
};

// How a node's tasks are dealt to threads: an option of the node's beside its layouts and schedule.
struct DealtTasks {
  Split split = Split::kEven;
  int64_t band_rows = 0;        // of the region that the node is in; 0: in none
  double balance = 1;           // how many times longer than in even shares that takes
  double crossing_seconds = 0;  // of a run: the price of what crossed
};

// A plain value. All times are in seconds, finite and not negative.
class Corrections {
 public:
  bool empty() const { return nodes_.empty() && conversions_.empty(); }

  // Corrected costs. Of a conv, fused or not, that is computed as `record` says.
  double ConvSeconds(const std::string& node, const Record& record, const DealtTasks& dealt = {}) const;
  // The seconds of any other op with its tensors in `layout`, dealt so.
  double OpSeconds(const std::string& node, const Layout& layout, double stand_alone,
                   const DealtTasks& dealt = {}) const;
  // What the price of a node's crossings is multiplied by: at most 1.
  double CrossingScale(const std::string& node) const;
  // Likewise, of the conversions of the tensor that a node produces.
  double ConversionScale(const std::string& tensor) const;
  // The seconds of a conversion of the tensor that node `tensor` produces.
  double ConversionSeconds(const Node& tensor, const Layout& from, const Layout& to,
                           double stand_alone) const;
  // Whether that is a measurement of this conversion.
  bool HasMeasured(const Node& tensor, const Layout& from, const Layout& to) const;

  // What was measured in context.
  void LearnConv(const std::string& node, const Record& record, double seconds, const DealtTasks& dealt = {});
  void LearnOp(const std::string& node, const Layout& layout, double stand_alone, double seconds,
               const DealtTasks& dealt = {});
  void LearnConversion(const std::string& tensor, const LayoutPair& conversion, double stand_alone,
                       double seconds, double crossing_seconds = 0);
  void Learn(const Correction& correction);

  // All that was learned, nodes first, by name and option.
  std::vector<Correction> All() const;
  // The same on a machine that takes `factor` times as long for everything.
  Corrections Scaled(double factor) const;

 private:
  struct Measured {
    double stand_alone = 0, seconds = 0, crossing = 0;
  };
  using ByOption = std::map<std::string, Measured>;

  static double ScaleOf(const ByOption& options);
  static double ScaleOf(const std::map<std::string, ByOption>& learned, const std::string& name);
  static double Corrected(const ByOption& options, const std::string& option, double stand_alone);

  std::map<std::string, ByOption> nodes_, conversions_;  // by name
};

}  // namespace tilesmith
