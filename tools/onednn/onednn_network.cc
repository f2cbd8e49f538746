#include "tools/onednn/onednn_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "layouts/base/check.h"
#include "ops/base/op.h"
#include "ops/base/quantization.h"
#include "ops/conv/conv.h"
#include "ops/dense/softmax.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/binary.h"
#include "ops/movement/concat.h"
#include "ops/pool/pool.h"
#include "ops/pool/quantized_pool.h"
#include "ops/quantize/quantized_conv.h"
#include "templates/cpu_device/cpu_device.h"

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

using Twin = std::unique_ptr<OneDnnPrimitive>;

Twin Refuse(std::string* refusal, std::string reason) {
  if (refusal != nullptr) *refusal = std::move(reason);
  return nullptr;
}

Twin MakePool(const PoolWindow& w, const Shape& input, const Shape& output, const Layout& layout,
              std::string* refusal) {
  const bool padded = w.top != 0 || w.left != 0 || w.bottom != 0 || w.right != 0;
  if (w.kind == PoolKind::kAverage && w.count_include_pad && w.ceil_mode && padded) {
    return Refuse(refusal, "oneDNN counts the padding that rounding up adds, ONNX does not");
  }
  OneDnnPool pool{.input = input, .output = output};
  pool.max = w.kind == PoolKind::kMax;
  pool.count_include_pad = w.count_include_pad && padded;
  pool.kh = w.kh;
  pool.kw = w.kw;
  pool.sh = w.sh;
  pool.sw = w.sw;
  pool.ph = w.top;
  pool.pw = w.left;
  pool.dh = w.dh - 1;
  pool.dw = w.dw - 1;
  return MakeOneDnnPool(pool, layout, refusal);
}

Twin MakeGlobalPool(const GlobalPoolOp& op, const Shape& input, const Layout& layout, std::string* refusal) {
  OneDnnPool pool{.input = input, .output = {input[0], input[1], 1, 1}};
  pool.max = op.kind() == PoolKind::kMax;
  pool.kh = input[2];
  pool.kw = input[3];
  return MakeOneDnnPool(pool, layout, refusal);
}

// Which input of a multiplication is [N, C, 1, 1], the other one being [N, C, H, W].
std::optional<int> GateSlot(const BinaryOp* binary, std::span<const Shape> inputs) {
  if (binary == nullptr || binary->kind() != BinaryKind::kMul || inputs.size() != 2) return std::nullopt;
  for (const int slot : {1, 0}) {
    const Shape &gate = inputs[slot], &data = inputs[1 - slot];
    if (data.size() == 4 && data != gate && gate == Shape{data[0], data[1], 1, 1}) return slot;
  }
  return std::nullopt;
}

bool AllEqual(std::span<const Shape> shapes) {
  return std::ranges::all_of(shapes, [&](const Shape& shape) { return shape == shapes[0]; });
}

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

Twin MakeOneDnnTwin(const Op& op, std::span<const Shape> inputs, const Layout& layout, std::string* refusal) {
  TILESMITH_CHECK(!inputs.empty(), "{}", op.Signature());
  const Shape& input = inputs[0];
  if (const auto* softmax = dynamic_cast<const SoftmaxOp*>(&op)) {
    if (layout.type() == DataType::kF32 && softmax->first_axis() == softmax->last_axis() &&
        !softmax->logarithm()) {
      return MakeOneDnnSoftmax(input, static_cast<int>(softmax->first_axis()), refusal);
    }
    return Refuse(refusal, "oneDNN's softmax has one axis, and is asked for in f32 alone");
  }
  if (op.IsView()) return Refuse(refusal, fmt::format("{} moves no data", op.Type()));
  if (input.size() != 4 && !layout.is_nchw()) {
    return Refuse(refusal, fmt::format("rank {} has no {}", input.size(), layout.ToString()));
  }
  if (const auto* pool = dynamic_cast<const QuantizedMaxPoolOp*>(&op))
    return MakePool(pool->window(), input, pool->InferShape(inputs), layout, refusal);
  if (const auto* concat = dynamic_cast<const ConcatOp*>(&op); concat != nullptr && concat->axis() == 1) {
    return MakeOneDnnConcat(inputs, layout, refusal);
  }
  if (IsByte(layout.type()))
    return Refuse(refusal, fmt::format("no oneDNN twin of {} in {}", op.Signature(), layout.ToString()));
  if (const auto* pool = dynamic_cast<const PoolOp*>(&op))
    return MakePool(pool->window(), input, pool->InferShape(inputs), layout, refusal);
  if (const auto* pool = dynamic_cast<const GlobalPoolOp*>(&op)) {
    return MakeGlobalPool(*pool, input, layout, refusal);
  }
  if (const auto* activation = dynamic_cast<const ActivationOp*>(&op)) {
    return MakeOneDnnActivation(input, activation->activation(), layout, refusal);
  }
  if (const auto* scale = dynamic_cast<const ScaleShiftOp*>(&op)) {
    return MakeOneDnnScaleShift(input, {scale->scale().data(), scale->shift().data(), scale->activation()},
                                layout, refusal);
  }
  const auto* binary = dynamic_cast<const BinaryOp*>(&op);
  if (const std::optional<int> slot = GateSlot(binary, inputs); slot.has_value()) {
    return MakeOneDnnGate(inputs[1 - *slot], *slot, layout, refusal);
  }
  const bool adds =
      dynamic_cast<const SumOp*>(&op) != nullptr || (binary != nullptr && binary->kind() == BinaryKind::kAdd);
  if (adds && AllEqual(inputs)) {
    return MakeOneDnnSum(input, static_cast<int>(inputs.size()), {}, layout, refusal);
  }
  return Refuse(refusal, fmt::format("no oneDNN twin of {}", op.Signature()));
}

}  // namespace tilesmith
