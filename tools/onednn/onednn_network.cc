#include "tools/onednn/onednn_network.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/base/op.h"
#include "ops/conv/conv.h"
#include "ops/quantize/quantized_conv.h"
#include "templates/cpu_device/cpu_device.h"
#include "tools/onednn/onednn_twin.h"

namespace tilesmith {
namespace {

using Twin = std::unique_ptr<OneDnnPrimitive>;

// The order in which a layout-tolerant node gets its first input, and the type of floats that arrive.
Layout ArrivingLayout(const OneDnnPrimitive& producer) {
  const std::string name = producer.OutputLayoutName();
  const Layout order = name == "plain" || name == "other" ? Layout::Nchw() : Layout::Parse(name);
  return producer.OutputType() == DataType::kBf16 ? order.WithType(DataType::kBf16) : order;
}

class Assembler {
 public:
  Assembler(const Graph& graph, const OneDnnChoice& choice, const Target& cpu, const EndLayouts& ends,
            DataType floats, std::vector<OneDnnNetwork::Step>& nodes)
      : graph_(graph), choice_(choice), cpu_(cpu), ends_(ends), floats_(floats), nodes_(nodes) {}

  Twin Make(Graph::NodeId id, std::string* refusal) const {
    const Op& op = *graph_.node(id).op;
    const auto inputs = graph_.Inputs(id);
    if (const DataType type = graph_.node(id).type; !IsFloating(type) && !IsByte(type)) {
      *refusal = fmt::format("no oneDNN twin of {}, which is of {} and not of floats or bytes",
                             op.Signature(), DataTypeName(type));
      return nullptr;
    }
    if (dynamic_cast<const InputOp*>(&op) != nullptr)
      return MakeOneDnnBuffer(graph_.node(id).shape, EndLayout(graph_.node(id), ends_.inputs));
    if (const auto* constant = dynamic_cast<const ConstantOp*>(&op)) return MakeConstant(*constant, refusal);
    if (op.IsView()) return MakeView(id);
    if (const auto* conv = dynamic_cast<const ConvOp*>(&op)) return MakeConv(*conv, id, refusal);
    if (const auto* conv = dynamic_cast<const QuantizedConvOp*>(&op))
      if (auto twin = OneDnnConv::Create(*conv, refusal)) return Connected(std::move(twin), id);
    return MakeOther(op, id, refusal);
  }

 private:
  Twin MakeView(Graph::NodeId id) const {
    const Graph::NodeId input = graph_.Inputs(id)[0];
    const ViewLayouts layouts = graph_.node(id).op->LayoutsOfView();
    const DataType type = nodes_[input].twin->OutputType();
    Twin twin = MakeOneDnnView(graph_.node(input).shape, layouts.in.WithType(type), graph_.node(id).shape,
                               layouts.out.WithType(type));
    twin->Connect(0, *nodes_[input].twin);
    return twin;
  }

  // A layer that is fully connected, which oneDNN has a primitive of its own for.
  static bool IsInnerProduct(const ConvWorkload& w) {
    return w.g == 1 && w.ih * w.iw == 1 && w.oh * w.ow == 1 && w.kh * w.kw == 1 && !w.post.sum;
  }

  Twin MakeConv(const ConvOp& op, Graph::NodeId id, std::string* refusal) const {
    const ConvWorkload& workload = op.workload();
    const ConvParams params{op.weights()->floats(), op.bias() == nullptr ? nullptr : op.bias()->floats()};
    if (IsInnerProduct(workload)) {
      const OneDnnInnerProduct product = {workload.mb,    workload.ic, workload.oc,
                                          params.weights, params.bias, workload.post.activation};
      Twin dense = MakeOneDnnInnerProduct(product, refusal, floats_);
      if (dense == nullptr) dense = MakeOneDnnInnerProduct(product, refusal);
      if (dense != nullptr) dense->Connect(0, *nodes_[graph_.Inputs(id)[0]].twin);
      return dense;
    }
    auto conv = OneDnnConv::Create(workload, choice_(workload), params, refusal, floats_);
    if (conv == nullptr) conv = OneDnnConv::Create(workload, OneDnnAlgorithm::kDirect, params, refusal);
    if (conv == nullptr) return nullptr;
    return Connected(std::move(conv), id);
  }

  Twin Connected(std::unique_ptr<OneDnnConv> conv, Graph::NodeId id) const {
    const auto inputs = graph_.Inputs(id);
    conv->Connect(0, *nodes_[inputs[0]].twin);
    if (inputs.size() > 1) conv->ConnectResidual(*nodes_[inputs[1]].twin, IsLastUse(inputs[1], id));
    return conv;
  }

  static Twin MakeConstant(const ConstantOp& op, std::string* refusal) {
    const Tensor& value = *op.value();
    if (value.shape().empty() || value.shape().size() > 5) {
      *refusal = fmt::format("no oneDNN buffer for a constant of shape {}", ShapeToString(value.shape()));
      return nullptr;
    }
    Twin twin = MakeOneDnnBuffer(value.shape(), Layout::Nchw(value.type()));
    twin->SetInput(0, value);
    return twin;
  }

  // A twin in the layout and type its input arrives in; where oneDNN has none there, in NCHW, or of f32; a
  // guest where it has none at all.
  Twin MakeOther(const Op& op, Graph::NodeId id, std::string* refusal) const {
    const auto inputs = graph_.Inputs(id);
    if (inputs.empty()) {
      *refusal = fmt::format("no oneDNN twin of {}", op.Signature());
      return nullptr;
    }
    const Layout arriving = ArrivingLayout(*nodes_[inputs[0]].twin);
    std::vector<Layout> orders = {arriving};
    for (const Layout& order :
         {Layout::Nchw(arriving.type()), arriving.WithType(DataType::kF32), Layout::Nchw()})
      if (std::ranges::find(orders, order) == orders.end()) orders.push_back(order);
    Twin twin;
    for (size_t i = 0; twin == nullptr && i < orders.size(); ++i) twin = MakeTwinOf(id, orders[i], refusal);
    for (size_t i = 0; twin == nullptr && i < orders.size(); ++i) twin = MakeGuestOf(id, orders[i], refusal);
    if (twin == nullptr) return nullptr;
    for (size_t slot = 0; slot < inputs.size(); ++slot) {
      twin->Connect(static_cast<int>(slot), *nodes_[inputs[slot]].twin);
    }
    return twin;
  }

  // oneDNN's twins have one type for all that they read and write.
  Twin MakeTwinOf(Graph::NodeId id, const Layout& order, std::string* refusal) const {
    const Node& node = graph_.node(id);
    const std::vector<DataType> types = graph_.InputTypes(id);
    if (std::ranges::any_of(types, [&](DataType type) { return type != node.type; })) {
      *refusal = fmt::format("no oneDNN twin of {}, which changes types", node.op->Signature());
      return nullptr;
    }
    return MakeOneDnnTwin(*node.op, graph_.InputShapes(id), TensorLayout(node, order), refusal);
  }

  Twin MakeGuestOf(Graph::NodeId id, const Layout& order, std::string* refusal) const {
    const Node& node = graph_.node(id);
    const std::vector<Shape> shapes = graph_.InputShapes(id);
    const bool all_4d = node.shape.size() == 4 &&
                        std::ranges::all_of(shapes, [](const Shape& shape) { return shape.size() == 4; });
    if ((!order.is_nchw() && !all_4d) || !NodeRunsIn(graph_, id, order)) return nullptr;
    std::vector<DataType> types = graph_.InputTypes(id);
    std::ranges::replace(types, DataType::kF32, order.type());
    const KernelRequest request = {shapes, node.shape, TensorLayout(node, order), cpu_, std::move(types)};
    return MakeGuest(BuildHostOp(*node.op, request), request, refusal);
  }

  // Whether the memory of `node`'s value may be written by its consumer `user`. Values that views or
  // residuals share with other nodes are left alone.
  bool IsLastUse(Graph::NodeId node, Graph::NodeId user) const {
    const Op& op = *graph_.node(node).op;
    const bool given =
        dynamic_cast<const InputOp*>(&op) != nullptr || dynamic_cast<const ConstantOp*>(&op) != nullptr;
    if (graph_.IsOutput(node) || op.IsView() || given) return false;
    for (const Graph::NodeId consumer : graph_.Consumers(node)) {
      if (consumer > user || graph_.node(consumer).op->IsView()) return false;
    }
    return graph_.Inputs(user)[0] != node;
  }

  const Graph& graph_;
  const OneDnnChoice& choice_;
  const Target& cpu_;
  const EndLayouts& ends_;
  DataType floats_;
  const std::vector<OneDnnNetwork::Step>& nodes_;
};

}  // namespace

std::unique_ptr<OneDnnNetwork> OneDnnNetwork::Create(const Graph& graph, const OneDnnChoice& choice,
                                                     const Target& cpu, const EndLayouts& ends,
                                                     std::string* refusal, DataType floats) {
  auto network = std::make_unique<OneDnnNetwork>();
  const Assembler assembler(graph, choice, cpu, ends, floats, network->nodes_);
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    std::string reason;
    Twin twin = assembler.Make(id, &reason);
    if (twin == nullptr) {
      if (refusal != nullptr) *refusal = fmt::format("node \"{}\": {}", graph.node(id).name, reason);
      return nullptr;
    }
    network->nodes_.push_back({graph.node(id).name, std::move(twin)});
    network->ops_.push_back(graph.node(id).op);
  }
  network->inputs_ = graph.GraphInputs();
  for (const Graph::NodeId id : graph.outputs()) {
    const Node& node = graph.node(id);
    network->outputs_.push_back(MakeOneDnnBuffer(node.shape, EndLayout(node, ends.outputs)));
    network->outputs_.back()->Connect(0, *network->nodes_[id].twin);
  }
  return network;
}

std::vector<std::string> OneDnnNetwork::GuestTypes() const {
  std::vector<std::string> types;
  for (size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].twin->IsGuest()) types.emplace_back(ops_[i]->Type());
  return types;
}

void OneDnnNetwork::Run(const StopFlag* stop) {
  const OneDnnTurn turn;
  for (const Step& node : nodes_) {
    ThrowIfStopped(stop);
    node.twin->Run();
  }
  for (const auto& output : outputs_) output->Run();
}

}  // namespace tilesmith
