// What a tuner and a measuring worker say to each other, whatever carries it (transport.h): one JSON object a
// message, in which one member says what it is.
//
//   worker: {"ready": {...}}            the machine it is: a target, as in records
//   tuner:  {"session": {...}}          what the trials from now on have in common
//   worker: {"accepted": true}          or {"error": "why"}
//   tuner:  {"coming": [{...}]}         trials that it will ask for, which the worker builds ahead
//   worker: {"accepted": true}
//   tuner:  {"trial": {...}, "ticket": 7}
//   worker: {"running": 7}              when building is over, then
//           {"result": {...}, "ticket": 7}
//
// A session may be begun again at any time between trials. A worker leaves when its input ends. Each side has
// its deadlines: worker_link.h, and the alarm in worker.h.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tuner/measure/measurer.h"

namespace tilesmith {

struct ReadyMessage {
  Target target;
};
struct SessionMessage {
  MeasureSession session;
};
struct AcceptedMessage {};
struct ErrorMessage {
  std::string why;
};
struct ComingMessage {
  std::vector<TrialRequest> trials;
};
struct TrialMessage {
  Ticket ticket = 0;
  TrialRequest trial;
};
struct RunningMessage {
  Ticket ticket = 0;
};
struct ResultMessage {
  Ticket ticket = 0;
  TrialResult result;  // without its target, which the worker has said
};
using Message = std::variant<ReadyMessage, SessionMessage, AcceptedMessage, ErrorMessage, ComingMessage,
                             TrialMessage, RunningMessage, ResultMessage>;

// Without a newline, whatever bytes the strings hold.
std::string MessageToText(const Message& message);
// Throws Error(kUsage) saying what is wrong with the text, or naming the field that is missing or wrong.
Message MessageFromText(std::string_view text);

// The parts of messages. Reading them throws Error(kUsage) naming the field that is missing or wrong.
nlohmann::json SessionToJson(const MeasureSession& session);
nlohmann::json TrialToJson(const TrialRequest& request);
nlohmann::json ResultToJson(const TrialResult& result);
MeasureSession SessionFromJson(const nlohmann::json& json);
TrialRequest TrialFromJson(const nlohmann::json& json);
TrialResult ResultFromJson(const nlohmann::json& json);

}  // namespace tilesmith
