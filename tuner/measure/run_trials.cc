#include "tuner/measure/run_trials.h"

#include <map>
#include <utility>

#include "layouts/base/check.h"

namespace tilesmith {

void RunTrials(Measurer& measurer, const std::function<std::optional<TrialRequest>()>& next,
               const std::function<void(size_t index, TrialResult result)>& done) {
  const auto capacity = static_cast<size_t>(measurer.Capacity());
  std::map<Ticket, size_t> in_flight;  // the requests' numbers
  for (size_t submitted = 0;;) {
    while (in_flight.size() < capacity) {
      const std::optional<TrialRequest> request = next();
      if (!request) break;
      in_flight.emplace(measurer.Submit(*request), submitted++);
    }
    if (in_flight.empty()) return;
    auto [ticket, result] = measurer.Next();
    const auto found = in_flight.find(ticket);
    TILESMITH_CHECK(found != in_flight.end(), "the measurer answers trial {}, which nobody asked for",
                    ticket);
    const size_t index = found->second;
    in_flight.erase(found);
    done(index, std::move(result));
  }
}

}  // namespace tilesmith
