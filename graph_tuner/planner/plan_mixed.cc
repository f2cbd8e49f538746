#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <set>
#include <utility>

#include "graph_tuner/executor/heuristic_plan.h"
#include "graph_tuner/plan/price_plan.h"
#include "graph_tuner/planner/network_types.h"
#include "graph_tuner/planner/plan_network.h"
#include "graph_tuner/problem/within_limits.h"
#include "layouts/base/error.h"
#include "tuner/precision.h"

namespace tilesmith {
namespace {

int64_t NarrowNodes(const Plan& plan) {
  return std::ranges::count_if(plan.nodes,
                               [](const NodePlan& node) { return node.record && IsNarrow(*node.record); });
}

// How long each plan of a comparison runs that is to be over by `end`; never too short to be worth anything.
double SecondsEach(const PlanRequest& request, double end, size_t plans, double share = 1) {
  constexpr double kMin = 0.03;
  const double left = share * std::max(0.0, end - NowSeconds());
  return std::clamp(left / static_cast<double>(kPlanDuels * plans + 1), std::min(kMin, request.seconds),
                    request.seconds);
}

class MixedPlanner {
 public:
  MixedPlanner(const PlanRequest& request, const WorkSinks& sinks)
      : request_(request),
        sinks_(sinks),
        machine_(request.machine),
        end_(request.begin + request.time_budget) {}

  PlannedNetwork Run() {
    all_ = Calibrate();
    // In a hurry nothing is mixed if it is not known by then what layers do; there is a plan already.
    if (all_ && request_.hurried) layers_ = LayerErrors();
    // Else floats first: there is a plan from then on.
    floats_ = PlanForm(Form(nullptr, all_ ? 3 : 1, Precision::kMixed), sinks_);
    if (floats_->stopped) return std::move(*floats_);
    if (!all_) {
      CompareTypes(request_, sinks_, &*floats_);
      return std::move(*floats_);
    }
    try {
      return PlanQuantized();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInterrupted || !IsStopped(sinks_.stop)) throw;
      floats_->stopped = true;  // their plan was kept
      return std::move(*floats_);
    }
  }

 private:
  PlannedNetwork PlanQuantized() {
    errors_.emplace(OpenFloats(*request_.network, machine_, ErrorSamples(request_)));
    bytes_ = PlanForm(ByteForm(all_, 2, Precision::kInt8), sinks_);
    ThrowIfStopped(sinks_.stop);
    costs_.emplace(request_);
    PlanUniform();
    PlanMixture();
    ThrowIfStopped(sinks_.stop);
    return Choose();
  }

  // A part of what time is left, for one of `forms` to come.
  PlanRequest Form(const QuantizationPtr& quantization, int forms, Precision precision) const {
    const double for_comparing = request_.hurried ? 0.3 : 0.1;  // of all
    PlanRequest form = request_;
    form.quantization = quantization;
    form.tuning.precision = precision;
    form.baselines = request_.baselines && !request_.hurried;
    form.begin = NowSeconds();
    form.time_budget =
        std::max(0.0, end_ - form.begin - for_comparing * request_.time_budget) / static_cast<double>(forms);
    return form;
  }

  // One that is quantised: what it does to the outputs is known otherwise, and floats are its baseline. Its
  // plan is not kept before it is chosen.
  PlanRequest ByteForm(const QuantizationPtr& quantization, int forms, Precision precision) const {
    PlanRequest form = Form(quantization, forms, precision);
    form.max_output_error.reset();
    form.baselines = false;
    form.keep = nullptr;
    return form;
  }

  // Null where nothing can be quantised.
  QuantizationPtr Calibrate() const {
    try {
      return request_.network->Calibrate(sinks_);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBadModel) throw;
      sinks_.Warn(fmt::format("int8 is left out: {}", error.what()));
      return nullptr;
    }
  }

  // The floats are planned in each type alone.
  void PlanUniform() {
    const PinnedTeam team(machine_);
    f32_ = Floats(request_, Precision::kF32);
    bf16_ = Floats(request_, Precision::kBf16);
  }

  TypedPlan Floats(const PlanRequest& request, Precision precision) const {
    return PlanFloats(request, floats_->graph, precision, *costs_, sinks_, Learned(*floats_));
  }

  // Gives what rounds have taught if both forms had some: else what one learned would not compare.
  const Corrections& Learned(const PlannedNetwork& form) const {
    static const Corrections kNone;
    const bool both = !floats_->refined.plan.corrections.empty() && !bytes_->refined.plan.corrections.empty();
    return both ? form.refined.plan.corrections : kNone;
  }

  // What layers take in each type. Layers are not fused in pairs: a pair has one time, and its layers may get
  // two types.
  struct TypePlans {
    Plan floats, bytes;
    std::optional<Plan> bf16;
  };

  TypePlans PlansToChooseBy() const {
    const PinnedTeam team(machine_);
    PlanRequest apart = request_;
    apart.tuning.fusion = false;
    // Without a limit floats are what is fastest of f32 and bf16 together.
    TypePlans plans = {*Floats(apart, HasLimit() ? Precision::kF32 : Precision::kMixed).plan,
                       bytes_->refined.plan, std::nullopt};
    if (HasLimit() && KnowsBf16()) plans.bf16 = *Floats(apart, Precision::kBf16).plan;
    costs_->MeasurePaid(bytes_->graph, plans.bytes);
    PricePlan(bytes_->graph, **costs_, plans.bytes, Learned(*bytes_));
    if (request_.rounds == 0 || NowSeconds() >= end_) return plans;
    std::vector<GraphPlan> run = {{&floats_->graph, &plans.floats}, {&bytes_->graph, &plans.bytes}};
    std::vector<Plan*> priced = {&plans.floats, &plans.bytes};
    if (plans.bf16) {
      run.push_back({&floats_->graph, &*plans.bf16});
      priced.push_back(&*plans.bf16);
    }
    // Each form has learned in a session of its own, and machines do not stay as fast as they were.
    constexpr double kShare = 0.1;  // of the time that is left
    sinks_.Stage("comparing types");
    const DuelRounds rounds = ComparePlans({floats_->graph, machine_, {sinks_.stop}}, run,
                                           SecondsEach(request_, end_, run.size(), kShare))
                                  .rounds;
    for (size_t i = 0; i < priced.size(); ++i) ScaleTo(DuelSeconds(rounds, i), priced[i]);
    return plans;
  }

  // The plan becomes one that is predicted to take so long. One with convolutions of which nothing is known
  // stays as it is: what they take would be charged to the others.
  static void ScaleTo(double seconds, Plan* plan) {
    const auto is_unknown = [](const NodePlan& node) { return node.record && node.predicted_seconds <= 0; };
    if (plan->predicted_seconds <= 0 || std::ranges::any_of(plan->nodes, is_unknown)) return;
    const double ratio = seconds / plan->predicted_seconds;
    for (NodePlan& node : plan->nodes) node.predicted_seconds *= ratio;
    for (TransformPlan& transform : plan->transforms) transform.predicted_seconds *= ratio;
    plan->predicted_seconds = seconds;
  }

  // What layers do by themselves counts what is between two of them twice, and is taken to be independent: of
  // all together it is known.
  void MatchErrorOfAll(QuantizedLayers* layers) const {
    double sum = 0;
    for (const QuantizedLayerError& layer : layers->layers) sum += layer.square;
    const double seen = errors_->errors.Of(bytes_->graph, bytes_->refined.plan).error;
    if (!(sum > 0) || !std::isfinite(seen)) return;
    for (QuantizedLayerError& layer : layers->layers) layer.square *= seen * seen / sum;
  }

  // Says whether there are plans in bf16 and it is known what layers in it do.
  bool KnowsBf16() const { return bf16_.plan && !floats_->bf16_squares.empty(); }

  // Nothing when that takes more than half of the time that is left, in a hurry. Without a limit on errors
  // nobody asks for them.
  std::optional<QuantizedLayers> LayerErrors() const {
    const double now = NowSeconds();
    WorkLimit limit = {sinks_.stop};
    if (request_.hurried) limit.end = std::midpoint(now, std::max(now, end_));
    WorkSinks limited = sinks_;
    limited.on_stage = [this, limit](const std::string& stage) {
      limit.ThrowIfOver();
      sinks_.Stage(stage);
    };
    try {
      return QuantizedLayerErrors(*request_.network, *all_, HasLimit() ? InjectedSamples(request_) : 0,
                                  machine_, limited);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInterrupted || IsStopped(sinks_.stop)) throw;
      return std::nullopt;
    }
  }

  // The layers that are to be quantised, within the limit on errors as it is measured.
  void PlanMixture() {
    if (HasLimit() && !SameOutputs(floats_->graph, bytes_->graph)) {
      note_ = "its outputs are others than in floats";
      return;
    }
    if (!request_.hurried) layers_ = LayerErrors();
    if (!layers_) {
      note_ = "there was no time to measure what each layer does to the outputs";
      return;
    }
    QuantizedLayers& layers = *layers_;
    if (HasLimit()) MatchErrorOfAll(&layers);
    const TypePlans plans = PlansToChooseBy();
    const TypedNetworks networks = {floats_->graph,
                                    plans.floats,
                                    plans.bf16 ? &*plans.bf16 : nullptr,
                                    floats_->bf16_squares,
                                    bytes_->graph,
                                    plans.bytes,
                                    layers,
                                    request_.hurried ? nullptr : &**costs_};
    QuantizationPtr chosen;
    const double most = MostError();
    TypeChoice choice;
    double seen = 0;  // of what is in bytes
    const auto is_mixture = [&] { return choice.quantized > 0 && !choice.keep.empty(); };
    const double measured = ChooseWithin(
        most,
        [&](bool is_last) {
          choice = Choice(networks);
          predicted_error_ = std::sqrt(choice.square);
          if (!is_mixture()) return 0.0;
          auto some = std::make_shared<ModelQuantization>(*all_);
          some->options.keep.insert(some->options.keep.end(), choice.keep.begin(), choice.keep.end());
          chosen = std::move(some);
          // Error is a matter of types far more than of schedules: it is known before the loop runs.
          seen = HasLimit() ? ErrorOfDefault(chosen) : 0;
          // Bytes that err more than was predicted leave others less room for bf16.
          const double with_bf16 = seen * seen + choice.square - choice.byte_square;
          return with_bf16 > most * most && !is_last ? std::numeric_limits<double>::infinity() : seen;
        },
        [&](double) {
          const double more = seen * seen / (kLimitMargin * choice.byte_square);
          for (QuantizedLayerError& layer : layers.layers) layer.square *= more;
        });
    if (!is_mixture()) {
      note_ = choice.quantized == 0 ? "no layer pays in int8" : "every layer pays in int8";
      return;
    }
    if (measured > most) {
      note_ = "no mixture within the limit was found";
      return;
    }
    mixed_ = PlanChosen(chosen, seen);
    note_ = fmt::format("{} of {} layers in int8", choice.quantized, choice.weighted);
    const int64_t narrow = NarrowNodes(mixed_->refined.plan);
    if (narrow > 0) note_ += fmt::format(", {} in bf16", narrow);
    note_ += fmt::format(", predicted {} ms", MillisecondsText(choice.seconds));
    if (HasLimit() && choice.bound > 0)
      note_ += fmt::format(", at most {:.1f}% above any mixture within the limit",
                           (choice.seconds / choice.bound - 1) * 100);
    if (const std::string untuned = UntunedText(mixed_->refined.plan); !untuned.empty())
      note_ += ", " + untuned;
  }

  TypeChoice Choice(const TypedNetworks& networks) const {
    const PinnedTeam team(machine_);  // conversions are measured
    return ChooseTypes(networks, MostError() * MostError());
  }

  // What is not in bytes may be in bf16 as far as the limit leaves room.
  // A layer between types may be another convolution than in one type, with a sum of its own, which the log
  // need not know.
  PlannedNetwork PlanChosen(const QuantizationPtr& chosen, double error_of_bytes) const {
    PlanRequest form = ByteForm(chosen, 1, Precision::kMixed);
    form.tuning.allow_defaults = true;
    if (!HasLimit()) return PlanForm(form, sinks_);
    if (KnowsBf16() && error_of_bytes < MostError()) {
      form.max_output_error = request_.max_output_error;
      const KnownErrors known = {errors_->errors, floats_->bf16_squares, error_of_bytes * error_of_bytes};
      try {
        return PlanForm(form, sinks_, &known);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kNoCandidate) throw;
      }
      form.max_output_error.reset();
    }
    form.tuning.precision = Precision::kInt8;
    return PlanForm(form, sinks_);
  }

  double ErrorOfDefault(const QuantizationPtr& quantization) const {
    const Graph graph = request_.network->Load(quantization);
    return errors_->errors.Of(graph, HeuristicPlan(graph, machine_->target(), machine_->threads())).error;
  }

  bool HasLimit() const { return request_.max_output_error.has_value(); }
  double MostError() const {
    return request_.max_output_error.value_or(std::numeric_limits<double>::infinity());
  }

  PlannedNetwork Choose() {
    const PinnedTeam team(machine_);
    std::vector<TypedPlan> plans;
    std::vector<PlannedNetwork*> forms;
    std::set<size_t> uniform;  // of the floats, but not the form's plan
    const auto add = [&](TypedPlan plan, PlannedNetwork* form) {
      plans.push_back(std::move(plan));
      forms.push_back(form);
    };
    const auto add_uniform = [&](const TypedPlan& plan) {
      uniform.insert(plans.size());
      add(plan, &*floats_);
    };
    const bool narrow = NarrowNodes(floats_->refined.plan) > 0;
    if (narrow) add_uniform(f32_);
    add({narrow ? "f32 and bf16" : "f32", &floats_->graph, floats_->refined.plan}, &*floats_);
    add_uniform(bf16_);
    add({"int8", &bytes_->graph, bytes_->refined.plan}, &*bytes_);
    if (mixed_)
      add({"mixed", &mixed_->graph, mixed_->refined.plan, note_}, &*mixed_);
    else
      add({"mixed", &bytes_->graph, std::nullopt, note_}, nullptr);
    // They are compared whatever the time: the plan is not known before.
    const PlanRuns where = {floats_->graph, machine_, {sinks_.stop}, {}, end_};
    sinks_.Stage("comparing types");
    std::vector<TypeRun> runs = RunTypes(where, plans, errors_->errors, std::nullopt, MostError(),
                                         SecondsEach(request_, end_, plans.size()));
    const size_t chosen =
        static_cast<size_t>(std::ranges::find(runs, true, &TypeRun::is_plan) - runs.begin());
    const Corrections learned = Learned(*floats_);
    PlannedNetwork planned = std::move(*forms[chosen]);
    if (uniform.contains(chosen)) {
      plans[chosen].plan->corrections = learned;
      planned.refined = {.plan = *std::move(plans[chosen].plan),
                         .check = {.seconds = runs[chosen].seconds, .steps = {}},
                         .rounds = {},
                         .baselines = {},
                         .solved = {}};
      planned.predicted_output_error.reset();
      planned.steps.clear();
      planned.baselines = {};
    }
    if (runs[chosen].difference) planned.output_error = runs[chosen].difference->error;
    if (HasLimit() && forms[chosen] == (mixed_ ? &*mixed_ : nullptr) && !planned.predicted_output_error)
      planned.predicted_output_error = predicted_error_;
    planned.types = std::move(runs);
    if (request_.keep) request_.keep(planned.refined.plan);
    return planned;
  }

  const PlanRequest& request_;
  const WorkSinks& sinks_;
  const DevicePtr machine_;
  const double end_;     // on the clock of NowSeconds
  QuantizationPtr all_;  // what quantises all that pays; null where nothing can be
  std::optional<PlannedNetwork> floats_, bytes_, mixed_;
  std::optional<FloatNetwork> errors_;
  std::optional<QuantizedLayers> layers_;  // what each does to the outputs
  std::optional<FormCosts> costs_;
  TypedPlan f32_, bf16_;  // of the floats
  double predicted_error_ = 0;
  std::string note_;  // about the mixture
};

void RunOtherTypes(const PlanRequest& request, const WorkSinks& sinks, PlannedNetwork* planned) {
  sinks.Stage("the network in other types");
  const FloatNetwork floats = OpenFloats(*request.network, planned->machine, ErrorSamples(request));
  const FormCosts costs(request);
  std::vector<TypedPlan> plans;
  const double end = request.begin + request.time_budget;
  const Precision own = request.tuning.precision;
  for (const Precision precision : {Precision::kF32, Precision::kBf16})
    if (precision != own) plans.push_back(PlanFloats(request, *floats.graph, precision, costs, sinks));
  plans.push_back({std::string(PrecisionName(own)), &planned->graph, planned->refined.plan});
  planned->types = RunTypes({planned->graph, planned->machine, {sinks.stop}, {}, end}, plans, floats.errors,
                            plans.size() - 1, std::numeric_limits<double>::infinity(),
                            SecondsEach(request, end, plans.size()));
  if (const auto& difference = planned->types.back().difference) planned->output_error = difference->error;
}

}  // namespace

PlannedNetwork PlanMixed(const PlanRequest& request, const WorkSinks& sinks) {
  return MixedPlanner(request, sinks).Run();
}

void CompareTypes(const PlanRequest& request, const WorkSinks& sinks, PlannedNetwork* planned) {
  const WorkLimit limit = {sinks.stop, request.begin + request.time_budget};
  const bool runs = request.baselines && request.rounds > 0;
  if (!runs || planned->machine->target().device != kCpuDevice || limit.out_of_time()) return;
  const PinnedTeam team(planned->machine);
  planned->stopped = !UnlessInterrupted([&] { RunOtherTypes(request, sinks, planned); });
}

}  // namespace tilesmith
