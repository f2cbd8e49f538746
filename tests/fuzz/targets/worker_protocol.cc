// What the tuner and its measuring workers say to each other, a message a line.
#include <nlohmann/json.hpp>

#include "layouts/base/error.h"
#include "tests/fuzz/targets/record_uses.h"
#include "tests/fuzz/targets/targets.h"
#include "tuner/measure/transport.h"
#include "tuner/measure/worker_link.h"
#include "tuner/records/json_fields.h"

namespace tilesmith::fuzz {
namespace {

using nlohmann::json;

// Each reader of a message; what it accepts, it reads again from what it writes.
template <typename From, typename To>
void ReadAndWrite(const json& message, const From& from, const To& to) {
  try {
    const json written = to(from(message));
    Require(to(from(written)).dump() == written.dump(), "a message is read as it was written");
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) throw;
  }
}

// What the other side may answer at any time.
void ReadAndWrite(const std::string& line) {
  try {
    const std::string written = MessageToText(MessageFromText(line));
    Require(MessageToText(MessageFromText(written)) == written, "a message is read as it was written");
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) throw;
  }
}

// A worker that says all this to a tuner that starts it, begins a session, and waits for two trials.
void Listen(const std::string& input) {
  const InputFile file(input);
  LineTransport lines(file.fd(), -1);
  WorkerLink link(lines);
  MeasureSession session;
  session.workload = ParseWorkload("mb1ic16ih8oc16oh8kh3ph1+bias+relu");
  session.cpu = FuzzCpu();
  try {
    if (!link.Start() || !link.Begin(session)) return;
    for (const Ticket ticket : {1, 2}) {
      link.Submit(ticket, {"direct", {}});
      const LinkedTrial trial = link.Wait();
      if (trial.end != LinkedTrial::End::kResult) return;
      Require(SameMachine(trial.result.target, session.cpu), "results are of the machine asked for");
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) throw;
  }
}

void Run(const std::string& input) {
  Listen(input);
  const InputFile file(input);
  LineTransport lines(file.fd(), -1);
  std::string line;
  while (lines.Receive(line) == Transport::Receipt::kMessage) {
    ReadAndWrite(line);
    const json message = ParseJson(line);
    if (message.is_discarded()) continue;
    ReadAndWrite(message, SessionFromJson, SessionToJson);
    ReadAndWrite(message, TrialFromJson, TrialToJson);
    ReadAndWrite(message, ResultFromJson, ResultToJson);
  }
}

}  // namespace

FuzzTarget WorkerProtocolTarget() {
  return {.name = "worker_protocol",
          .reads = "messages between tuner and measuring workers",
          .run = Run,
          .mutate = MutateJsonLines,
          .words = RecordWords(),
          .short_runs = 5000};
}

}  // namespace tilesmith::fuzz
