#include "tools/network/network_bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>

#include "layouts/base/error.h"
#include "layouts/measure/quantile.h"
#include "ops/quantize/byte_sums.h"
#include "tools/doctor/disturbance.h"
#include "tools/network/outputs.h"
#include "tools/network/prediction_report.h"
#include "tools/network/profile_report.h"

namespace tilesmith {
namespace {

constexpr int kProfiledRuns = 20;

struct Chain {
  std::string variant;
  std::unique_ptr<OneDnnNetwork> network;
  bool bf16 = false;
  double difference = 0;  // of its outputs from ours
};

// The first one computes as the graph says; one in bf16 is among them where our plan has layers of that, too,
// and the CPU instructions for it: elsewhere oneDNN has none that is faster than f32.
std::vector<Chain> MakeChains(const Graph& graph, const NetworkRun& run, const OneDnnChoice& fastest,
                              const Target& cpu, std::string* refusal) {
  const auto automatic = [](const ConvWorkload&) { return OneDnnAlgorithm::kAuto; };
  std::vector<Chain> chains;
  chains.push_back({"auto", OneDnnNetwork::Create(graph, automatic, cpu, run.ends(), refusal)});
  if (chains[0].network == nullptr) return {};
  chains.push_back(
      {"fastest of each layer", OneDnnNetwork::Create(graph, fastest, cpu, run.ends(), refusal)});
  if (cpu.bf16 && run.StoresBf16()) {
    chains.push_back({"auto in bf16",
                      OneDnnNetwork::Create(graph, automatic, cpu, run.ends(), refusal, DataType::kBf16),
                      true});
  }
  std::erase_if(chains, [](const Chain& chain) { return chain.network == nullptr; });
  for (Chain& chain : chains) {
    for (size_t i = 0; i < run.inputs().size(); ++i)
      chain.network->SetInput(static_cast<int>(i), run.inputs()[i]);
  }
  return chains;
}

// The largest difference of outputs. Throws when that is more than roundings become in this network; those of
// bytes, which oneDNN rounds once where we do it twice and which differ by whole steps then, have no such
// bound, and there only ours are checked. A chain in bf16 may round where we do not: its difference is told.
double RequireAgreement(const Graph& graph, NetworkRun& run, const Chain& of, const StopFlag* stop) {
  OneDnnNetwork& chain = *of.network;
  run.Run();
  chain.Run(stop);
  const std::vector<NamedTensor> ours = run.Outputs();
  std::vector<NamedTensor> theirs;
  theirs.reserve(ours.size());
  for (size_t i = 0; i < ours.size(); ++i)
    theirs.emplace_back(ours[i].first, chain.GetOutput(static_cast<int>(i)));
  const double difference = LargestDifference(ours, theirs);
  if (difference <= kAllowedOutputDifference || (of.bf16 && std::isfinite(difference))) return difference;
  const NetworkCheck check = run.Check(graph);
  const double allowed = AllowedDifference(check.rounding, kAllowedOutputDifference);
  const bool may_differ = AddsBytes(graph) && std::isfinite(difference);
  if ((difference <= allowed || may_differ) && check.wrong.empty()) return difference;
  throw Error(ErrorCode::kWrongAnswer,
              fmt::format("outputs differ from oneDNN's by {:.1e} of the largest value (allowed: {:.1e}){}{}",
                          difference, allowed, check.wrong.empty() ? "" : "; ", check.wrong));
}

// "12 Mul, 2 Resize"
std::string CountedTypes(const std::vector<std::string>& types) {
  std::map<std::string, int> counts;
  for (const std::string& type : types) ++counts[type];
  std::vector<std::string> texts;
  texts.reserve(counts.size());
  for (const auto& [type, count] : counts) texts.push_back(fmt::format("{} {}", count, type));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::vector<double> SamplesOf(const DuelRounds& rounds, size_t contestant) {
  std::vector<double> samples;
  for (const std::vector<double>& round : rounds) samples.push_back(round[contestant]);
  return samples;
}

// The samples, their mean and quantiles: "network_p90_seconds".
void AddSamples(Report& report, const std::string& prefix, const std::vector<double>& seconds) {
  if (seconds.empty()) return;
  report.Fact(prefix + "mean_seconds", "",
              MillisecondsCell(std::accumulate(seconds.begin(), seconds.end(), 0.0) /
                               static_cast<double>(seconds.size())));
  for (const int percent : {50, 90, 99}) {
    report.Fact(fmt::format("{}p{}_seconds", prefix, percent), "",
                MillisecondsCell(Quantile(seconds, percent / 100.0)));
  }
  report.Fact(prefix + "sample_seconds", "", ListCell(seconds));
}

}  // namespace

NetworkBench BenchNetwork(const Graph* graph, const OurNetworks& ours, const OneDnnChoice& fastest,
                          const Target& cpu, const DuelOptions& options) {
  NetworkRun& run = ours.run;
  NetworkBench bench;
  std::vector<Chain> chains;
  if (graph) {
    chains = MakeChains(*graph, run, fastest, cpu, &bench.refusal);
  } else {
    bench.refusal = kUnknownModel;
  }
  if (!chains.empty()) {
    for (Chain& chain : chains)
      if (chain.bf16 || &chain == &chains[0])
        chain.difference = RequireAgreement(*graph, run, chain, options.stop);
    bench.onednn_may_saturate = MaySaturate(*graph, DetectCpu());
  }
  std::vector<Contestant> contestants{{"ours", [&] { run.Run(); }, {}}};
  for (Chain& chain : chains) {
    contestants.push_back({chain.variant,
                           [network = chain.network.get(), stop = options.stop] { network->Run(stop); },
                           {},
                           TakeOneDnnTurn});
  }
  const size_t sides = contestants.size();
  if (ours.untuned) contestants.push_back({"untuned", [&] { ours.untuned->Run(); }, {}});
  const auto [rounds, placements] = RunDuel(contestants, options);
  bench.placement = MedianPlacement(placements);
  bench.seconds = DuelSeconds(rounds, 0);
  bench.sample_seconds = SamplesOf(rounds, 0);
  if (ours.untuned) {
    bench.untuned_seconds = DuelSeconds(rounds, sides);
    bench.untuned_ratio = RatioOf(rounds, 0, sides);
  }
  for (size_t i = 1; i < sides; ++i) {
    const double seconds = DuelSeconds(rounds, i);
    if (bench.onednn_seconds > 0 && seconds >= bench.onednn_seconds) continue;
    bench.onednn_seconds = seconds;
    bench.onednn_variant = contestants[i].name;
    const Chain& chain = chains[i - 1];
    bench.onednn_difference = (chain.bf16 ? chain : chains[0]).difference;
    bench.guests = chain.network->GuestTypes();
    bench.ratio = RatioOf(rounds, 0, i);
    bench.onednn_sample_seconds = SamplesOf(rounds, i);
  }
  bench.steps = run.Profile(kProfiledRuns);
  return bench;
}

Cell DifferenceCell(double difference, bool may_saturate) {
  return {difference, fmt::format("{:.1e}{}", difference,
                                  may_saturate ? ": its sums of bytes may saturate on this CPU" : "")};
}

void AddNetworkBench(Report& report, const Plan& plan, const NetworkBench& bench) {
  double profiled = 0;
  for (const StepProfile& step : bench.steps) profiled += step.seconds;
  const double others = NonConvSeconds(bench.steps);
  report.Fact("network_seconds", "whole network, ours ms", MillisecondsCell(bench.seconds));
  if (bench.onednn_seconds > 0) {
    report.Fact("network_onednn_seconds", "  oneDNN ms", MillisecondsCell(bench.onednn_seconds));
    report.Fact("network_onednn_variant", "  its algorithms", TextCell(bench.onednn_variant));
    if (!bench.guests.empty())
      report.Fact("network_onednn_guests", "  kernels of ours in it", TextCell(CountedTypes(bench.guests)));
    report.Fact("network_onednn_difference", "  difference of outputs",
                DifferenceCell(bench.onednn_difference, bench.onednn_may_saturate));
    report.Fact("network_ratio", "  ratio",
                {bench.ratio.median, fmt::format("{:.2f} ({:.2f} to {:.2f})", bench.ratio.median,
                                                 bench.ratio.p10, bench.ratio.p90)});
  } else {
    report.Fact("network_onednn_refusal", "  oneDNN", TextCell(bench.refusal));
  }
  if (bench.untuned_seconds > 0) {
    report.Fact("network_untuned_seconds", "  without tuning ms", MillisecondsCell(bench.untuned_seconds));
    report.details().Fact("network_untuned_ratio", "", RatioCell(bench.untuned_ratio.median));
  }
  const auto [predicted_at, prediction] = PredictionFor(plan, bench.placement);
  report.Fact("network_predicted_seconds", "  predicted ms", KnownMillisecondsCell(prediction));
  report.Fact("network_gap", "  gap", prediction > 0 ? ChangeCell(bench.seconds / prediction - 1) : NoCell());
  AddPlacement(report, "network_", bench.placement, prediction > 0 ? predicted_at : CorePlacement{});
  report.Fact("network_conv_seconds", "  convolutions ms", MillisecondsCell(profiled - others));
  report.Fact("network_other_seconds", "  other layers ms", MillisecondsCell(others));
  report.Fact("network_other_share", "  their share", PercentCell(profiled > 0 ? others / profiled : 0));
  report.Fact("network_disturbed_share", "  disturbed",
              {bench.disturbed_share, bench.disturbed_share >= kDisturbedShare
                                          ? fmt::format("{:.0f}% of the time", bench.disturbed_share * 100)
                                          : "no"});
  report.Fact("network_plan", "  plan", TextCell(fmt::format("{} ({})", plan.solver, plan.certificate)));
  AddRegions(report, plan, "network_");
  Report& details = report.details();
  details.Fact("network", "", TextCell(plan.network));
  AddHashes(details, plan.graph_hash, bench.plan_hash.empty() ? PlanHash(plan) : bench.plan_hash);
  if (bench.onednn_seconds > 0) {
    details.Fact("network_ratio_low", "", RatioCell(bench.ratio.low));
    details.Fact("network_ratio_high", "", RatioCell(bench.ratio.high));
  }
  AddSamples(details, "network_", bench.sample_seconds);
  AddSamples(details, "network_onednn_", bench.onednn_sample_seconds);
  details.AddTable(ProfileTable(bench.steps));
}

}  // namespace tilesmith
