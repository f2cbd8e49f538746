#include "graph_tuner/plan/crossings.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "graph_tuner/costs/layout_forms.h"
#include "graph_tuner/plan/concat_slices.h"
#include "graph_tuner/plan/plan.h"
#include "layouts/base/sizes.h"
#include "ops/graph/end_layouts.h"
#include "templates/base/conv_template.h"

namespace tilesmith {

double TolerantSeconds(const Graph& graph, Graph::NodeId id, const Layout& layout, CostSource& costs) {
  const Node& node = graph.node(id);
  if (node.op->Type() == "Input" || node.op->IsView() || ConcatIsSliceable(graph, id, layout)) return 0;
  std::vector<DataType> types = graph.InputTypes(id);
  const bool floats = node.type == DataType::kF32 &&
                      std::ranges::all_of(types, [](DataType type) { return type == DataType::kF32; });
  if (floats && layout.type() == DataType::kF32)
    return costs.OpSeconds({node.op, graph.InputShapes(id), node.shape, layout});
  if (floats) {
    types.assign(types.size(), layout.type());
    return costs.OpSeconds(
        {node.op, graph.InputShapes(id), node.shape, layout, std::move(types), layout.type()});
  }
  // With one layout only there is nothing to choose; plans correct the time by what they measure.
  if (!node.op->AnyTypeInAnyLayout() || !node.op->KernelTakes(types)) return 0;
  return costs.OpSeconds({node.op, graph.InputShapes(id), node.shape, layout.WithType(DataType::kF32),
                          std::move(types), node.type});
}

double FillSeconds(const Shape& shape, const Layout& from, const Layout& to, CostSource& costs) {
  return SameForm(shape, from, to) ? costs.CopySeconds(shape, to) : costs.TransformSeconds(shape, from, to);
}

namespace {

using NodeId = Graph::NodeId;

constexpr Split kAlongAxes[] = {Split::kRows, Split::kChannels, Split::kImages};

Owner OwnerBy(Split split) {
  switch (split) {
    case Split::kRows:
      return Owner::kRows;
    case Split::kChannels:
      return Owner::kChannels;
    case Split::kImages:
      return Owner::kImages;
    case Split::kOne:
      return Owner::kOne;
    case Split::kEven:
      break;
  }
  return Owner::kMixed;
}

// The part of thread `thread`; nothing where that is nothing, or cannot be said.
std::optional<Box> PartOfThread(Owner owner, int thread, int threads) {
  const AxisPart part = {static_cast<double>(thread) / threads, static_cast<double>(thread + 1) / threads};
  if (owner == Owner::kRows) return Box{.rows = part};
  if (owner == Owner::kChannels) return Box{.channels = part};
  if (owner == Owner::kImages) return Box{.images = part};
  return owner == Owner::kOne && thread == 0 ? std::optional(Box{}) : std::nullopt;
}

double BoxVolume(const Box& box) { return box.images.size() * box.channels.size() * box.rows.size(); }

double VolumeInBoth(const Box& a, const Box& b) {
  const auto both = [](const AxisPart& p, const AxisPart& q) {
    return std::max(0.0, std::min(p.end, q.end) - std::max(p.begin, q.begin));
  };
  return both(a.images, b.images) * both(a.channels, b.channels) * both(a.rows, b.rows);
}

// Whose the results of even shares are, if nearly all of every share lies in the thread's part.
Owner OwnerOfEven(const TaskGrid& grid, int threads) {
  constexpr double kNearly = 0.1;
  if (grid.height == 0) return Owner::kMixed;
  std::vector<std::vector<Box>> shares;
  shares.reserve(static_cast<size_t>(threads));
  for (int thread = 0; thread < threads; ++thread)
    shares.push_back(BoxesOf(grid, Split::kEven, thread, threads));
  for (const Split split : kAlongAxes) {
    double outside = 0;
    for (int thread = 0; thread < threads && outside <= kNearly; ++thread) {
      const Box part = *PartOfThread(OwnerBy(split), thread, threads);
      outside += VolumeOutside(shares[static_cast<size_t>(thread)], {&part, 1});
    }
    if (outside <= kNearly) return OwnerBy(split);
  }
  return Owner::kMixed;
}

double BusiestTasks(const TaskGrid& grid, Split split, int threads) {
  int64_t most = 0;
  for (int thread = 0; thread < threads; ++thread)
    most = std::max(most, Share(grid, split, thread, threads).tasks());
  return static_cast<double>(most);
}

// The bytes of the node's tensor, stored in its own type.
double SizeOf(const Node& node, const Layout& layout) {
  return static_cast<double>(PaddedBytes(node.shape, TensorLayout(node, layout)));
}

}  // namespace

TaskGrid GridInMemory(const Shape& shape, const Layout& layout) {
  if (shape.size() != 4) return TaskGrid::List(1);
  const int64_t channels = shape[1], height = shape[2];
  return {.images = shape[0],
          .channels = CeilDiv(channels, std::max<int64_t>(layout.BlockFor(channels), 1)),
          .rows = height,
          .height = height};
}

Box InputOf(const ConvWorkload& w, const Box& out) {
  const auto groups = static_cast<double>(w.g), ih = static_cast<double>(w.ih);
  const auto sh = static_cast<double>(w.sh), oh = static_cast<double>(w.oh);
  const auto reach = static_cast<double>((w.kh - 1) * (w.dh + 1) + 1 - w.ph - w.sh);
  Box in = out;
  in.channels = {std::floor(out.channels.begin * groups) / groups,
                 std::ceil(out.channels.end * groups) / groups};
  in.rows = {std::clamp((out.rows.begin * oh * sh - static_cast<double>(w.ph)) / ih, 0.0, 1.0),
             std::clamp((out.rows.end * oh * sh + reach) / ih, 0.0, 1.0)};
  return in;
}

Crossings::Crossings(const Graph& graph, CostSource& costs, const Target& cpu, int threads, bool even_only,
                     const CorePlacement& at)
    : graph_(graph),
      costs_(costs),
      prices_(costs.PricesOfCrossing().At(at)),
      near_prices_(costs.PricesOfCrossing().Nearest()),
      cpu_(cpu),
      threads_(threads),
      even_only_(even_only),
      priced_(threads > 1 && prices_.Seconds(Crossing::kRead, 1 << 20) > 0) {}

Crossings::GridDeals& Crossings::DealsKnownOf(const TaskGrid& grid) {
  return deals_[{grid.images, grid.channels, grid.rows, grid.channels_inner, grid.height, grid.row_units,
                 grid.part_units}];
}

Deal Crossings::DealOf(const TaskGrid& grid, Split split) {
  if (!priced_) return {{Owner::kCaller, split}, 1};
  const auto [known, is_new] = DealsKnownOf(grid).by_split.try_emplace(split);
  Deal& deal = known->second;
  if (!is_new) return deal;
  if (split == Split::kEven || !grid.Can(split))
    deal = {{OwnerOfEven(grid, threads_), split}, 1};
  else
    deal = {{OwnerBy(split), split},
            BusiestTasks(grid, split, threads_) / std::max(1.0, BusiestTasks(grid, Split::kEven, threads_))};
  return deal;
}

const std::vector<Deal>& Crossings::DealsOf(const TaskGrid& grid) {
  constexpr double kMaxBalance = 1.5;
  std::vector<Deal>& deals = DealsKnownOf(grid).considered;
  if (!deals.empty()) return deals;
  const Deal even = DealOf(grid, Split::kEven);
  bool replaced = false;
  for (const Split split : kAlongAxes) {
    if (!priced_ || even_only_ || !grid.Can(split)) continue;
    Deal deal = DealOf(grid, split);
    if (deal.balance > kMaxBalance) continue;
    deal.as_even = deal.ownership.owner == even.ownership.owner && deal.balance <= 1;
    deals.push_back(deal);
    replaced = replaced || deal.as_even;
  }
  if (!replaced) deals.insert(deals.begin(), even);
  return deals;
}

std::vector<Deal> Crossings::DealsOf(const Record& record) {
  if (!priced_) return {Deal{}};
  return DealsOf(FindConvTemplate(record.template_name).Grid(record.workload, record.config, cpu_));
}

Deal Crossings::DealOf(const Record& record, Split split) {
  if (!priced_) return {{Owner::kCaller, split}, 1};
  return DealOf(FindConvTemplate(record.template_name).Grid(record.workload, record.config, cpu_), split);
}

TaskGrid Crossings::GridOfOp(NodeId id, const Layout& layout) const {
  const Node& node = graph_.node(id);
  return GridInMemory(node.op->DealsByInput(layout) ? graph_.InputShapes(id)[0] : node.shape, layout);
}

// Slices are their writers'. Said to be dealt by rows, a concat is one whose slices all are, and those that
// are not are charged as if it read them; else nobody can say.
Deal Crossings::DealOf(NodeId id, const Layout& layout, Split split) {
  const Op& op = *graph_.node(id).op;
  if (!priced_ || op.Type() == "Input") return {{Owner::kCaller, split}, 1};
  const bool sliceable = ConcatIsSliceable(graph_, id, layout);
  const bool no_place = op.IsView() || (!op.HasFastKernel() && !sliceable);
  const TaskGrid grid = no_place ? TaskGrid::List(1) : GridOfOp(id, layout);
  if (!sliceable) return DealOf(grid, split);
  const bool along = (split == Split::kRows || split == Split::kImages) && grid.Can(split);
  return {{along ? OwnerBy(split) : Owner::kMixed, split}, 1};
}

std::vector<Deal> Crossings::DealsOf(NodeId id, const Layout& layout) {
  const Op& op = *graph_.node(id).op;
  const Deal even = DealOf(id, layout, Split::kEven);
  if (!priced_ || op.Type() == "Input" || op.IsView()) return {even};
  const TaskGrid grid = GridOfOp(id, layout);
  if (!ConcatIsSliceable(graph_, id, layout)) return op.HasFastKernel() ? DealsOf(grid) : std::vector{even};
  std::vector<Deal> deals = {even};
  for (const Split split : {Split::kRows, Split::kImages})
    if (!even_only_ && grid.Can(split)) deals.push_back(DealOf(id, layout, split));
  return deals;
}

double Crossings::OwnSeconds(NodeId id, const Layout& layout, const Deal& deal) {
  return TolerantSeconds(graph_, id, layout, costs_) * deal.balance;
}

// As a share of the tensor's volume, for the thread that reads most of what others wrote.
double Crossings::CrossedShare(const TensorRead& read, Owner written) const {
  const Shape &in = graph_.node(read.tensor).shape, &out = graph_.node(read.reader).shape;
  const bool images = in.size() == 4 && out.size() == 4 && in[0] == out[0];
  constexpr double kRounding = 1e-9;
  const double equal = 1.0 / threads_;
  double most = 0;
  for (int thread = 0; thread < threads_; ++thread) {
    std::optional<Box> part = PartOfThread(read.owner, thread, threads_);
    if (!part && read.owner == Owner::kOne) continue;
    double volume = 1, own = equal;  // of all, an equal share is its own
    if (part && read.conv != nullptr) {
      part = InputOf(*read.conv, *part);
    } else if (part && in != out) {
      if (!images) part = Box{};
      if (images && in[1] != out[1]) part->channels = {};
    } else if (!part && read.conv == nullptr) {
      volume = equal, own = equal * equal;  // a share, whoever's part it lies in
    }
    if (part) {
      volume = BoxVolume(*part);
      const std::optional<Box> owned = PartOfThread(written, thread, threads_);
      own = written == Owner::kMixed ? volume * equal : owned ? VolumeInBoth(*part, *owned) : 0;
    }
    most = std::max(most, volume - own);
  }
  return most > kRounding ? most : 0;
}

Owner Crossings::OwnerRead(const TensorRead& read) {
  const Shape& shape = graph_.node(read.tensor).shape;
  if (!read.moved && SameForm(shape, read.from, read.to)) return read.written.owner;
  // Whichever of the layouts that are one form of the tensor the reader calls it.
  const Layout to = CanonicalLayout(shape, read.to);
  return DealOf(GridInMemory(shape, to), read.written.split).ownership.owner;
}

double Crossings::ReadSeconds(const TensorRead& read, Owner written) {
  if (!priced_ || written == Owner::kCaller || graph_.node(read.reader).op->IsView()) return 0;
  const double bytes = SizeOf(graph_.node(read.tensor), read.to);
  return prices_.Seconds(Crossing::kRead, CrossedShare(read, written) * bytes);
}

double Crossings::WriteSeconds(NodeId id, const Layout& layout, const Ownership& ownership) {
  const Shape& shape = graph_.node(id).shape;
  if (!priced_ || shape.size() != 4) return 0;
  const Owner owner = ownership.owner;
  if (owner != Owner::kRows && owner != Owner::kChannels && owner != Owner::kImages) return 0;
  const TaskGrid grid = GridInMemory(shape, layout);
  const Owner along = grid.images > 1 ? Owner::kImages : grid.channels > 1 ? Owner::kChannels : Owner::kRows;
  if (owner == along) return 0;
  const double share = SizeOf(graph_.node(id), layout) / threads_;
  return prices_.Seconds(Crossing::kWrite, share * (threads_ - 1) / threads_);
}

double Crossings::ConversionSeconds(NodeId id, const Layout& from, const Layout& to,
                                    const Ownership& written) {
  if (!priced_ || written.owner == Owner::kCaller) return 0;
  TensorRead read{.tensor = id, .reader = id, .written = written, .from = from, .to = to, .moved = true};
  read.owner = OwnerRead(read);
  const double bytes = CrossedShare(read, written.owner) * SizeOf(graph_.node(id), to);
  return std::max(0.0,
                  prices_.Seconds(Crossing::kRead, bytes) - near_prices_.Seconds(Crossing::kRead, bytes));
}

double Crossings::WeightsShare(const TaskGrid& grid, Split split) {
  const auto [known, is_new] = DealsKnownOf(grid).weights.try_emplace(split);
  double& most = known->second;
  if (!is_new || grid.height == 0) return most;
  for (int thread = 0; thread < threads_; ++thread) {
    std::vector<Box> boxes = BoxesOf(grid, split, thread, threads_);
    for (Box& box : boxes) box.images = box.rows = {};
    most = std::max(most, VolumeOutside(boxes, {}) - 1.0 / threads_);
  }
  return most;
}

double Crossings::WeightSeconds(const Record& record, Split split) {
  if (!priced_ || !record.conditions.cold_weights) return 0;
  const TaskGrid grid = FindConvTemplate(record.template_name).Grid(record.workload, record.config, cpu_);
  const double bytes = PackedWeightBytes(record, cpu_);
  const double measured = near_prices_.Seconds(Crossing::kWeights, WeightsShare(grid, Split::kEven) * bytes);
  return std::max(0.0, prices_.Seconds(Crossing::kWeights, WeightsShare(grid, split) * bytes) - measured);
}

}  // namespace tilesmith
