// Keeps measurements out of the moments in which the threads of the team share a core, with each other or
// with somebody else's (layouts/measure/core_placement.h): what computes takes up to twice as long then. On
// hosts that do this it lasts a tenth of a second or so. Source: original.
#pragma once

#include "layouts/measure/core_placement.h"

namespace tilesmith {

// One thread at a time; of one thread nothing is seen.
class OwnCores {
 public:
  explicit OwnCores(int threads) : threads_(threads) {}

  // Returns when the cores compute as fast as they have been seen to; after 150 ms anyway, and what they do
  // then is what is expected from now on.
  void Await();
  // Whether they still do.
  bool AreKept();

 private:
  int threads_;
  CorePlacement fastest_;  // of those seen; unknown: nothing seen yet
};

}  // namespace tilesmith
