// What ops run on beside a network's program.
#pragma once

#include "layouts/base/target.h"

namespace tilesmith {

struct OpMachine {
  Target cpu;
  int threads = 1;
};

}  // namespace tilesmith
