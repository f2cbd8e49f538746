// Made-up networks, logs and prices for the graph tuner's tests: seeded, and no clock in sight.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph_tuner/costs/costs.h"
#include "graph_tuner/costs/layout_forms.h"
#include "graph_tuner/plan/plan.h"
#include "graph_tuner/problem/graph_tune.h"
#include "layouts/base/check.h"
#include "ops/base/op.h"
#include "ops/conv/conv.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/binary.h"
#include "ops/graph/graph.h"
#include "ops/movement/concat.h"
#include "ops/movement/view.h"
#include "ops/pool/pool.h"
#include "tests/support/random.h"
#include "tuner/records/record.h"

namespace tilesmith {

inline Target SyntheticCpu() {
  Target cpu;
  cpu.model = "synthetic";
  cpu.isa = Isa::kPortable;
  cpu.cores = 2;
  return cpu;
}

inline GraphTuneOptions SyntheticOptions() {
  GraphTuneOptions options;
  options.cpu = SyntheticCpu();
  options.threads = 2;
  return options;
}

// Once, of a problem that nothing else is asked of.
inline GraphTuneResult GraphTune(const Graph& graph, const std::vector<Record>& records, CostSource& costs,
                                 const GraphTuneOptions& options) {
  return GraphTune(NetworkProblem(graph, records, costs, options));
}

// In [0, 1), the same for the same text and seed.
inline double HashFraction(const std::string& text, uint64_t seed) {
  uint64_t hash = 1469598103934665603u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return static_cast<double>(TestRandom(hash ^ (seed * 0x9E3779B97F4A7C15u)).Next() >> 11) * 0x1p-53;
}

// Prices that depend on nothing but what is asked and the seed; of the size of a microsecond an element.
class SyntheticCosts final : public CostSource {
 public:
  explicit SyntheticCosts(uint64_t seed) : seed_(seed) {}
  double TransformSeconds(const Shape& shape, const Layout& from, const Layout& to) override {
    ++asked;
    if (from == to || SameMemory(shape, from, to)) return 0;
    return Price("t", shape, CanonicalLayout(shape, from).ToString() + CanonicalLayout(shape, to).ToString());
  }
  double CopySeconds(const Shape& shape, const Layout& layout) override {
    ++asked;
    return Price("c", shape, CanonicalLayout(shape, layout).ToString());
  }
  double OpSeconds(const OpUse& use) override {
    ++asked;
    return Price(OpUseText(use), use.output, CanonicalLayout(use.output, use.layout).ToString());
  }

  CrossingPrices PricesOfCrossing() override {
    std::vector<CrossingPrices::Distance> distances;
    for (const auto& [barrier_seconds, factor] : distance_factors) {
      const double read = factor * seconds_per_crossed_byte;
      distances.push_back({barrier_seconds, {{1, read}}, {{1, 0.4 * read}}, {{1, 0.1 * read}}});
    }
    return CrossingPrices(std::move(distances));
  }

  int asked = 0;
  double seconds_per_crossed_byte = 0;
  std::map<double, double> distance_factors = {{64e-9, 1}};  // of that price, by the seconds of a barrier

 private:
  double Price(const std::string& kind, const Shape& shape, const std::string& layouts) const {
    return 1e-6 * static_cast<double>(ElementCount(shape)) *
           (0.2 + HashFraction(kind + ShapeToString(shape) + layouts, seed_));
  }
  uint64_t seed_;
};

// A record of the portable template, which runs in any pair of layouts.
inline Record SyntheticRecord(const ConvWorkload& workload, int64_t in_block, int64_t out_block,
                              double seconds) {
  const Target cpu = SyntheticCpu();
  const ConvTemplate& portable = FindConvTemplate("portable");
  Record record;
  record.target = cpu;
  record.workload = workload;
  record.template_name = portable.Name();
  Config config;
  const Config base = portable.Default(workload, cpu);
  for (const auto& [name, value] : base.knobs())
    config.Set(name, name == "ic_block" ? in_block : name == "oc_block" ? out_block : value);
  record.config = config;
  record.layouts = portable.Layouts(workload, config);
  record.conditions.threads = 2;
  record.sample_seconds = {seconds, seconds * 1.01};
  record.seconds = seconds;
  record.tuner = "synthetic";
  record.time = "2024-01-01T00:00:00Z";
  const std::string invalid = portable.Space(workload, cpu).WhyInvalid(config);
  TILESMITH_CHECK(invalid.empty(), "{}", invalid);
  return record;
}

// A record of every template that supports the workload on `cpu`, with its default config.
inline std::vector<Record> RecordOfEachTemplate(const ConvWorkload& workload, const Target& cpu) {
  std::vector<Record> records;
  for (const ConvTemplate* conv_template : ConvTemplates()) {
    if (!conv_template->Supports(workload, cpu).ok) continue;
    Record record = DefaultRecord(workload, cpu, 2);
    record.template_name = conv_template->Name();
    record.config = conv_template->Default(workload, cpu);
    record.layouts = conv_template->Layouts(workload, record.config);
    records.push_back(std::move(record));
  }
  return records;
}

// One record for every workload of the graph and every pair of blocks its channels allow, with random
// seconds.
inline std::vector<Record> SyntheticLog(const Graph& graph, const std::vector<int64_t>& blocks,
                                        uint64_t seed) {
  std::vector<Record> records;
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    const auto* conv = graph.As<ConvOp>(id);
    if (!conv) continue;
    const ConvWorkload& workload = conv->workload();
    for (int64_t in : blocks) {
      if (in > 16 && in >= 2 * workload.ic) continue;
      for (int64_t out : blocks) {
        if (out > 16 && out >= 2 * workload.oc) continue;
        const std::string key = WorkloadToString(workload) + " " + std::to_string(in * 1000 + out);
        const double elements = static_cast<double>(ElementCount(workload.output_shape()));
        records.push_back(
            SyntheticRecord(workload, in, out, 1e-6 * elements * (1 + HashFraction(key, seed))));
      }
    }
  }
  return records;
}

inline Graph::NodeId AddInput(Graph& graph, Shape shape) {
  return graph.Add("input", std::make_shared<InputOp>(std::move(shape)), {});
}

// A conv with zero weights that keeps height and width; `residual` may be null.
inline Graph::NodeId AddConv(Graph& graph, const std::string& name, Graph::NodeId x, int64_t channels,
                             int64_t kernel = 1, const Graph::NodeId* residual = nullptr) {
  const Dims4 in = ToDims4(graph.node(x).shape);
  ConvWorkload workload;
  workload.mb = in.n;
  workload.ic = in.c;
  workload.ih = workload.oh = in.h;
  workload.iw = workload.ow = in.w;
  workload.oc = channels;
  workload.kh = workload.kw = kernel;
  workload.ph = workload.pw = kernel / 2;
  workload.post.sum = residual != nullptr;
  std::vector<Graph::NodeId> inputs = {x};
  if (residual) inputs.push_back(*residual);
  return graph.Add(
      name,
      std::make_shared<ConvOp>(workload, std::make_shared<const Tensor>(workload.weights_shape()), nullptr),
      inputs);
}

inline Graph::NodeId AddRelu(Graph& graph, const std::string& name, Graph::NodeId x) {
  return graph.Add(name, std::make_shared<ActivationOp>(Activation{ActivationKind::kRelu, 0, 0}), {x});
}

inline Graph::NodeId AddConcat(Graph& graph, const std::string& name,
                               const std::vector<Graph::NodeId>& inputs) {
  return graph.Add(name, std::make_shared<ConcatOp>(1), inputs);
}

inline Graph::NodeId AddSum(Graph& graph, const std::string& name, Graph::NodeId a, Graph::NodeId b) {
  return graph.Add(name, std::make_shared<BinaryOp>(BinaryKind::kAdd), {a, b});
}

// Chains, diamonds, residuals, concats of tensors that are used elsewhere too, and one or two outputs:
// whatever `nodes` random steps make of it. Dead ends are dropped.
inline Graph RandomNetwork(uint64_t seed, int nodes) {
  TestRandom random(seed);
  Graph graph("random" + std::to_string(seed));
  using Id = Graph::NodeId;
  std::vector<Id> tensors = {AddInput(graph, {random.Integer(1, 2), random.Pick(std::vector{3, 8}), 3, 3})};
  auto pick = [&] {  // recent ones more often, or everything becomes a star
    const auto back = std::min<int64_t>(random.Integer(0, 5) / 2, static_cast<int64_t>(tensors.size()) - 1);
    return tensors[tensors.size() - 1 - static_cast<size_t>(back)];
  };
  auto same_shape = [&](Id a) {
    std::vector<Id> fits;
    for (Id b : tensors)
      if (graph.node(b).shape == graph.node(a).shape) fits.push_back(b);
    return random.Pick(fits);
  };
  for (int i = 0; i < nodes; ++i) {
    const std::string name = "n" + std::to_string(i);
    const Id x = pick();
    const int64_t kind = random.Integer(0, 9);
    if (kind < 4) {
      tensors.push_back(AddConv(graph, name, x, random.Pick(std::vector{8, 12, 16}), 1));
    } else if (kind == 4) {
      const Id residual = same_shape(x);
      tensors.push_back(AddConv(graph, name, pick(), graph.node(residual).shape[1], 3, &residual));
    } else if (kind == 5) {
      tensors.push_back(AddRelu(graph, name, x));
    } else if (kind == 6) {
      tensors.push_back(AddSum(graph, name, x, same_shape(x)));
    } else {
      std::vector<Id> inputs = {x, pick()};
      if (kind == 9) inputs.push_back(pick());
      tensors.push_back(AddConcat(graph, name, inputs));
    }
  }
  graph.MarkOutput(tensors.back());
  const Id other = pick();
  if (random.Integer(0, 1) && other != tensors.back() && graph.node(other).op->Type() != "Input")
    graph.MarkOutput(other);
  return RewriteGraph(graph, [](Id, const std::vector<Id>&, Graph&) { return std::nullopt; });
}

}  // namespace tilesmith
