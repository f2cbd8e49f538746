// How far apart the cores of a team are.
//
// Virtual cores need not stay where they are: a host moves them into one core complex or apart, and whatever
// passes from core to core then, tensors as well as signals, takes two to four times as long. On such a
// machine the same network takes one time now and another a few seconds later, while the FMA peak stays as it
// was (figures in README.md). What was seen at one distance is not to be compared with what was seen at
// another. Source: original.
#pragma once

namespace tilesmith {

// Seconds of a SpinBarrier of the team: a signal from core to core and back. The median of several, which
// takes some 30 us on two cores; 0 for one thread.
double BarrierSeconds(int threads);

// Whether two barriers tell of the same distance: neither takes more than 1.5 times as long as the other.
bool AreAlike(double a, double b);

}  // namespace tilesmith
