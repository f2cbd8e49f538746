// A workload's text, and what every template says about it.
#include "ops/conv/workload.h"

#include "layouts/base/error.h"
#include "templates/base/conv_template.h"
#include "tests/fuzz/targets/record_uses.h"
#include "tests/fuzz/targets/targets.h"

namespace tilesmith::fuzz {
namespace {

constexpr std::string_view kWords[] = {"m",
                                       "n",
                                       "k",
                                       "ta1",
                                       "tb1",
                                       "g",
                                       "mb",
                                       "ic",
                                       "ih",
                                       "iw",
                                       "oc",
                                       "oh",
                                       "ow",
                                       "kh",
                                       "kw",
                                       "sh",
                                       "sw",
                                       "ph",
                                       "pw",
                                       "dh",
                                       "dw",
                                       "n\"a\"",
                                       "+bias",
                                       "+sum",
                                       "+relu",
                                       "+clip:0:6",
                                       "+clip:-1e30:1e30",
                                       "+leaky_relu:0.1",
                                       ">",
                                       "scale_shift>",
                                       "scale_shift+relu>",
                                       "mb1g32ic32ih8oc32kh3ph1+relu>"};

// What was accepted must be.
ConvWorkload Reread(const std::string& text) {
  try {
    return ParseWorkload(text);
  } catch (const Error& error) {
    throw std::logic_error(error.what());
  }
}

void Run(const std::string& input) {
  const ConvWorkload workload = ParseWorkload(input);
  const std::string text = WorkloadToString(workload);
  Require(Reread(text) == workload, "the canonical form is the same workload");
  Require(WorkloadToString(Reread(text)) == text, "and canonical itself");
  workload.flops();
  Target cpu = FuzzCpu();
  cpu.isa = kIsas[input.size() % std::size(kIsas)];
  for (const ConvTemplate* conv_template : ConvTemplates()) {
    if (!conv_template->Supports(workload, cpu).ok) continue;
    const ConfigSpace space = conv_template->Space(workload, cpu);
    const Config usual = conv_template->Default(workload, cpu);
    Require(space.WhyInvalid(usual).empty(),
            std::string(conv_template->Name()) + "'s default is valid: " + space.WhyInvalid(usual));
    conv_template->Features(workload, usual, cpu);
    conv_template->Nest(workload, usual, cpu);
  }
}

}  // namespace

FuzzTarget WorkloadTarget() {
  return {.name = "workload",
          .reads = "a workload's text, and every template's space for it",
          .run = Run,
          .mutate = MutateText,
          .words = kWords,
          .short_runs = 3000};
}

}  // namespace tilesmith::fuzz
