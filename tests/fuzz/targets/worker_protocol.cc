// What the tuner and its measuring workers say to each other, a message a line.
#include <nlohmann/json.hpp>

#include "layouts/base/error.h"
#include "tests/fuzz/targets/record_uses.h"
#include "tests/fuzz/targets/targets.h"
#include "tuner/measure/protocol.h"

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

void Run(const std::string& input) {
  const InputFile file(input);
  LineChannel channel(file.fd(), -1);
  std::string line;
  while (channel.ReadLine(line) == LineChannel::Read::kLine) {
    const json message = json::parse(line, nullptr, false);
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
