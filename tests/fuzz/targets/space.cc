// A measured config space, replayed by two searchers.
#include "tests/fuzz/targets/record_uses.h"
#include "tests/fuzz/targets/targets.h"
#include "tuner/simulation/measured_space.h"
#include "tuner/simulation/regret.h"

namespace tilesmith::fuzz {
namespace {

void Run(const std::string& input) {
  const InputFile file(input);
  const MeasuredSpace measured = ReadMeasuredSpace(file.path());
  const std::vector<Record> records = RecordsOf(measured);
  Require(records.size() == measured.seconds.size(), "every measured config is a record");
  for (const char* searcher : {"random", "ga"}) {
    const std::vector<double> curve = Replay(measured, searcher, {.trials = 12, .batch = 4});
    TrialsUntil(curve, TrueBest(measured), 0.05);
    if (!curve.empty()) RegretAfter(curve, TrueBest(measured), 10);
  }
  ShareWithin(measured, 0.05);
}

}  // namespace

FuzzTarget SpaceTarget() {
  return {.name = "space",
          .reads = "a measured config space (.space): read and replayed",
          .run = Run,
          .mutate = MutateJsonLines,
          .words = RecordWords(),
          .short_runs = 1000};
}

}  // namespace tilesmith::fuzz
