// A whole network, ours beside ONNX Runtime, each in a process of its own, by turns.
//
// What a process takes depends on how its memory happens to lie, so both sides are started several times: the
// ratio is the median over the pairs of processes.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/machine.h"
#include "tools/cli/model.h"
#include "tools/cli/report.h"

namespace tilesmith {

struct PeerRequest {
  ModelOptions model;
  std::string plan_path;  // "": the heuristic plan
  std::string compiled;   // a file that ours runs, which was compiled from them; "": they run
  DevicePtr machine;
  std::string library;  // ONNX Runtime's
  double seconds = 2;   // of timed runs, for both sides together
  const StopFlag* stop = nullptr;
};

struct PeerBench {
  std::string version;                          // "1.30.0"
  double seconds = 0;                           // ours
  double peer_seconds = 0;                      // medians over the processes
  double ratio = 0;                             // peer / ours, median over the pairs of processes
  std::vector<double> pair_ratios;              // of each pair, ascending
  int64_t peak_bytes = 0, peer_peak_bytes = 0;  // of the whole processes, once they have run
  double difference = 0;      // of outputs, largest of all, relative to the output's largest value
  bool may_saturate = false;  // its sums, on this CPU (MaySaturate): ours were checked layer by layer instead
};

// While it measures, this process only waits. The calling thread is unpinned. Throws Error(kEnvironment) when
// one of the processes fails, whose own message is on stderr; Error(kWrongAnswer) when the outputs differ by
// more than 1e-3 of the largest and than the network makes of roundings, or, where the peer's sums may
// saturate, when ours are not those of the reference; Error(kInterrupted) when it is
// stopped.
PeerBench BenchPeer(const PeerRequest& request);

void AddPeerBench(Report& report, const PeerBench& bench);

}  // namespace tilesmith
