#include "tools/report/network_view.h"

#include <map>
#include <string>

#include "graph_tuner/costs/layout_forms.h"
#include "graph_tuner/executor/schedule.h"

namespace tilesmith {
namespace {

using Json = nlohmann::ordered_json;
using NodeId = Graph::NodeId;

// Bytes of a conv's tensors, each touched once: what it has to move at least.
double BytesOf(const ConvWorkload& workload) {
  const auto elements = [](const Shape& shape) {
    double count = 1;
    for (const int64_t size : shape) count *= static_cast<double>(size);
    return count;
  };
  double floats = elements(workload.input_shape()) + elements(workload.output_shape()) +
                  elements(workload.weights_shape());
  if (workload.post.sum) floats += elements(workload.output_shape());
  for (const ConvWorkload& before : workload.before) floats += elements(before.weights_shape());
  return floats * static_cast<double>(sizeof(float));
}

Json RecordJson(const Record& record) {
  Json config = Json::object();
  for (const auto& [knob, value] : record.config.knobs()) config[knob] = value;
  return {{"workload", WorkloadToString(record.workload)},
          {"template", record.template_name},
          {"config", std::move(config)},
          {"flops", record.workload.flops()},
          {"bytes", BytesOf(record.workload)},
          {"stand_alone_seconds", record.seconds > 0 ? Json(record.seconds) : Json()}};
}

// What was measured, by what it is of.
struct MeasuredSteps {
  std::map<std::string, double> nodes, transforms;  // by the node's name, by the step's

  explicit MeasuredSteps(const std::vector<Json>& steps) {
    for (const Json& step : steps) {
      if (!step["seconds"].is_number() || !step["node"].is_string() || !step["name"].is_string()) continue;
      const std::string& name = step["name"].get_ref<const std::string&>();
      const std::string& node = step["node"].get_ref<const std::string&>();
      const bool converts = name != node && !name.ends_with(">" + node);
      (converts ? transforms[name] : nodes[node]) += step["seconds"].get<double>();
    }
  }
};

Json Found(const std::map<std::string, double>& seconds, const std::string& name) {
  const auto found = seconds.find(name);
  return found == seconds.end() ? Json() : Json(found->second);
}

Json NodeJson(const NodePlan& plan, const MeasuredSteps& measured) {
  Json node = {{"name", plan.node}, {"op", plan.op_type}};
  if (plan.fused_into.empty()) {
    node["layouts"] = {plan.layouts.in.ToString(), plan.layouts.out.ToString()};
  } else {
    node["fused_into"] = plan.fused_into;
  }
  node["predicted_seconds"] = plan.predicted_seconds;
  node["measured_seconds"] = Found(measured.nodes, plan.node);
  if (plan.record) node.update(RecordJson(*plan.record));
  return node;
}

Json TransformJson(const TransformPlan& transform, const MeasuredSteps& measured) {
  const std::string from = transform.from.ToString(), to = transform.to.ToString();
  return {{"tensor", transform.tensor},
          {"from", from},
          {"to", to},
          {"predicted_seconds", transform.predicted_seconds},
          {"measured_seconds", Found(measured.transforms, transform.tensor + ": " + from + " -> " + to)}};
}

// Every node but constants and what no output needs, numbered in the graph's order.
std::map<NodeId, int64_t> ShownNodes(const Graph& graph, const std::vector<NodeSchedule>& schedules) {
  std::map<NodeId, int64_t> numbers;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (!schedules[id].live || graph.node(id).op->Type() == "Constant") continue;
    numbers.emplace(id, static_cast<int64_t>(numbers.size()));
  }
  return numbers;
}

// Which of the plan's transforms brings a node's output into a layout; null: none is listed.
Json TransformTo(const Plan& plan, const Node& producer, const Layout& layout) {
  for (size_t i = 0; i < plan.transforms.size(); ++i) {
    const TransformPlan& transform = plan.transforms[i];
    if (transform.tensor == producer.name && SameForm(producer.shape, transform.to, layout)) return i;
  }
  return nullptr;
}

struct Edges {
  const Graph& graph;
  const Plan& plan;
  const std::vector<NodeSchedule>& schedules;
  const std::map<NodeId, int64_t>& numbers;

  // `slot` counts what the node's kernel reads: what is fused in front of a conv has no layout between.
  Json Of(NodeId from, NodeId to, size_t slot) const {
    const NodeSchedule& producer = schedules[from];
    const NodeSchedule& consumer = schedules[to];
    const Shape& shape = graph.node(from).shape;
    Json edge = {{"from", numbers.at(from)}, {"to", numbers.at(to)}};
    if (producer.fused_away) {
      edge["fused"] = true;
      return edge;
    }
    const Layout& written = producer.out;
    // What is fused away reads what the conv behind it reads.
    const NodeSchedule& reader = consumer.fused_away ? ReaderFor(to) : consumer;
    const Layout& read = slot < reader.inputs.size() && !consumer.fused_away ? reader.inputs[slot]
                         : !reader.inputs.empty()                            ? reader.inputs[0]
                                                                             : written;
    edge["layout"] = written.ToString();
    if (!SameForm(shape, written, read)) {
      edge["read_as"] = read.ToString();
      edge["transform"] = TransformTo(plan, graph.node(from), read);
    }
    return edge;
  }

  const NodeSchedule& ReaderFor(NodeId fused) const {
    for (const NodeId consumer : graph.Consumers(fused))
      if (schedules[consumer].first == fused) return schedules[consumer];
    return schedules[fused];
  }

  Json All() const {
    Json edges = Json::array();
    for (const auto& [id, number] : numbers) {
      const std::vector<NodeId> inputs = graph.Inputs(id);
      for (size_t slot = 0; slot < inputs.size(); ++slot)
        if (numbers.contains(inputs[slot])) edges.push_back(Of(inputs[slot], id, slot));
    }
    return edges;
  }
};

}  // namespace

Json NetworkView(const Plan& plan, const Graph* graph, const std::vector<Json>& steps) {
  const MeasuredSteps measured(steps);
  Json nodes = Json::array(), edges = Json::array(), transforms = Json::array();
  for (const TransformPlan& transform : plan.transforms)
    transforms.push_back(TransformJson(transform, measured));
  if (!graph) {
    for (const NodePlan& node : plan.nodes) nodes.push_back(NodeJson(node, measured));
  } else {
    std::map<std::string_view, const NodePlan*> planned;
    for (const NodePlan& node : plan.nodes) planned[node.node] = &node;
    const std::vector<NodeSchedule> schedules = ResolveSchedules(*graph, plan, plan.target);
    const std::map<NodeId, int64_t> numbers = ShownNodes(*graph, schedules);
    for (const auto& [id, number] : numbers) {
      const Node& node = graph->node(id);
      const auto found = planned.find(node.name);
      const std::string out = schedules[id].out.ToString();
      Json json = found != planned.end()
                      ? NodeJson(*found->second, measured)
                      : Json{{"name", node.name}, {"op", node.op->Type()}, {"layouts", {out, out}}};
      json["shape"] = node.shape;
      json["type"] = "f32";
      if (graph->IsOutput(id)) json["output"] = true;
      nodes.push_back(std::move(json));
    }
    edges = Edges{*graph, plan, schedules, numbers}.All();
  }
  return {{"nodes", std::move(nodes)}, {"edges", std::move(edges)}, {"transforms", std::move(transforms)}};
}

}  // namespace tilesmith
