// A line of an AutoTVM log, imported and exported again.
#include "tuner/autotvm/autotvm.h"

#include <nlohmann/json.hpp>

#include "layouts/base/error.h"
#include "tests/fuzz/targets/record_uses.h"
#include "tests/fuzz/targets/targets.h"
#include "tuner/records/json_fields.h"
#include "tuner/records/record_line.h"

namespace tilesmith::fuzz {
namespace {

constexpr std::string_view kWords[] = {"TENSOR",
                                       "float32",
                                       "NCHW",
                                       "NCHW16c",
                                       "OIHW",
                                       "conv2d_NCHWc.x86",
                                       "depthwise_conv2d_NCHWc.x86",
                                       "sp",
                                       "ot",
                                       "tile_ic",
                                       "tile_oc",
                                       "tile_ow",
                                       "tile_oh",
                                       "unroll_kw",
                                       "llvm",
                                       "-mcpu=skylake-avx512",
                                       "-num-cores=",
                                       "entity",
                                       "input",
                                       "config"};

void Run(const std::string& input) {
  const ImportedRecord imported = RecordFromAutotvm(input);
  const std::string line = JsonLine(RecordToJson(imported.record));
  Record again;
  const std::string problem = ParseRecordLine(line, again);
  Require(problem.empty(), "an imported record can be written to a log and read: " + problem);
  UseRecord(imported.record);
  try {
    const std::string exported = RecordToAutotvm(imported.record);
    Require(JsonLine(RecordToJson(RecordFromAutotvm(exported).record)) == line,
            "what was exported is imported as the same record");
  } catch (const Error& error) {
    throw std::logic_error(std::string("an imported record can be exported: ") + error.what());
  }
}

}  // namespace

FuzzTarget AutotvmTarget() {
  return {.name = "autotvm",
          .reads = "a line of an AutoTVM log: imported, exported, imported",
          .run = Run,
          .mutate = MutateJsonLines,
          .words = kWords,
          .short_runs = 2000};
}

}  // namespace tilesmith::fuzz
