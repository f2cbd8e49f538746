// Threads, batch and streams in all combinations: which setting gets most done on this machine, and which
// answers soonest? Beside ONNX Runtime in the same settings, if its library is there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/cli/machine.h"
#include "tools/cli/model.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/network/stream_runs.h"

namespace tilesmith {

struct SweepRequest {
  ModelOptions model;
  MachineOptions machine;
  // Plans for some of the settings, by batch and threads; the others have default schedules. "": all.
  std::string plan_path = {};
  bool threads = false, batch = false, streams = false;  // what is varied; the rest is as given
  StreamOptions each = {};
  std::string onnxruntime = {};  // its library; "": none
};
// "threads,batch,streams", or some of them. Throws Error(kUsage).
void ParseSweep(const std::string& text, SweepRequest* request);

struct SweepRow {
  int64_t threads = 1, batch = 1, streams = 1;
  bool planned = false;
  StreamTimes times;
  std::optional<StreamTimes> peer = {};  // by turns with it: ONNX Runtime's
  double images_per_second() const { return times.runs_per_second * static_cast<double>(batch); }
  std::optional<double> ratio() const;  // of what is done in a second: ours / ONNX Runtime's
};

// One after the other. Powers of two and the most there is: of threads, and of streams, what the cores allow;
// batches of 1 to 8. Throws as LoadModel, LoadPlan and TimeStreams do; stopped, it returns those that are
// done. A network or batch that ONNX Runtime refuses has no peer.
std::vector<SweepRow> SweepStreams(const SweepRequest& request, const WorkSinks& sinks);

Table SweepTable(const std::vector<SweepRow>& rows);
// The table, and the rows of the most images per second and of the lowest median latency.
void AddSweep(Report& report, const std::vector<SweepRow>& rows);

}  // namespace tilesmith
