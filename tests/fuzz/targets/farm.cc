// What anyone may put into a farm's streams, an entry's fields a line, as a JSON object of texts; and the
// URLs of farms, as lines that are none.
#include <nlohmann/json.hpp>
#include <sstream>

#include "layouts/base/error.h"
#include "tests/fuzz/targets/record_uses.h"
#include "tests/fuzz/targets/targets.h"
#include "tuner/farm/messages.h"
#include "tuner/farm/redis.h"
#include "tuner/measure/protocol.h"
#include "tuner/records/json_fields.h"

namespace tilesmith::fuzz {
namespace {

// Refusals are what is expected.
template <typename Read>
void UnlessRefused(const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) throw;
  }
}

void ReadTrial(const FarmFields& fields) {
  const FarmTrial trial = FarmTrialFrom(fields);
  Require(FarmTrialFrom(ToFields(trial)).session == trial.session, "a trial is read as it was written");
  const Message session = MessageFromText(trial.session), request = MessageFromText(trial.trial);
  if (const auto* begin = std::get_if<SessionMessage>(&session)) {
    WhyRefused(begin->session, FuzzCpu());
    if (const auto* asked = std::get_if<TrialMessage>(&request))
      Require(FarmTrialId(begin->session, asked->trial, 0) != FarmTrialId(begin->session, asked->trial, 1),
              "a repetition is another trial");
  }
}

void ReadAnswer(const FarmFields& fields) {
  const FarmAnswer answer = FarmAnswerFrom(fields);
  MessageFromText(answer.ready);
  MessageFromText(answer.answer);
}

void ReadWorker(const FarmFields& fields) {
  const FarmWorker worker = FarmWorkerFrom("w", fields);
  Require(IsFarmName(DefaultClass(worker.target)), "a class has a name");
  Require(ToFields(FarmWorkerFrom("w", ToFields(worker))) == ToFields(worker), "a worker is read as written");
}

void Run(const std::string& input) {
  std::istringstream lines(input);
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json object = ParseJson(line);
    if (!object.is_object()) {
      UnlessRefused([&] {
        const FarmAddress address = ParseFarmUrl(line);
        Require(ParseFarmUrl(address.ToString()).ToString() == address.ToString(), "a URL is read as shown");
      });
      continue;
    }
    FarmFields fields;
    for (const auto& [name, value] : object.items())
      if (value.is_string()) fields[name] = value.get<std::string>();
    UnlessRefused([&] { ReadTrial(fields); });
    UnlessRefused([&] { ReadAnswer(fields); });
    UnlessRefused([&] { ReadWorker(fields); });
  }
}

}  // namespace

FuzzTarget FarmTarget() {
  return {.name = "farm",
          .reads = "entries of a farm's streams, and URLs of farms",
          .run = Run,
          .mutate = MutateJsonLines,
          .words = RecordWords(),
          .short_runs = 5000};
}

}  // namespace tilesmith::fuzz
