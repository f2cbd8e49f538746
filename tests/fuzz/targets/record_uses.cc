#include "tests/fuzz/targets/record_uses.h"

#include "tests/fuzz/target.h"
#include "tuner/autotvm/autotvm.h"
#include "tuner/records/record_groups.h"
#include "tuner/records/record_key.h"
#include "tuner/search/config_sampling.h"

namespace tilesmith::fuzz {

void UseRecord(const Record& record) {
  RecordKey(record).ToString();
  const ConvTemplate* const conv_template = KnownConvTemplate(record.template_name);
  if (conv_template == nullptr) return;
  const Target& cpu = record.target;
  if (!conv_template->Supports(record.workload, cpu).ok) return;
  const ConfigSpace space = conv_template->Space(record.workload, cpu);
  const Config usual = conv_template->Default(record.workload, cpu);
  NearestConfig(space, usual, record.config);
  if (!space.WhyInvalid(record.config).empty()) return;
  conv_template->Layouts(record.workload, record.config);
  conv_template->ErrorFactor(record.workload, record.config);
  conv_template->Features(record.workload, record.config, cpu);
  conv_template->Nest(record.workload, record.config, cpu);
  AdoptPostOps(record, std::span(&record.workload, 1));
}

std::span<const std::string_view> RecordWords() {
  static constexpr std::string_view kWords[] = {"direct",
                                                "winograd",
                                                "depthwise",
                                                "portable",
                                                "strassen",
                                                "grouped",
                                                "few_outputs",
                                                "ic_block",
                                                "oc_block",
                                                "rows",
                                                "avx512",
                                                "avx2",
                                                "ok",
                                                "run_crash",
                                                "wrong_answer",
                                                "NCHW",
                                                "NHWC",
                                                "NCHW16c",
                                                "NCHW0c",
                                                "NCHW-1c",
                                                "NCHW9223372036854775807c",
                                                "mb1ic16ih8oc16kh3ph1+bias+relu",
                                                "g8ic8ih4oc8oh4kh1",
                                                "scale_shift+relu>mb1ic16ih8oc16kh1",
                                                "+sum",
                                                "+clip:0:6",
                                                "search",
                                                "retime",
                                                "layouts",
                                                "config",
                                                "workload",
                                                "samples",
                                                "seconds"};
  return kWords;
}

}  // namespace tilesmith::fuzz
