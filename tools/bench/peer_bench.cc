#include "tools/bench/peer_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "graph_tuner/planner/network_run.h"
#include "layouts/base/error.h"
#include "layouts/base/thread_team.h"
#include "layouts/measure/clock.h"
#include "layouts/measure/duel.h"
#include "layouts/measure/quantile.h"
#include "ops/quantize/byte_sums.h"
#include "tools/cli/npz.h"
#include "tools/cli/output_file.h"
#include "tools/network/network_bench.h"
#include "tools/network/outputs.h"
#include "tools/network/plan_choice.h"
#include "tools/network/stream_runs.h"
#include "tools/peers/network_worker.h"
#include "tools/peers/onnx_runtime.h"
#include "tuner/measure/child_process.h"
#include "tuner/records/json_fields.h"

namespace tilesmith {
namespace {

constexpr int kPairs = 3, kMinPairRounds = 5;
constexpr double kBlockSeconds = 50e-3, kStartSeconds = 120, kAnswerSeconds = 120;
// How often a waiting bench looks whether it was interrupted.
constexpr double kStopSeconds = 1;

class NetworkWorker {
 public:
  NetworkWorker(const std::vector<std::string>& argv, const StopFlag* stop) : child_(argv), stop_(stop) {
    const nlohmann::json hello = Expect(kStartSeconds);
    name_ = JsonGet<std::string>(hello, "ready");
    peak_bytes_ = JsonGet<int64_t>(hello, "peak_bytes");
  }

  const std::string& name() const { return name_; }
  int64_t peak_bytes() const { return peak_bytes_; }

  double SecondsPerRun(int64_t runs) {
    std::this_thread::sleep_for(kTurnPause);
    child_.channel().Send(JsonLine({{"runs", runs}}));
    return JsonGet<double>(Expect(kAnswerSeconds), "seconds");
  }

 private:
  nlohmann::json Expect(double seconds) {
    std::string line;
    const double end = NowSeconds() + seconds;
    Transport::Receipt receipt;
    do {
      ThrowIfStopped(stop_);
      receipt = child_.channel().Receive(line, NowSeconds() + kStopSeconds);
    } while (receipt == Transport::Receipt::kTimeout && NowSeconds() < end);
    if (receipt == Transport::Receipt::kTimeout)
      throw Error(ErrorCode::kEnvironment, fmt::format("a network's process says nothing for {} s", seconds));
    if (receipt == Transport::Receipt::kEnd) {
      throw Error(ErrorCode::kEnvironment,
                  fmt::format("a network's process {}", child_.WaitForEnd().ToString()));
    }
    return nlohmann::json::parse(line, nullptr, false);
  }

  ChildProcess child_;
  const StopFlag* stop_;
  std::string name_;
  int64_t peak_bytes_ = 0;
};

std::vector<std::string> Arguments(const PeerRequest& request, const std::string& outputs) {
  std::vector<std::string> argv = {"/proc/self/exe", "network-worker", request.model.model};
  if (request.model.batch > 0) argv.insert(argv.end(), {"--batch", std::to_string(request.model.batch)});
  for (const std::string& shape : request.model.input_shapes)
    argv.insert(argv.end(), {"--input-shape", shape});
  argv.insert(argv.end(), {"--threads", std::to_string(request.machine->threads()), "--max-isa",
                           std::string(IsaName(request.machine->target().isa)), "--outputs", outputs});
  return argv;
}

struct PairTimes {
  double ours = 0, peer = 0, ratio = 0;
};

PairTimes MeasurePair(NetworkWorker& ours, NetworkWorker& peer, double seconds) {
  NetworkWorker* const sides[] = {&ours, &peer};
  int64_t runs[2];
  for (int side = 0; side < 2; ++side) {
    const double once = sides[side]->SecondsPerRun(1);
    runs[side] = static_cast<int64_t>(std::clamp(std::ceil(kBlockSeconds / once), 1.0, 1000.0));
  }
  DuelRounds rounds;
  double timed = 0;
  // As many rounds as fill the time, unless a block of so short runs falls short of its seconds.
  const auto most = static_cast<size_t>(seconds / kBlockSeconds);
  while (rounds.size() < kMinPairRounds || (timed < seconds && rounds.size() < most)) {
    std::vector<double> turn(2);
    for (size_t i = 0; i < 2; ++i) {
      const size_t side = (rounds.size() + i) % 2;
      turn[side] = sides[side]->SecondsPerRun(runs[side]);
      timed += turn[side] * static_cast<double>(runs[side]);
    }
    rounds.push_back(std::move(turn));
  }
  return {DuelSeconds(rounds, 0), DuelSeconds(rounds, 1), RatioOf(rounds, 0, 1).median};
}

// Throws unless the network amplifies roundings so much that this difference may be, or a tail picks by
// values: what comes first among scores that are nearly equal is a matter of roundings. Where the peer's sums
// may saturate, which it returns, only ours are checked. `peer_difference()` is the peer's to itself.
template <typename PeerDifference>
bool RequireRounding(const PeerRequest& request, double difference, const PeerDifference& peer_difference) {
  const Graph graph = LoadModel(request.model);
  NetworkRun network(graph, LoadPlan(request.plan_path, graph, request.machine), request.machine,
                     SeededInputs(graph, kNetworkSeed), request.stop);
  network.Run();
  const NetworkCheck check = network.Check(graph);
  const bool may_saturate = MaySaturate(graph, DetectCpu());
  const bool may_differ = may_saturate || graph.tail();
  double allowed = AllowedBesideOthers(check.rounding);
  if (!may_differ && !(difference <= allowed))
    allowed = AllowedBesideOthers(check.rounding, peer_difference());
  if (check.wrong.empty() && (difference <= allowed || (may_differ && std::isfinite(difference))))
    return may_saturate;
  throw Error(
      ErrorCode::kWrongAnswer,
      fmt::format("outputs differ from ONNX Runtime's by {:.1e} of the largest value (allowed: {:.1e}){}{}",
                  difference, allowed, check.wrong.empty() ? "" : "; ", check.wrong));
}

}  // namespace

PeerBench BenchPeer(const PeerRequest& request) {
  UnpinThisThread();
  const ScratchFolder scratch;
  const std::string onnx = OnnxFileOf(request.model, scratch.File("model.onnx"));
  const std::string our_outputs = scratch.File("ours.npz"), peer_outputs = scratch.File("peer.npz");
  PeerRequest ours_asked = request;
  // A plan says how to quantise the model; without one the quantised file is the model.
  if (request.model.quantization && request.plan_path.empty()) ours_asked.model.model = onnx;
  if (!request.compiled.empty()) ours_asked.model.model = request.compiled;
  std::vector<std::string> our_arguments = Arguments(ours_asked, our_outputs);
  if (!request.plan_path.empty() && request.compiled.empty())
    our_arguments.insert(our_arguments.end(), {"--plan", request.plan_path});
  std::vector<std::string> peer_arguments = Arguments(request, peer_outputs);
  peer_arguments.insert(peer_arguments.end(), {"--onnxruntime", request.library, "--onnx", onnx});

  PeerBench bench;
  std::vector<double> ours_seconds, peer_seconds;
  for (int pair = 0; pair < kPairs; ++pair) {
    NetworkWorker ours(our_arguments, request.stop), peer(peer_arguments, request.stop);
    if (pair == 0) {
      bench.version = peer.name();
      bench.peak_bytes = ours.peak_bytes();
      bench.peer_peak_bytes = peer.peak_bytes();
      const std::vector<NamedTensor> expected = ReadNpz(peer_outputs);
      const std::vector<NamedTensor> ours_given = ReadNpz(our_outputs);
      bench.difference = LargestDifference(ours_given, expected);
      double difference = bench.difference;
      if (!(difference <= kAllowedOutputDifference)) {
        std::vector<std::string> twin_arguments = peer_arguments;
        twin_arguments.back() = TwinInFloats(onnx, scratch.File("twin.onnx"));
        if (twin_arguments.back() != onnx) {
          const NetworkWorker twin(twin_arguments, request.stop);
          difference = LargestDifference(ours_given, ReadNpz(peer_outputs));
        }
      }
      const auto peer_difference = [&] {
        peer_arguments.emplace_back("--plain");
        const NetworkWorker plain(peer_arguments, request.stop);
        peer_arguments.pop_back();
        return LargestDifference(ReadNpz(peer_outputs), expected);
      };
      bench.may_saturate =
          !(difference <= kAllowedOutputDifference) && RequireRounding(request, difference, peer_difference);
    }
    const PairTimes times = MeasurePair(ours, peer, request.seconds / kPairs);
    ours_seconds.push_back(times.ours);
    peer_seconds.push_back(times.peer);
    bench.pair_ratios.push_back(times.ratio);
  }
  std::ranges::sort(bench.pair_ratios);
  bench.seconds = Quantile(std::move(ours_seconds), 0.5);
  bench.peer_seconds = Quantile(std::move(peer_seconds), 0.5);
  bench.ratio = Quantile(bench.pair_ratios, 0.5);
  return bench;
}

void AddPeerBench(Report& report, const PeerBench& bench) {
  report.Fact("onnxruntime", "ONNX Runtime", TextCell(bench.version));
  report.Fact("onnxruntime_seconds", "  its ms", MillisecondsCell(bench.peer_seconds));
  report.Fact("onnxruntime_ours_seconds", "  ours beside it ms", MillisecondsCell(bench.seconds));
  report.Fact("onnxruntime_ratio", "  ratio",
              {bench.ratio,
               fmt::format("{:.2f} ({:.2f} to {:.2f} over {} pairs of processes)", bench.ratio,
                           bench.pair_ratios.front(), bench.pair_ratios.back(), bench.pair_ratios.size())});
  report.details().Fact("onnxruntime_ratio_low", "", RatioCell(bench.pair_ratios.front()));
  report.details().Fact("onnxruntime_ratio_high", "", RatioCell(bench.pair_ratios.back()));
  report.Fact("onnxruntime_peak_bytes", "  its peak MiB", MebibytesCell(bench.peer_peak_bytes));
  report.Fact("onnxruntime_ours_peak_bytes", "  our peak MiB", MebibytesCell(bench.peak_bytes));
  report.Fact("onnxruntime_difference", "  difference of outputs",
              DifferenceCell(bench.difference, bench.may_saturate));
}

}  // namespace tilesmith
