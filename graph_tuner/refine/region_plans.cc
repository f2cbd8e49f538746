#include "graph_tuner/refine/region_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "graph_tuner/costs/layout_forms.h"
#include "graph_tuner/executor/compiled_network.h"
#include "graph_tuner/executor/network_regions.h"
#include "graph_tuner/problem/region_choice.h"
#include "layouts/base/check.h"
#include "layouts/base/sizes.h"
#include "ops/conv/conv.h"
#include "ops/dense/tasks.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

// Bands of an image, and the part of a second-level cache that a region's buffers may take: the last class
// saves memory where rows are too long for it.
struct BandClass {
  int64_t bands;
  double cache_share;
};
constexpr BandClass kBandClasses[] = {{96, 0.75}, {48, 0.75}, {24, 0.75}, {192, 16}};
constexpr size_t kClasses = std::size(kBandClasses);

// How a node is computed in a region.
struct Banded {
  LayoutPair layouts;
  std::optional<Record> record;
};
// Or why it is in none, of which it is the subject: "computes no images".
struct BandedOrNot {
  std::optional<Banded> banded;
  std::string why_not;
};
BandedOrNot NotBanded(std::string why_not) { return {std::nullopt, std::move(why_not)}; }

constexpr std::string_view kInBandsOf = " in bands of ";  // in the options of corrections

int64_t BandRows(int64_t height, size_t band_class) {
  return std::max<int64_t>(1, CeilDiv(height, kBandClasses[band_class].bands));
}

class Regions {
 public:
  Regions(const Graph& graph, const Plan& plan, const Candidates& candidates, const Target& cpu)
      : graph_(graph), plan_(plan), candidates_(candidates), cpu_(cpu), planned_(graph.size(), nullptr) {
    for (const NodePlan& node : plan.nodes) planned_[*graph.Find(node.node)] = &node;
    const FusedNodes fused = FindFusedNodes(graph, plan);
    readers_.resize(graph.size());
    for (NodeId id = 0; id < graph.size(); ++id) {
      std::vector<NodeId>& inputs = inputs_.emplace_back(graph.Inputs(id));
      if (const auto pair = fused.find(id); pair != fused.end())
        inputs[0] = graph.Inputs(pair->second.first)[0];
      for (const NodeId input : inputs)
        if (!IsFusedAway(id) && (readers_[input].empty() || readers_[input].back() != id))
          readers_[input].push_back(id);
    }
    for (size_t c = 0; c < kClasses; ++c) {
      std::vector<BandedOrNot>& of_class = banded_.emplace_back();
      for (NodeId id = 0; id < graph.size(); ++id) of_class.push_back(BandedAs(id, c));
    }
  }

  const NodePlan* planned(NodeId id) const { return planned_[id]; }
  const std::optional<Banded>& banded(NodeId id, size_t band_class) const {
    return banded_[band_class][id].banded;
  }
  const std::string& WhyNotBanded(NodeId id, size_t band_class) const {
    return banded_[band_class][id].why_not;
  }

  // What the node's kernel reads, by slot: of two that are fused what the first one does.
  const std::vector<NodeId>& Inputs(NodeId id) const { return inputs_[id]; }
  // Whoever reads the tensor by a step of its own.
  const std::vector<NodeId>& Readers(NodeId id) const { return readers_[id]; }
  int RegionOf(NodeId id) const { return planned_[id] ? planned_[id]->region : 0; }
  bool IsFusedAway(NodeId id) const { return planned_[id] && !planned_[id]->fused_into.empty(); }

  std::optional<RowWindows> RowsRead(NodeId id, size_t slot) const {
    const NodePlan* node = planned_[id];
    std::vector<Shape> shapes;
    for (const NodeId input : Inputs(id)) shapes.push_back(graph_.node(input).shape);
    const Shape& result = graph_.node(id).shape;
    if (node == nullptr) return std::nullopt;
    if (const auto* conv = graph_.As<ConvolutionOp>(id)) {
      const ConvWorkload& workload = node->record ? node->record->workload : conv->workload();
      if (workload.product) return std::nullopt;
      return slot == 0 ? std::optional(WindowsOf(workload)) : SameRows(slot, shapes, result);
    }
    return graph_.node(id).op->RowsReadOf(slot, shapes, result);
  }

  // Bytes of a thread's buffer for the node's result.
  double BufferBytes(NodeId id, size_t band_class) const {
    constexpr double kSlack = 1.5;  // as ScheduleRegion gives it
    const Shape& shape = graph_.node(id).shape;
    int64_t window = 1;
    for (const NodeId reader : Readers(id)) {
      const std::vector<NodeId>& inputs = Inputs(reader);
      for (size_t slot = 0; slot < inputs.size(); ++slot) {
        if (inputs[slot] != id) continue;
        if (const auto rows = RowsRead(reader, slot)) {
          const RowRange read = tilesmith::RowsRead(*rows, {shape[2], shape[2] + 1}, 1 << 30);
          window = std::max(window, read.last - read.first);
        }
      }
    }
    const auto row_bytes = static_cast<double>(PaddedBytes(shape, banded(id, band_class)->layouts.out)) /
                           static_cast<double>(shape[0] * shape[2]);
    const int64_t rows = std::min(shape[2], BandRows(shape[2], band_class) + window - 1);
    return kSlack * static_cast<double>(rows) * row_bytes;
  }
  double Capacity(size_t band_class) const {
    return kBandClasses[band_class].cache_share * static_cast<double>(cpu_.l2_bytes);
  }

  // Whether a region's node takes what another one makes as it is, row by row; or why it does not.
  bool Streams(NodeId id, size_t slot, size_t band_class) const {
    return WhyNotStreamed(id, slot, band_class).empty();
  }
  std::string WhyNotStreamed(NodeId id, size_t slot, size_t band_class) const {
    const NodeId from = Inputs(id)[slot];
    const auto &reader = banded(id, band_class), &producer = banded(from, band_class);
    const auto no = [&](NodeId node, std::string_view why) {
      return fmt::format("{} {}", graph_.node(node).name, why);
    };
    if (!producer) return no(from, WhyNotBanded(from, band_class));
    if (!reader) return no(id, WhyNotBanded(id, band_class));
    if (!RowsRead(id, slot)) return no(id, "may read any row of it");
    const Layout read = ReadIn(id, slot, reader->layouts), &written = producer->layouts.out;
    if (SameForm(graph_.node(from).shape, written, read)) return "";
    return no(id, fmt::format("reads it in {}, not {}", read.ToString(), written.ToString()));
  }

  // The layout in which a node, computed in these, reads an input.
  Layout ReadIn(NodeId id, size_t slot, const LayoutPair& layouts) const {
    if (graph_.As<ConvolutionOp>(id)) return slot == 0 ? layouts.in : layouts.out;
    return TensorLayout(graph_.node(Inputs(id)[slot]), InputOrder(graph_.node(id), layouts.out));
  }

  // The plan with these regions, those of one node left out; `classes`: by node.
  Plan Make(const std::vector<int>& region_of, const std::vector<size_t>& classes) const {
    Plan made = plan_;
    std::map<int, int> numbers, sizes;
    std::map<int, std::pair<NodeId, size_t>> last;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (region_of[id] < 0) continue;
      ++sizes[region_of[id]];
      last[region_of[id]] = {id, classes[id]};
    }
    for (NodePlan& node : made.nodes) {
      const NodeId id = *graph_.Find(node.node);
      const int region = region_of[id];
      if (region < 0 || sizes[region] < 2) continue;
      const auto [number, is_new] = numbers.try_emplace(region, static_cast<int>(made.regions.size()) + 1);
      if (is_new) {
        const auto& [end, band_class] = last[region];
        made.regions.push_back({BandRows(graph_.node(end).shape[2], band_class)});
      }
      const Banded& banded = *banded_[classes[id]][id].banded;
      node.region = number->second;
      node.layouts = banded.layouts;
      node.record = banded.record;
      node.split = Split::kRows;
    }
    return made;
  }

 private:
  // What fits the second-level caches together with as much else is there when it is read.
  bool IsLarge(NodeId id) const {
    const Node& node = graph_.node(id);
    if (node.shape.size() != 4 || node.op->Type() == "Constant") return false;
    const double share = static_cast<double>(PaddedBytes(node.shape, TensorLayout(node, Layout::Nchw()))) /
                         static_cast<double>(plan_.threads);
    return share > 0.5 * static_cast<double>(cpu_.l2_bytes);
  }

  BandedOrNot BandedAs(NodeId id, size_t band_class) const {
    const NodePlan* node = planned_[id];
    const Shape& shape = graph_.node(id).shape;
    if (node == nullptr) return NotBanded("is not computed");
    if (IsFusedAway(id)) return NotBanded(fmt::format("is computed by {}", node->fused_into));
    if (shape.size() != 4 || shape[2] < 2) return NotBanded("gives no images of several rows");
    const Op& op = *graph_.node(id).op;
    if (op.IsView() || graph_.As<MatMulOp>(id)) return NotBanded("gives no images of its own");
    const std::vector<NodeId>& sources = Inputs(id);
    if (!IsLarge(id) && std::ranges::none_of(sources, [&](NodeId from) { return IsLarge(from); }))
      return NotBanded("reads and writes what stays in the caches anyway");
    const int64_t rows = BandRows(shape[2], band_class);
    if (node->record) return BandedConv(*node, rows);
    if (graph_.As<ConvolutionOp>(id) || !op.HasFastKernel()) return NotBanded("has no kernel for rows");
    const std::vector<NodeId> inputs = graph_.Inputs(id);
    bool any = false;
    for (size_t slot = 0; slot < inputs.size(); ++slot) any = any || RowsRead(id, slot).has_value();
    if (!any) return NotBanded("reads all rows of an image");
    const Layout planned =
        node->layouts.in.type() == DataType::kF32 || node->layouts.in.type() == DataType::kBf16
            ? node->layouts.in
            : InputOrder(graph_.node(id), node->layouts.out);
    for (const Layout& layout : {planned, Layout::Nhwc().WithType(planned.type())})
      if (RunsInBands(id, layout)) return {Banded{NodeLayouts(graph_, id, layout, layout), std::nullopt}, ""};
    return NotBanded("has no kernel for rows in its layouts");
  }

  bool RunsInBands(NodeId id, const Layout& layout) const {
    const Op& op = *graph_.node(id).op;
    const Shape& shape = graph_.node(id).shape;
    if (!NodeRunsIn(graph_, id, layout)) return false;
    KernelRequest request{.inputs = graph_.InputShapes(id),
                          .output = shape,
                          .layout = TensorLayout(graph_.node(id), layout),
                          .cpu = cpu_};
    for (const NodeId input : graph_.Inputs(id))
      request.input_types.push_back(TensorLayout(graph_.node(input), layout).type());
    if (!op.KernelTakes(request.input_types)) return false;
    const std::unique_ptr<Kernel> kernel = MakeOpKernel(op, request);
    const TaskGrid grid = kernel->Grid(0);
    const bool blocks = layout.Blocks(shape[1]) > 1;
    return kernel->Stages() == 1 && grid.GivesRows(shape[0], shape[2]) && (!blocks || kernel->ShiftsBlocks());
  }

  BandedOrNot BandedConv(const NodePlan& node, int64_t rows) const {
    const ConvWorkload& workload = node.record->workload;
    if (workload.product) return NotBanded("is a product");
    std::vector<Record> records = {*node.record};
    if (const auto found = candidates_.find(WorkloadToString(workload)); found != candidates_.end())
      records.insert(records.end(), found->second.begin(), found->second.end());
    // What is much slower by itself than the plan's own does not get faster by being near its neighbours.
    constexpr double kSlack = 1.2;
    const double most = kSlack * node.record->seconds;
    if (most > 0)
      std::erase_if(records,
                    [&](const Record& record) { return record.seconds == 0 || record.seconds > most; });
    std::ranges::stable_sort(records.begin() + 1, records.end(), {}, &Record::seconds);
    const auto same_types = [&](const LayoutPair& layouts) {
      return layouts.in.type() == node.layouts.in.type() && layouts.out.type() == node.layouts.out.type();
    };
    if (most == 0 && node.layouts.in.type() == DataType::kF32 && node.layouts.out.type() == DataType::kF32)
      records.push_back(DefaultRecord(workload, cpu_, plan_.threads, DefaultStyle::kRows));
    for (Record& record : records) {
      const bool whole_rows =
          record.layouts.in.Blocks(workload.ic) == 1 && record.layouts.out.Blocks(workload.oc) == 1;
      const ConvTemplate& conv_template = FindConvTemplate(record.template_name);
      if (!same_types(record.layouts) || !(whole_rows || conv_template.ShiftsBlocks())) continue;
      std::optional<Config> config = conv_template.InBands(workload, record.config, rows, cpu_);
      if (!config) continue;
      if (record.config != *config) record.tuner = "bands";
      record.config = *std::move(config);
      return {Banded{record.layouts, std::move(record)}, ""};
    }
    return NotBanded(
        fmt::format("has no schedule of {} rows that is about as fast in types of the plan", rows));
  }

  const Graph& graph_;
  const Plan& plan_;
  const Candidates& candidates_;
  const Target& cpu_;
  std::vector<const NodePlan*> planned_;  // by id
  std::vector<std::vector<NodeId>> inputs_, readers_;
  std::vector<std::vector<BandedOrNot>> banded_;  // by class and id
};

// Regions of nodes that are asked for one after the other, in graph order.
class FormedRegions {
 public:
  FormedRegions(const Regions& regions, size_t nodes)
      : regions_(regions), region_of_(nodes, -1), classes_(nodes, 0), seen_in_(nodes, 0) {}

  // Makes the node a member of a region that is or is not there yet, if it reads members row by row and
  // regions can still be computed one behind the other: none needs what others make of its own results.
  bool Join(NodeId id, int region, size_t band_class) {
    const std::vector<NodeId>& inputs = regions_.Inputs(id);
    for (size_t slot = 0; slot < inputs.size(); ++slot)
      if (region_of_[inputs[slot]] == region && !regions_.Streams(id, slot, band_class)) return false;
    if (std::cmp_greater_equal(region, members_.size())) members_.resize(static_cast<size_t>(region) + 1);
    if (NeedsWhatOthersMakeOf(region, id)) return false;
    members_[static_cast<size_t>(region)].push_back(id);
    region_of_[id] = region;
    classes_[id] = band_class;
    return true;
  }

  int region_of(NodeId id) const { return region_of_[id]; }
  // By node; -1 for none.
  const std::vector<int>& all() const { return region_of_; }
  const std::vector<size_t>& classes() const { return classes_; }

 private:
  // Walks on from whoever reads the region's results, whole regions at a time, up to the node. What else a
  // node reads is near its region in most networks, and so are those.
  bool NeedsWhatOthersMakeOf(int region, NodeId id) {
    const std::vector<NodeId>& inputs = regions_.Inputs(id);
    const auto is_near = [&](NodeId input) {
      return regions_.planned(input) == nullptr || region_of_[input] == region;
    };
    if (std::ranges::all_of(inputs, is_near)) return false;
    std::vector<NodeId> walk = members_[static_cast<size_t>(region)];
    ++walks_;
    while (!walk.empty()) {
      const NodeId from = walk.back();
      walk.pop_back();
      for (const NodeId reader : regions_.Readers(from)) {
        if (reader >= id || region_of_[reader] == region || seen_in_[reader] == walks_) continue;
        const int other = region_of_[reader];
        const std::vector<NodeId> unit =
            other < 0 ? std::vector<NodeId>{reader} : members_[static_cast<size_t>(other)];
        for (const NodeId member : unit) {
          if (std::ranges::find(inputs, member) != inputs.end()) return true;
          seen_in_[member] = walks_;
          walk.push_back(member);
        }
      }
    }
    return false;
  }

  const Regions& regions_;
  std::vector<int> region_of_;
  std::vector<size_t> classes_;
  std::vector<std::vector<NodeId>> members_;  // by region
  std::vector<int> seen_in_;                  // the last walk that came to a node
  int walks_ = 0;
};

// Greedily: each node joins the region of one of its producers while there is room, or begins one, whose
// buffers are `larger` times as large as they are estimated (by the node that begins it).
FormedRegions LargestRegions(const Graph& graph, const Regions& regions, size_t band_class,
                             const std::vector<double>& larger) {
  FormedRegions formed(regions, graph.size());
  std::vector<double> used, scales;  // by region: bytes
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (!regions.banded(id, band_class)) continue;
    for (const NodeId input : regions.Inputs(id)) {
      const int region = formed.region_of(input);
      if (region < 0 || used[static_cast<size_t>(region)] > regions.Capacity(band_class)) continue;
      if (formed.Join(id, region, band_class)) break;
    }
    if (formed.region_of(id) < 0) {
      formed.Join(id, static_cast<int>(used.size()), band_class);
      used.push_back(0);
      scales.push_back(larger[id]);
    }
    const auto region = static_cast<size_t>(formed.region_of(id));
    used[region] += scales[region] * regions.BufferBytes(id, band_class);
  }
  return formed;
}

// By the node that begins it, how many times more than its share of the cache each region takes.
std::map<NodeId, double> TooLarge(const Graph& graph, const Regions& regions, const Plan& plan,
                                  size_t band_class, const Target& cpu) {
  std::map<NodeId, double> too_large;
  if (plan.regions.empty()) return too_large;
  const CompiledNetwork network = CompileOnlyRegions(graph, plan, cpu);
  for (size_t r = 0; r < network.regions.size(); ++r) {
    NodeId first = graph.size();
    for (int i = network.program.regions[r].first; i < network.program.regions[r].last; ++i)
      if (const Step& step = network.program.steps[i]; step.kind == StepKind::kNode)
        first = std::min(first, step.node);
    const double times =
        static_cast<double>(network.regions[r].schedule.buffer_bytes) / regions.Capacity(band_class);
    if (times > 1) too_large[first] = times;
  }
  return too_large;
}

// As many nodes in regions as there is room for. Where windows of several layers add up, buffers take much
// more than each by itself, which is known when they are there: in the class that is to save memory such
// regions end earlier.
Plan PlanOfLargestRegions(const Graph& graph, const Regions& regions, size_t band_class, const Target& cpu) {
  constexpr int kTries = 4;
  std::vector<double> larger(graph.size(), 1.0);
  for (int tries = 1;; ++tries) {
    const FormedRegions formed = LargestRegions(graph, regions, band_class, larger);
    Plan made = WithRegionsThatCompile(graph, regions.Make(formed.all(), formed.classes()), cpu);
    if (kBandClasses[band_class].cache_share <= 1 || tries == kTries) return made;
    const std::map<NodeId, double> too_large = TooLarge(graph, regions, made, band_class, cpu);
    if (too_large.empty()) return made;
    for (const auto& [first, times] : too_large) larger[first] *= times;
  }
}

// Of each node what its step took, in its share of a run; and of each tensor what its conversions did.
struct Taken {
  std::map<std::string, double> nodes, conversions;
};
Taken TakenBy(const PlanMeasurement& measurement) {
  Taken taken;
  const double share = ShareScale(measurement);
  for (const StepProfile& step : measurement.steps)
    (step.conversion ? taken.conversions : taken.nodes)[step.node] += step.seconds * share;
  return taken;
}

// The plan with as many nodes in regions as there is room for, in bands of one class.
struct RegionVariant {
  size_t band_class = 0;
  Plan plan;
};

// Without those that are alike, or have no region.
std::vector<RegionVariant> RegionVariants(const Graph& graph, const Regions& regions, const Target& cpu) {
  std::vector<RegionVariant> variants;
  for (size_t c = 0; c < kClasses; ++c) {
    Plan made = PlanOfLargestRegions(graph, regions, c, cpu);
    const auto same = [&](const RegionVariant& other) { return SameSchedules(other.plan, made); };
    if (!made.regions.empty() && std::ranges::none_of(variants, same))
      variants.push_back({c, std::move(made)});
  }
  return variants;
}

// The plan with the regions that take least by what it and its variants, measured together, took; nullopt
// where no region pays.
std::optional<Plan> WithBestRegions(const Graph& graph, const Regions& regions,
                                    const PlanMeasurement& measurement,
                                    const std::vector<RegionVariant>& variants,
                                    const std::vector<PlanMeasurement>& of_variants, CostSource& costs,
                                    const Target& cpu) {
  TILESMITH_CHECK(variants.size() == of_variants.size(), "{} variants", variants.size());
  const Taken planned = TakenBy(measurement);
  const auto seconds_in = [](const std::map<std::string, double>& taken, const std::string& name) {
    const auto found = taken.find(name);
    return found == taken.end() ? 0.0 : found->second;
  };
  std::vector<RegionCandidate> nodes(graph.size());
  for (NodeId id = 0; id < graph.size(); ++id) {
    RegionCandidate& node = nodes[id];
    node.name = graph.node(id).name;
    node.planned_seconds = seconds_in(planned.nodes, node.name);
    node.inside.resize(kClasses);
    node.must_exist = graph.IsOutput(id);
  }
  for (size_t v = 0; v < variants.size(); ++v) {
    const size_t c = variants[v].band_class;
    const Taken taken = TakenBy(of_variants[v]);
    for (const NodePlan& node : variants[v].plan.nodes) {
      if (node.region == 0) continue;
      const NodeId id = *graph.Find(node.node);
      const double levels = kRegionLevels * regions.BufferBytes(id, c) / regions.Capacity(c);
      nodes[id].inside[c] =
          RegionCandidate::Inside{seconds_in(taken.nodes, node.node),
                                  static_cast<int>(std::min<double>(levels + 0.5, 2 * kRegionLevels))};
    }
  }
  // A tensor that is written or read where it is not hot costs some of what copying it does.
  constexpr double kTouch = 0.25;
  std::vector<RegionEdge> edges;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (regions.IsFusedAway(id)) continue;
    const std::vector<NodeId>& inputs = regions.Inputs(id);
    for (size_t slot = 0; slot < inputs.size(); ++slot) {
      const NodeId from = inputs[slot];
      const Node& tensor = graph.node(from);
      if (tensor.op->Type() == "Constant" || !(regions.planned(id) || regions.planned(from))) continue;
      const NodePlan *producer = regions.planned(from), *reader = regions.planned(id);
      RegionEdge edge{.producer = from, .reader = id};
      edge.streams = true;
      for (size_t c = 0; c < kClasses; ++c)
        if (nodes[from].inside[c] && nodes[id].inside[c])
          edge.streams = edge.streams && regions.Streams(id, slot, c);
      const auto readers = static_cast<double>(regions.Readers(from).size());
      edge.planned_seconds = seconds_in(planned.conversions, tensor.name) / std::max(1.0, readers);
      const bool image = tensor.shape.size() == 4 && producer && reader;
      if (image) {
        const double touch = kTouch * costs.CopySeconds(tensor.shape, producer->layouts.out);
        const auto convert = [&](const Layout& a, const Layout& b) {
          return SameForm(tensor.shape, a, b) ? 0.0 : costs.TransformSeconds(tensor.shape, a, b);
        };
        const auto written_in = [&](const std::optional<Banded>& made) {
          return made ? made->layouts.out : producer->layouts.out;
        };
        const std::optional<Banded>&made = regions.banded(from, 0), &by = regions.banded(id, 0);
        const LayoutPair& inside = by ? by->layouts : reader->layouts;
        edge.enter_seconds = touch + convert(producer->layouts.out, regions.ReadIn(id, slot, inside));
        edge.leave_seconds = touch + convert(written_in(made), regions.ReadIn(id, slot, reader->layouts));
        edge.between_seconds = 2 * touch + convert(written_in(made), regions.ReadIn(id, slot, inside));
      }
      edges.push_back(edge);
    }
  }
  const RegionChoice choice = ChooseRegions(nodes, edges);
  if (!choice.solution.solved()) return std::nullopt;
  FormedRegions formed(regions, graph.size());
  std::set<int> cut;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const RegionMember& member = choice.members[id];
    if (member.region < 0 || cut.contains(member.region)) continue;
    // Where the region would need what others make of its results, it ends.
    if (!formed.Join(id, member.region, member.band_class)) cut.insert(member.region);
  }
  Plan made = WithRegionsThatCompile(graph, regions.Make(formed.all(), formed.classes()), cpu);
  if (made.regions.empty()) return std::nullopt;
  made.certificate += fmt::format("; regions {}{} by what ran", choice.solution.certificate,
                                  cut.empty() ? "" : ", but some cut short,");
  return made;
}

// The class of bands that the plan's region is of, as far as its height says.
size_t ClassOf(const Graph& graph, const Plan& plan, int region) {
  int64_t height = 1;
  for (const NodePlan& node : plan.nodes)
    if (node.region == region) height = graph.node(*graph.Find(node.node)).shape.at(2);
  const int64_t rows = plan.regions.at(static_cast<size_t>(region) - 1).band_rows;
  size_t nearest = 0;
  for (size_t c = 1; c < kClasses; ++c)
    if (std::abs(BandRows(height, c) - rows) < std::abs(BandRows(height, nearest) - rows)) nearest = c;
  return nearest;
}

// The least that the plan's corrections have of a node, in regions or in none.
std::optional<double> LeastLearned(const Plan& plan, const std::string& node, bool in_region) {
  std::optional<double> least;
  for (const Correction& learned : plan.corrections.All()) {
    const bool in_bands = learned.option.find(kInBandsOf) != std::string::npos;
    if (learned.of == Correction::Of::kNode && learned.name == node && in_bands == in_region)
      least = std::min(least.value_or(learned.seconds), learned.seconds);
  }
  return least;
}

// Why a node is not in the region of what it reads or, where that is in none, in one with it.
std::string WhyApart(const Graph& graph, const Plan& plan, const Regions& regions, NodeId from,
                     NodeId reader) {
  const int region = regions.RegionOf(from);
  const size_t c = region > 0 ? ClassOf(graph, plan, region) : 0;
  const std::vector<NodeId>& inputs = regions.Inputs(reader);
  for (size_t slot = 0; slot < inputs.size(); ++slot) {
    if (inputs[slot] != from) continue;
    if (std::string why = regions.WhyNotStreamed(reader, slot, c); !why.empty()) return why;
  }
  const std::string& name = graph.node(reader).name;
  FormedRegions formed(regions, graph.size());
  double bytes = region > 0 ? 0 : regions.BufferBytes(from, c);
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (id == reader && region > 0 && !formed.Join(id, region, c))
      return name + " needs what others make of the region's results";
    if (regions.RegionOf(id) == 0 || id == reader) continue;
    if (id < reader) formed.Join(id, regions.RegionOf(id), c);
    if (regions.RegionOf(id) == region && regions.banded(id, c)) bytes += regions.BufferBytes(id, c);
  }
  if (bytes > regions.Capacity(c))
    return fmt::format("without {} its buffers are estimated to take {:.0f} KiB, and {:.0f} are for them",
                       name, bytes / 1024, regions.Capacity(c) / 1024);
  const std::optional<double> inside = LeastLearned(plan, name, true),
                              outside = LeastLearned(plan, name, false);
  if (!inside || !outside) return name + " could be in it: nothing that ran so took less, or nothing ran";
  return fmt::format("{} could be in it: in one it took {:.4f} ms, and {:.4f} in none", name, *inside * 1e3,
                     *outside * 1e3);
}

// What is known of a node in a region from how that runs.
RegionFacts FactsInRegion(const Graph& graph, const Plan& plan, const Target& cpu, const NodePlan& node) {
  RegionFacts facts;
  const CompiledNetwork network = CompileOnlyRegions(graph, plan, cpu);
  for (size_t r = 0; r < network.regions.size(); ++r) {
    const Region& region = network.program.regions[r];
    if (region.number != node.region) continue;
    const std::vector<RegionStep>& steps = network.regions[r].steps;
    const RegionSchedule schedule = ScheduleRegion(steps, region.band_rows, plan.threads);
    facts.region = region.number;
    facts.band_rows = region.band_rows;
    facts.region_bytes = schedule.buffer_bytes;
    for (size_t i = 0; i < steps.size(); ++i) {
      const size_t index = static_cast<size_t>(region.first) + i;
      if (network.program.steps[index].kind != StepKind::kNode) continue;
      facts.nodes.push_back(network.steps[index].node);
      if (network.steps[index].node != node.node) continue;
      facts.is_whole = steps[i].kept;
      facts.buffer_rows = schedule.buffer_rows[i];
      facts.buffer_bytes = facts.buffer_rows * steps[i].row_bytes * steps[i].blocks;
      facts.computed_rows = schedule.step_rows[i];
      facts.result_rows = steps[i].images * steps[i].height;
    }
  }
  return facts;
}

}  // namespace

RegionFacts FactsOfRegion(const Graph& graph, const Plan& plan, const Candidates& candidates,
                          const Target& cpu, Graph::NodeId id) {
  const Regions regions(graph, plan, candidates, cpu);
  const std::string& name = graph.node(id).name;
  const int region = regions.RegionOf(id);
  RegionFacts facts;
  if (region > 0) {
    facts = FactsInRegion(graph, plan, cpu, *regions.planned(id));
  } else if (!regions.banded(id, 0)) {
    facts.apart.push_back(fmt::format("{} {}", name, regions.WhyNotBanded(id, 0)));
    return facts;
  } else {
    for (const NodeId input : regions.Inputs(id))
      if (regions.planned(input) != nullptr) facts.apart.push_back(WhyApart(graph, plan, regions, input, id));
  }
  for (const NodeId reader : regions.Readers(id))
    if (region == 0 || regions.RegionOf(reader) != region)
      facts.apart.push_back(WhyApart(graph, plan, regions, id, reader));
  if (graph.IsOutput(id)) facts.apart.push_back(fmt::format("{} is an output of the network", name));
  return facts;
}

std::string WhyNoRegions(const Graph& graph, const Plan& plan, const Candidates& candidates,
                         const Target& cpu) {
  const Regions regions(graph, plan, candidates, cpu);
  const auto found = [&](size_t c) {
    const FormedRegions formed = LargestRegions(graph, regions, c, std::vector<double>(graph.size(), 1.0));
    return !regions.Make(formed.all(), formed.classes()).regions.empty();
  };
  bool any = false;
  for (size_t c = 0; c < kClasses; ++c) any = any || found(c);
  if (!any) return "no layers that read each other could be in one";
  const bool ran = std::ranges::any_of(
      plan.nodes, [&](const NodePlan& node) { return LeastLearned(plan, node.node, true).has_value(); });
  return ran ? "plans with some ran, and took no less"
             : "none that ran took less, or none ran (--no-regions)";
}

std::vector<RivalPlan> RegionRivals(
    const Graph& graph, const Plan& plan, const Candidates& candidates, CostSource& costs, const Target& cpu,
    const std::function<std::vector<PlanMeasurement>(const std::vector<const Plan*>&)>& measure) {
  constexpr double kNear = 1.03;
  std::vector<RivalPlan> rivals;
  const Regions regions(graph, plan, candidates, cpu);
  const std::vector<RegionVariant> variants = RegionVariants(graph, regions, cpu);
  if (variants.empty()) return rivals;
  std::vector<const Plan*> plans = {&plan};
  for (const RegionVariant& variant : variants) plans.push_back(&variant.plan);
  std::vector<PlanMeasurement> measured = measure(plans);
  const PlanMeasurement of_plan = std::move(measured.front());
  measured.erase(measured.begin());
  std::optional<Plan> best = WithBestRegions(graph, regions, of_plan, variants, measured, costs, cpu);
  if (best) rivals.push_back({"regions", *std::move(best)});
  const auto fastest = std::ranges::min_element(measured, {}, &PlanMeasurement::seconds);
  const Plan& variant = variants[static_cast<size_t>(fastest - measured.begin())].plan;
  const bool is_new = rivals.empty() || !SameSchedules(rivals.front().plan, variant);
  if (is_new && fastest->seconds <= kNear * of_plan.seconds)
    rivals.push_back({"regions wherever they can be", variant});
  return rivals;
}

}  // namespace tilesmith
