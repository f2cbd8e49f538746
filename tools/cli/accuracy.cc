#include "tools/cli/accuracy.h"

namespace tilesmith {

void DeclareAccuracy(Args& args, AccuracyLimits* limits) {
  args.Real("--max-error", &limits->max_error,
            "Only schedules whose error, relative to the outputs' root mean square, was at most this");
  args.Texts("--forbid", &limits->forbidden_templates,
             "A template not to use, such as winograd; may be repeated", "NAME");
}

}  // namespace tilesmith
