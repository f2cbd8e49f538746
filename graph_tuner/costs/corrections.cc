#include "graph_tuner/costs/corrections.h"

#include "graph_tuner/costs/layout_forms.h"
#include "tuner/records/record_groups.h"

namespace tilesmith {
namespace {

// A fused workload and its conv alone are options of the same node.
std::string OptionOf(const Record& record) {
  return WorkloadToString(record.workload) + " " + ScheduleText(record);
}

std::string OptionOf(const LayoutPair& conversion) {
  return conversion.in.ToString() + " -> " + conversion.out.ToString();
}

}  // namespace

double Corrections::Corrected(const ByOption& options, const std::string& option, double stand_alone) {
  const auto found = options.find(option);
  if (found != options.end()) return found->second.seconds;
  Measured sum;
  for (const auto& [name, measured] : options) {
    sum.stand_alone += measured.stand_alone;
    sum.seconds += measured.seconds;
  }
  return sum.stand_alone > 0 ? stand_alone * (sum.seconds / sum.stand_alone) : stand_alone;
}

double Corrections::ConvSeconds(const std::string& node, const Record& record) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return record.seconds;
  return Corrected(found->second, OptionOf(record), record.seconds);
}

double Corrections::OpSeconds(const std::string& node, const Layout& layout, double stand_alone) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return stand_alone;
  return Corrected(found->second, layout.ToString(), stand_alone);
}

double Corrections::ConversionSeconds(const Node& tensor, const Layout& from, const Layout& to,
                                      double stand_alone) const {
  const auto found = conversions_.find(tensor.name);
  if (found == conversions_.end()) return stand_alone;
  return Corrected(found->second, OptionOf(ConversionOf(tensor.shape, from, to)), stand_alone);
}

bool Corrections::HasMeasured(const Node& tensor, const Layout& from, const Layout& to) const {
  const auto found = conversions_.find(tensor.name);
  return found != conversions_.end() &&
         found->second.contains(OptionOf(ConversionOf(tensor.shape, from, to)));
}

void Corrections::Learn(const Correction& correction) {
  auto& options = correction.of == Correction::Of::kNode ? nodes_ : conversions_;
  options[correction.name][correction.option] = {correction.stand_alone_seconds, correction.seconds};
}

void Corrections::LearnConv(const std::string& node, const Record& record, double seconds) {
  Learn({Correction::Of::kNode, node, OptionOf(record), record.seconds, seconds});
}

void Corrections::LearnOp(const std::string& node, const Layout& layout, double stand_alone, double seconds) {
  Learn({Correction::Of::kNode, node, layout.ToString(), stand_alone, seconds});
}

void Corrections::LearnConversion(const std::string& tensor, const LayoutPair& conversion, double stand_alone,
                                  double seconds) {
  Learn({Correction::Of::kTensor, tensor, OptionOf(conversion), stand_alone, seconds});
}

std::vector<Correction> Corrections::All() const {
  std::vector<Correction> all;
  const auto add = [&](Correction::Of of, const std::map<std::string, ByOption>& learned) {
    for (const auto& [name, options] : learned)
      for (const auto& [option, measured] : options)
        all.push_back({of, name, option, measured.stand_alone, measured.seconds});
  };
  add(Correction::Of::kNode, nodes_);
  add(Correction::Of::kTensor, conversions_);
  return all;
}

Corrections Corrections::Scaled(double factor) const {
  Corrections scaled;
  for (Correction correction : All()) {
    correction.seconds *= factor;
    scaled.Learn(correction);
  }
  return scaled;
}

}  // namespace tilesmith
