#include "tuner/measure/protocol.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "tuner/records/json_fields.h"

namespace tilesmith {

using nlohmann::json;

json SessionToJson(const MeasureSession& s) {
  return {{"workload", WorkloadToString(s.workload)},
          {"cpu",
           {{"model", s.cpu.model},
            {"isa", IsaName(s.cpu.isa)},
            {"cores", s.cpu.cores},
            {"l1d_bytes", s.cpu.l1d_bytes},
            {"l2_bytes", s.cpu.l2_bytes},
            {"l3_bytes", s.cpu.l3_bytes}}},
          {"threads", s.conditions.threads},
          {"pinned", s.conditions.pinned},
          {"cold_weights", s.conditions.cold_weights},
          {"min_samples", s.sampling.min_samples},
          {"max_samples", s.sampling.max_samples},
          {"sample_seconds", s.sampling.seconds},
          {"build_seconds", s.limits.build_seconds},
          {"run_seconds", s.limits.run_seconds},
          {"memory_bytes", s.limits.memory_bytes},
          {"seed", s.seed}};
}

MeasureSession SessionFromJson(const json& object) {
  MeasureSession s;
  s.workload = ParseWorkload(JsonGet<std::string>(object, "workload"));
  const json& cpu = JsonField(object, "cpu");
  s.cpu = {.model = JsonGet<std::string>(cpu, "model"),
           .isa = ParseIsa(JsonGet<std::string>(cpu, "isa")),
           .cores = JsonGet<int>(cpu, "cores"),
           .l1d_bytes = JsonGet<int64_t>(cpu, "l1d_bytes"),
           .l2_bytes = JsonGet<int64_t>(cpu, "l2_bytes"),
           .l3_bytes = JsonGet<int64_t>(cpu, "l3_bytes")};
  s.conditions = {.threads = JsonGet<int>(object, "threads"),
                  .pinned = JsonGet<bool>(object, "pinned"),
                  .cold_weights = JsonGet<bool>(object, "cold_weights")};
  s.sampling = {.min_samples = JsonGet<int>(object, "min_samples"),
                .max_samples = JsonGet<int>(object, "max_samples"),
                .seconds = JsonGet<double>(object, "sample_seconds")};
  s.limits = {.build_seconds = JsonGet<double>(object, "build_seconds"),
              .run_seconds = JsonGet<double>(object, "run_seconds"),
              .memory_bytes = JsonGet<int64_t>(object, "memory_bytes")};
  s.seed = JsonGet<uint64_t>(object, "seed");
  return s;
}

json TrialToJson(const TrialRequest& request) {
  json object = {{"template", request.template_name}, {"config", ConfigToJson(request.config)}};
  if (std::isfinite(request.stop_above_seconds)) object["stop_above_seconds"] = request.stop_above_seconds;
  return object;
}

TrialRequest TrialFromJson(const json& object) {
  TrialRequest request;
  request.template_name = JsonGet<std::string>(object, "template");
  request.config = ConfigFromJson(JsonField(object, "config"));
  request.stop_above_seconds = JsonGetOr<double>(object, "stop_above_seconds", request.stop_above_seconds);
  return request;
}

json ResultToJson(const TrialResult& result) {
  json object = {{"status", TrialStatusName(result.status)}, {"detail", result.detail},
                 {"samples", result.sample_seconds},         {"seconds", result.seconds},
                 {"early_stopped", result.early_stopped},    {"build_seconds", result.build_seconds}};
  if (result.error) object["error"] = *result.error;
  return object;
}

TrialResult ResultFromJson(const json& object) {
  TrialResult result;
  result.status = ParseTrialStatus(JsonGet<std::string>(object, "status"));
  result.detail = JsonGet<std::string>(object, "detail");
  for (const json& sample : JsonField(object, "samples")) {
    result.sample_seconds.push_back(JsonValue<double>(sample, "samples"));
  }
  result.seconds = JsonGet<double>(object, "seconds");
  result.early_stopped = JsonGet<bool>(object, "early_stopped");
  result.build_seconds = JsonGet<double>(object, "build_seconds");
  if (object.contains("error")) result.error = JsonGet<double>(object, "error");
  return result;
}

LineChannel::Deadline LineChannel::After(double seconds) {
  using Clock = Deadline::clock;
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

LineChannel::Read LineChannel::ReadLine(std::string& line, Deadline deadline) {
  for (;;) {
    if (const size_t end = pending_.find('\n'); end != std::string::npos) {
      line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return Read::kLine;
    }
    int wait_ms = -1;
    if (deadline != Deadline::max()) {
      const auto left = deadline - std::chrono::steady_clock::now();
      if (left.count() <= 0) return Read::kTimeout;
      constexpr int64_t kLongestWaitMs = 60 * 60 * 1000;
      const auto left_ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
      wait_ms = static_cast<int>(std::min<int64_t>(left_ms, kLongestWaitMs));
    }
    pollfd request = {in_fd_, POLLIN, 0};
    const int ready = poll(&request, 1, wait_ms);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    if (ready < 0) return Read::kEnd;
    char bytes[1 << 16];
    const ssize_t count = read(in_fd_, bytes, sizeof(bytes));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Read::kEnd;
    pending_.append(bytes, count);
  }
}

bool LineChannel::WriteLine(const std::string& line) {
  const std::string text = line + '\n';
  for (size_t done = 0; done < text.size();) {
    ssize_t count = send(out_fd_, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (count < 0 && errno == ENOTSOCK) count = write(out_fd_, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += count;
  }
  return true;
}

}  // namespace tilesmith
