#include "tools/peers/network_worker.h"

#include "layouts/base/error.h"
#include "layouts/measure/quantile.h"
#include "layouts/measure/sampling.h"
#include "tools/cli/system_files.h"
#include "tuner/measure/transport.h"
#include "tuner/records/json_fields.h"

namespace tilesmith {
namespace {

// Median seconds of `runs` runs, after one that nobody times.
double SecondsPerRun(const WorkingNetwork& network, int64_t runs) {
  network.run();
  return Quantile(TimeRuns(runs, network.run), 0.5);
}

}  // namespace

int ServeNetwork(const WorkingNetwork& network, int in_fd, int out_fd) {
  LineTransport lines(in_fd, out_fd);
  network.run();
  if (!lines.Send(JsonLine({{"ready", network.name}, {"peak_bytes", PeakResidentBytes()}})))
    return static_cast<int>(ErrorCode::kEnvironment);
  std::string line;
  while (lines.Receive(line) == Transport::Receipt::kMessage) {
    const auto request = nlohmann::json::parse(line, nullptr, false);
    if (!request.is_object()) throw Error(ErrorCode::kUsage, "not a request: " + line);
    const int64_t runs = JsonGet<int64_t>(request, "runs");
    if (runs < 1) throw Error(ErrorCode::kUsage, "field \"runs\" must be at least 1");
    if (!lines.Send(JsonLine({{"seconds", SecondsPerRun(network, runs)}}))) break;
  }
  return 0;
}

}  // namespace tilesmith
