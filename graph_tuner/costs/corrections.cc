#include "graph_tuner/costs/corrections.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph_tuner/costs/layout_forms.h"
#include "tuner/records/record_groups.h"

namespace tilesmith {
namespace {

// What an option is called when its tasks are dealt so.
std::string Dealt(std::string option, const DealtTasks& dealt) {
  if (dealt.split != Split::kEven) option += " by " + std::string(SplitName(dealt.split));
  if (dealt.band_rows > 0) option += fmt::format(" in bands of {}", dealt.band_rows);
  return option;
}

// A fused workload and its conv alone are options of the same node.
std::string OptionOf(const Record& record, const DealtTasks& dealt) {
  return Dealt(WorkloadToString(record.workload) + " " + ScheduleText(record), dealt);
}

std::string OptionOf(const LayoutPair& conversion) {
  return conversion.in.ToString() + " -> " + conversion.out.ToString();
}

}  // namespace

double Corrections::ScaleOf(const ByOption& options) {
  constexpr double kMaxOfAStep = 0.8;
  double scale = 1;
  for (const auto& [name, measured] : options)
    if (measured.crossing > 0) scale = std::min(scale, kMaxOfAStep * measured.seconds / measured.crossing);
  return scale;
}

double Corrections::Corrected(const ByOption& options, const std::string& option, double stand_alone) {
  const double scale = ScaleOf(options);
  const auto own = [&](const Measured& measured) { return measured.seconds - scale * measured.crossing; };
  const auto found = options.find(option);
  if (found != options.end()) return own(found->second);
  Measured sum;
  for (const auto& [name, measured] : options) {
    if (measured.stand_alone == 0) continue;
    sum.stand_alone += measured.stand_alone;
    sum.seconds += own(measured);
  }
  return sum.stand_alone > 0 ? stand_alone * (sum.seconds / sum.stand_alone) : stand_alone;
}

double Corrections::ConvSeconds(const std::string& node, const Record& record,
                                const DealtTasks& dealt) const {
  const double stand_alone = record.seconds * dealt.balance;
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return stand_alone;
  return Corrected(found->second, OptionOf(record, dealt), stand_alone);
}

double Corrections::OpSeconds(const std::string& node, const Layout& layout, double stand_alone,
                              const DealtTasks& dealt) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return stand_alone;
  return Corrected(found->second, Dealt(layout.ToString(), dealt), stand_alone);
}

double Corrections::ScaleOf(const std::map<std::string, ByOption>& learned, const std::string& name) {
  const auto found = learned.find(name);
  return found == learned.end() ? 1 : ScaleOf(found->second);
}

double Corrections::CrossingScale(const std::string& node) const { return ScaleOf(nodes_, node); }

double Corrections::ConversionScale(const std::string& tensor) const { return ScaleOf(conversions_, tensor); }

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
  options[correction.name][correction.option] = {correction.stand_alone_seconds, correction.seconds,
                                                 correction.crossing_seconds};
}

void Corrections::LearnConv(const std::string& node, const Record& record, double seconds,
                            const DealtTasks& dealt) {
  Learn({Correction::Of::kNode, node, OptionOf(record, dealt), record.seconds * dealt.balance, seconds,
         dealt.crossing_seconds});
}

void Corrections::LearnOp(const std::string& node, const Layout& layout, double stand_alone, double seconds,
                          const DealtTasks& dealt) {
  Learn({Correction::Of::kNode, node, Dealt(layout.ToString(), dealt), stand_alone, seconds,
         dealt.crossing_seconds});
}

void Corrections::LearnConversion(const std::string& tensor, const LayoutPair& conversion, double stand_alone,
                                  double seconds, double crossing_seconds) {
  Learn({Correction::Of::kTensor, tensor, OptionOf(conversion), stand_alone, seconds, crossing_seconds});
}

std::vector<Correction> Corrections::All() const {
  std::vector<Correction> all;
  const auto add = [&](Correction::Of of, const std::map<std::string, ByOption>& learned) {
    for (const auto& [name, options] : learned)
      for (const auto& [option, measured] : options)
        all.push_back({of, name, option, measured.stand_alone, measured.seconds, measured.crossing});
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
