// Configs as text and JSON. The first line is a template, the second a workload; the third is a config:
// an object as in records, or "knob=value,..." as `measure-space --knobs` takes it.
#include "templates/base/config.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "layouts/base/error.h"
#include "tests/fuzz/targets/record_uses.h"
#include "tests/fuzz/targets/targets.h"
#include "tuner/measure/protocol.h"
#include "tuner/simulation/exhaustive.h"

namespace tilesmith::fuzz {
namespace {

void RunJson(const std::string& line, Record record) {
  const nlohmann::json config = nlohmann::json::parse(line, nullptr, false);
  if (config.is_discarded()) return;
  record.config = TrialFromJson({{"template", record.template_name}, {"config", config}}).config;
  record.config.ToString();
  UseRecord(record);
}

void RunText(const std::string& line, const ConfigSpace& space) {
  const std::vector<Knob> knobs = Restrict(space, ParseRestrictions(line));
  const ConfigSpace restricted(knobs, [&](const Config& config) { return space.WhyInvalid(config); });
  Require(restricted.size() <= space.size(), "a restricted space is not larger");
}

void Run(const std::string& input) {
  std::istringstream lines(input);
  std::string line;
  Record record;
  std::getline(lines, record.template_name);
  std::getline(lines, line);
  record.workload = ParseWorkload(line);
  record.target = FuzzCpu();
  const ConvTemplate& conv_template = FindConvTemplate(record.template_name);
  if (!conv_template.Supports(record.workload, FuzzCpu()).ok) return;
  const ConfigSpace space = conv_template.Space(record.workload, FuzzCpu());
  std::getline(lines, line);
  line.starts_with('{') ? RunJson(line, record) : RunText(line, space);
}

}  // namespace

FuzzTarget ConfigTarget() {
  return {.name = "config",
          .reads = "a config or restriction of knobs, as JSON or as text",
          .run = Run,
          .mutate = MutateJsonLines,
          .words = RecordWords(),
          .short_runs = 3000};
}

}  // namespace tilesmith::fuzz
