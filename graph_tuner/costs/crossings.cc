#include "graph_tuner/costs/crossings.h"

#include <algorithm>

#include "layouts/base/sizes.h"
#include "ops/conv/conv.h"
#include "ops/pool/pool.h"
#include "templates/base/conv_template.h"

namespace tilesmith {
namespace {

int64_t Halo(int64_t kernel, int64_t dilation, int64_t stride) {
  return std::max<int64_t>((kernel - 1) * dilation + 1 - stride, 0);
}

Reads ReadsOfConv(const ConvWorkload& w) {
  return {.channels = w.g > 1 ? Reads::Channels::kOwn : Reads::Channels::kAll,
          .halo_rows = Halo(w.kh, w.dh + 1, w.sh)};
}

const ConvWorkload* WorkloadOf(const Graph& graph, Graph::NodeId node) {
  const auto* conv = dynamic_cast<const ConvOp*>(graph.node(node).op.get());
  return conv ? &conv->workload() : nullptr;
}

std::vector<Split> SplitsOf(const TaskGrid& grid) {
  std::vector<Split> splits;
  for (const Split split : kSplits)
    if (split != Split::kOne && grid.Can(split)) splits.push_back(split);
  return splits;
}

TaskGrid GridOf(const Record& record, const Target& cpu) {
  const ConvTemplate* conv_template = KnownConvTemplate(record.template_name);
  return conv_template ? conv_template->Grid(record.workload, record.config, cpu) : TaskGrid();
}

int64_t BusiestTasks(const TaskGrid& grid, Split split, int threads) {
  int64_t most = 0;
  for (int thread = 0; thread < threads; ++thread)
    most = std::max(most, Share(grid, split, thread, threads).tasks());
  return most;
}

}  // namespace

Reads ReadsOf(const Graph& graph, Graph::NodeId node, size_t slot) {
  const Op& op = *graph.node(node).op;
  if (const ConvWorkload* workload = WorkloadOf(graph, node))
    return slot == 0 ? ReadsOfConv(*workload) : Reads{.channels = Reads::Channels::kOwn};
  Reads reads{.even_in_price = true};
  if (const auto* pool = dynamic_cast<const PoolOp*>(&op)) {
    const PoolWindow& window = pool->window();
    reads.channels = Reads::Channels::kOwn;
    reads.halo_rows = Halo(window.kh, window.dh, window.sh);
  } else if (op.Type() == "Concat") {
    reads.channels = Reads::Channels::kShifted;
  } else if (op.InPlaceOk(static_cast<int>(slot)) || dynamic_cast<const GlobalPoolOp*>(&op) != nullptr ||
             op.Type() == "Resize") {
    reads.channels = Reads::Channels::kOwn;
  }
  return reads;
}

Reads ReadsOfFused(const Graph& graph, Graph::NodeId first, Graph::NodeId conv) {
  Reads reads;
  for (const Graph::NodeId node : {first, conv})
    if (const ConvWorkload* workload = WorkloadOf(graph, node))
      reads.halo_rows = std::max(reads.halo_rows, ReadsOfConv(*workload).halo_rows);
  return reads;
}

int64_t CrossingBytes(const Shape& shape, Split written, Split read, const Reads& reads, int threads) {
  if (threads == 1 || (read == Split::kEven && reads.even_in_price)) return 0;
  const int64_t bytes = (Checked(ElementCount(shape)) * int64_t{sizeof(float)}).value();
  const auto others = [&](int64_t of) { return of - of / threads; };
  const int64_t share = CeilDiv(bytes, threads);
  const bool one_wrote = written == Split::kOne;
  if (read == Split::kOne) return one_wrote ? 0 : others(bytes);
  const bool reads_all = read == Split::kEven || read == Split::kChannels;
  if (reads_all && reads.channels == Reads::Channels::kAll) return one_wrote ? bytes : others(bytes);
  if (read == Split::kRows && written == Split::kRows) {
    const int64_t height = shape.size() > 2 ? std::max<int64_t>(shape[2], 1) : 1;
    // Of two threads each has one neighbour, and half of the halo.
    const int64_t rows = threads > 2 ? reads.halo_rows : (reads.halo_rows + 1) / 2;
    return bytes / height * std::min(rows, height);
  }
  const bool same = read == written &&
                    (read != Split::kChannels || reads.channels == Reads::Channels::kOwn) &&
                    read != Split::kEven;
  return same ? 0 : one_wrote ? share : others(share);
}

double CrossingSeconds(const Node& tensor, Split written, Split read, const Reads& reads, const Team& team,
                       CostSource& costs) {
  if (tensor.type != DataType::kF32) return 0;
  const int64_t bytes = CrossingBytes(tensor.shape, written, read, reads, team.threads);
  return bytes > 0 ? costs.CrossingSeconds(bytes) : 0;
}

std::vector<Split> SplitsOf(const Record& record, const Team& team) {
  if (team.threads == 1 || !team.splits) return {Split::kEven};
  return SplitsOf(GridOf(record, team.cpu));
}

std::vector<Split> SplitsOf(const Graph& graph, Graph::NodeId id, const Layout& layout, const Team& team) {
  const Node& node = graph.node(id);
  if (node.op->Type() == "Input") return {team.threads == 1 ? Split::kEven : Split::kOne};
  const std::vector<Shape> inputs = graph.InputShapes(id);
  const bool floats =
      node.type == DataType::kF32 &&
      std::ranges::all_of(graph.InputTypes(id), [](DataType t) { return t == DataType::kF32; });
  if (team.threads == 1 || !team.splits || !floats || node.shape.size() != 4 || node.op->IsView() ||
      !node.op->HasFastKernel())
    return {Split::kEven};
  const auto kernel = MakeOpKernel(*node.op, {inputs, node.shape, layout, team.cpu});
  return SplitsOf(kernel->Grid(kernel->Stages() - 1));
}

double SplitFactor(const Record& record, Split split, const Team& team) {
  if (split == Split::kEven || team.threads == 1) return 1;
  const TaskGrid grid = GridOf(record, team.cpu);
  const int64_t even = BusiestTasks(grid, Split::kEven, team.threads);
  if (even == 0) return 1;
  return std::max(1.0,
                  static_cast<double>(BusiestTasks(grid, split, team.threads)) / static_cast<double>(even));
}

}  // namespace tilesmith
