#include <unistd.h>

#include "tests/tuner/support/faulty_templates.h"
#include "tuner/measure/worker.h"

int main() {
  return tilesmith::MeasureWorkerMain(STDIN_FILENO, STDOUT_FILENO, tilesmith::DetectCpu(),
                                      tilesmith::FindFaultyTemplate);
}
