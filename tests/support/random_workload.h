// Random conv workloads meant to break kernels: channel counts around block sizes and primes, padding beyond
// the kernel and uneven, strides larger than the kernel, dilation, groups, batches.
#pragma once

#include <vector>

#include "layouts/base/error.h"
#include "ops/conv/workload.h"
#include "tests/support/random.h"

namespace tilesmith {

inline Activation RandomFusableActivation(TestRandom& random) {
  switch (random.Integer(0, 6)) {
    case 0:
      return {ActivationKind::kRelu};
    case 1:
      return {ActivationKind::kClip, -3, 6};
    case 2:
      return {ActivationKind::kClip, 2, 9};  // padding lanes would become 2
    case 3:
      return {ActivationKind::kLeakyRelu, 0.5f};
    case 4:
      return {ActivationKind::kHardSigmoid, 0.25f, 0.5f};
    case 5:
      return {ActivationKind::kHardSwish};
    default:
      return {};
  }
}

// Sizes around vectors and panels, either side stored transposed.
inline ConvWorkload RandomProduct(TestRandom& random) {
  const auto size = [&](std::initializer_list<int64_t> values) { return random.Pick(values); };
  const ProductDims sizes = {.count = random.Integer(1, 4),
                             .rows = size({1, 2, 5, 6, 7, 13, 31, 96, 97, 130}),
                             .columns = size({1, 7, 8, 9, 15, 16, 17, 31, 33, 49, 100, 129}),
                             .terms = size({1, 3, 8, 31, 33, 64, 100, 257})};
  return ProductWorkload(sizes, {random.Integer(0, 1) == 1, random.Integer(0, 1) == 1});
}

// Always valid; small enough that a naive reference takes a millisecond or so.
inline ConvWorkload RandomWorkload(TestRandom& random) {
  const auto pick = [&](std::initializer_list<int64_t> values) { return random.Pick(values); };
  const auto once_in = [&](int n) { return random.Integer(1, n) == 1; };
  for (;;) {
    ConvWorkload w;
    w.mb = random.Integer(1, 2);
    if (once_in(6)) {  // depthwise
      w.g = w.ic = w.oc = pick({1, 3, 8, 15, 16, 17, 31, 33, 48, 64, 77, 100});
    } else if (once_in(5)) {
      w.g = pick({2, 3, 4, 9, 17});
      w.ic = w.g * pick({1, 2, 3, 4, 8, 16, 32});
      w.oc = once_in(2) ? w.ic : w.g * pick({1, 4, 16, 32});
    } else {
      w.ic = pick({1, 3, 7, 8, 15, 16, 17, 31, 33, 35, 64, 100});
      w.oc = pick({1, 2, 3, 4, 15, 16, 17, 31, 33, 48, 64, 77, 100});
    }
    if (once_in(12)) {  // many channels, few pixels
      w.g = 1;
      w.ic = pick({96, 128, 192});
      w.oc = pick({96, 128, 160});
      w.oh = random.Integer(1, 6);
      w.ow = random.Integer(1, 9);
      w.sh = w.sw = random.Integer(1, 2);
      w.ih = (w.oh - 1) * w.sh + random.Integer(1, w.sh);
      w.iw = (w.ow - 1) * w.sw + random.Integer(1, w.sw);
    } else if (once_in(3)) {
      w.kh = w.kw = 1;
      w.ih = random.Integer(1, 18);
      w.iw = random.Integer(1, 30);
      w.oh = w.ih;
      w.ow = w.iw;
    } else {
      w.kh = pick({1, 2, 3, 3, 5, 7});
      w.kw = once_in(2) ? w.kh : pick({1, 2, 3, 5, 7});
      w.sh = once_in(2) ? 1 : random.Integer(1, 4);
      w.sw = once_in(2) ? w.sh : random.Integer(1, 4);
      w.dh = once_in(4) ? random.Integer(1, 2) : 0;
      w.dw = once_in(4) ? random.Integer(1, 2) : 0;
      w.ph = random.Integer(0, w.kh + 1);
      w.pw = random.Integer(0, w.kw + 1);
      w.ih = random.Integer(1, 16);
      w.iw = random.Integer(1, 28);
      const int64_t rows = w.ih + w.ph + random.Integer(0, 2) - ((w.kh - 1) * (w.dh + 1) + 1);
      const int64_t columns = w.iw + w.pw + random.Integer(0, 2) - ((w.kw - 1) * (w.dw + 1) + 1);
      if (rows < 0 || columns < 0) continue;
      w.oh = rows / w.sh + 1;
      w.ow = columns / w.sw + 1;
    }
    w.post.bias = once_in(2);
    w.post.sum = once_in(2);
    w.post.activation = RandomFusableActivation(random);
    return w;
  }
}

// Sizes of every magnitude that a workload may have, so that what multiplies them meets the largest products,
// and kernels far longer than any register tile or than the input. Always valid; not to be computed.
inline ConvWorkload RandomExtremeWorkload(TestRandom& random) {
  const auto once_in = [&](int n) { return random.Integer(1, n) == 1; };
  const auto size = [&](int bits) { return random.Integer(1, int64_t{1} << random.Integer(0, bits)); };
  const auto usually = [&](int n, int bits) { return once_in(n) ? size(bits) : size(2); };
  for (;;) {
    ConvWorkload w;
    w.mb = usually(3, 16);
    if (once_in(4)) {
      w.g = w.ic = w.oc = size(24);
    } else {
      w.g = once_in(3) ? size(12) : 1;
      const int64_t unit = w.g > 1 ? 1 : once_in(2) ? 64 : 1;  // whole vectors
      w.ic = w.g * unit * (w.g == 1 ? usually(2, 16) : size(once_in(2) ? 8 : 1));
      w.oc = once_in(2) ? w.ic : w.g * unit * usually(2, w.g == 1 ? 16 : 8);
    }
    const bool square = once_in(2), pointwise = once_in(4);
    w.kh = pointwise ? 1 : once_in(3) ? 3 : usually(2, 21);
    w.kw = square || pointwise ? w.kh : usually(2, 21);
    w.sh = once_in(4) ? usually(3, 24) : 1;
    w.sw = square ? w.sh : usually(4, 24);
    w.dh = once_in(4) ? size(once_in(3) ? 24 : 4) - 1 : 0;
    w.dw = square ? w.dh : once_in(4) ? size(once_in(3) ? 24 : 4) - 1 : 0;
    w.ih = size(once_in(4) ? 22 : 10);
    w.iw = square ? w.ih : size(once_in(4) ? 22 : 10);
    w.ph = once_in(2) ? w.kh / 2 : usually(4, 20) - 1;
    w.pw = square ? w.ph : usually(4, 20) - 1;
    const int64_t rows = w.ih + 2 * w.ph - ((w.kh - 1) * (w.dh + 1) + 1);
    const int64_t columns = w.iw + 2 * w.pw - ((w.kw - 1) * (w.dw + 1) + 1);
    if (rows < 0 || columns < 0) continue;
    w.oh = rows / w.sh + 1;
    w.ow = columns / w.sw + 1;
    w.post.bias = once_in(2);
    if (once_in(8)) w.pre.scale_shift = true;
    if (!w.fused() && once_in(6)) {  // a 1x1 conv behind it
      ConvWorkload main;
      main.mb = w.mb, main.ic = w.oc, main.ih = main.oh = w.oh, main.iw = main.ow = w.ow;
      main.oc = usually(2, 20);
      main.before = {w};
      w = main;
    }
    try {
      ValidateWorkload(w);
      return w;
    } catch (const Error&) {  // larger than any tensor, mostly
    }
  }
}

// One after which integers are still multiples of a quarter, so that a conv that follows is exact.
inline Activation RandomExactActivation(TestRandom& random) {
  for (;;) {
    const Activation activation = RandomFusableActivation(random);
    if (activation.kind != ActivationKind::kHardSwish) return activation;
  }
}

// A 1x1 or a depthwise conv of a given input, valid unless the kernel does not fit: then oh or ow is 0.
inline ConvWorkload RandomHalfOfPair(TestRandom& random, const Shape& input, bool depthwise) {
  ConvWorkload w;
  w.mb = input[0], w.ic = input[1], w.ih = input[2], w.iw = input[3];
  w.oc = depthwise ? w.ic : random.Pick(std::vector<int64_t>{1, 3, 8, 15, 16, 17, 33, 64, 100});
  if (depthwise) {
    w.g = w.ic;
    w.kh = w.kw = random.Pick(std::vector<int64_t>{3, 3, 5});
    w.sh = w.sw = random.Integer(1, 2);
    w.ph = random.Integer(0, w.kh - 1);
    w.pw = random.Integer(0, w.kw - 1);
  }
  const auto size = [&](int64_t in, int64_t pad) {
    const int64_t room = in + pad + random.Integer(0, pad) - w.kh;
    return room < 0 ? 0 : room / w.sh + 1;
  };
  w.oh = size(w.ih, w.ph);
  w.ow = size(w.iw, w.pw);
  w.post.bias = random.Integer(0, 1) == 1;
  w.post.activation = RandomExactActivation(random);
  return w;
}

// With something in front of the conv: input ops before anything, a depthwise conv before a 1x1, or the other
// way round. Always valid.
inline ConvWorkload RandomFusedWorkload(TestRandom& random) {
  if (random.Integer(0, 1) == 0) {
    ConvWorkload w = RandomWorkload(random);
    w.pre = {random.Integer(0, 3) != 0, RandomExactActivation(random)};
    if (!w.pre.any()) w.pre.scale_shift = true;
    return w;
  }
  const bool depthwise_first = random.Integer(0, 1) == 0;
  for (;;) {
    const Shape input = {random.Integer(1, 2),
                         random.Pick(std::vector<int64_t>{1, 3, 8, 16, 17, 32, 33, 64, 100}),
                         random.Integer(1, 16), random.Integer(1, 28)};
    const ConvWorkload first = RandomHalfOfPair(random, input, depthwise_first);
    if (first.oh < 1 || first.ow < 1) continue;
    ConvWorkload w = RandomHalfOfPair(random, first.output_shape(), !depthwise_first);
    if (w.oh < 1 || w.ow < 1) continue;
    w.before = {first};
    w.post.sum = random.Integer(0, 1) == 1;
    w.post.activation = RandomFusableActivation(random);
    return w;
  }
}

// One that is reproducible by Winograd's algorithm.
inline ConvWorkload RandomOrderedByTiles(TestRandom& random) {
  ConvWorkload w;
  w.mb = random.Integer(1, 2);
  w.ic = random.Pick(std::vector<int64_t>{16, 19, 32, 40, 64, 67, 80, 131});
  w.oc = random.Pick(std::vector<int64_t>{16, 17, 32, 35, 48, 64});
  w.kh = w.kw = 3;
  w.ph = random.Integer(0, 2);
  w.pw = random.Integer(0, 2);
  w.ih = random.Integer(14, 19);
  w.iw = random.Integer(14, 27);
  w.oh = w.ih + 2 * w.ph - 2;
  w.ow = w.iw + 2 * w.pw - 2;
  w.post.bias = random.Integer(0, 1) == 1;
  w.post.sum = random.Integer(0, 2) == 0;
  w.post.activation = RandomFusableActivation(random);
  return w;
}

}  // namespace tilesmith
