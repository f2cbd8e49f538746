// Where the cores of a team are, as far as they show it.
//
// Virtual cores need not stay where they are: a host moves them into one core complex or apart, and whatever
// passes from core to core then, tensors as well as signals, takes two to four times as long; or it has two
// of them share one core for a while, whose arithmetic each gets half of. On such a machine the same network
// takes one time now and another a few seconds later (figures in tuner/README.md). What was seen on cores
// placed one way is not to be compared with what was seen on cores placed another. Source: original.
#pragma once

namespace tilesmith {

// All 0 for one thread, or when it is unknown.
struct CorePlacement {
  double barrier_seconds = 0;     // of a SpinBarrier of the team: a signal from core to core and back
  double arithmetic_seconds = 0;  // of a fixed number of multiplications, by all threads at once

  bool is_known() const { return arithmetic_seconds > 0; }
  bool operator==(const CorePlacement&) const = default;
};

// The medians of several barriers and multiplications in turns, which take some 30 us on two cores.
CorePlacement SeePlacement(int threads);

// Whether arithmetic takes no more than 1.5 times as long in one as in the other.
bool ComputeAlike(const CorePlacement& a, const CorePlacement& b);

// How far from each other two seconds of a barrier are, whichever is more: the logarithm of their ratio.
double DistanceGap(double a, double b);

// Whether two tell of the same placement: they compute alike, and neither's barriers take more than 1.5 times
// as long as the other's.
bool AreAlike(const CorePlacement& a, const CorePlacement& b);

// Whether a network is likely to run faster on cores placed like `a` than like `b`: they compute faster or,
// computing as fast, are nearer to each other. Of those that are alike, the one whose barriers take less
// time.
bool IsBetter(const CorePlacement& a, const CorePlacement& b);

// `seen`, if it is better than the best so far, or that is unknown.
CorePlacement BetterOf(const CorePlacement& best, const CorePlacement& seen);

}  // namespace tilesmith
