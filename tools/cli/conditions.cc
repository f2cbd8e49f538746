#include "tools/cli/conditions.h"

namespace tilesmith {

void DeclareConditions(Args& args, ColdOrWarm* conditions) {
  args.Choice(
      "--conditions", {"auto", "warm", "cold"},
      "Weights warm in cache or from memory; auto: cold for networks whose weights take more than half of "
      "the last-level cache",
      [conditions](const std::string& choice) {
        *conditions = choice == "auto" ? ColdOrWarm() : choice == "cold";
      });
}

void DeclareAccuracy(Args& args, AccuracyLimits* limits) {
  args.Real("--max-error", &limits->max_error,
            "Only schedules whose error, relative to the outputs' root mean square, was at most this");
  args.Texts("--forbid", &limits->forbidden_templates,
             "A template not to use, such as winograd; may be repeated", "NAME");
}

}  // namespace tilesmith
