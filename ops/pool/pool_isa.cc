#include "ops/kernels/vectors.h"
#include "ops/pool/pool_loops.h"

HWY_BEFORE_NAMESPACE();
namespace tilesmith::TILESMITH_ISA {
namespace {

template <bool kMax, typename V>
HWY_INLINE V Join(V total, V value) {
  if constexpr (kMax) return Larger(total, value);  // a NaN is passed over
  return hn::Add(total, value);
}
template <bool kMax>
HWY_INLINE float JoinOne(float total, float value) {
  if constexpr (kMax) return value > total ? value : total;
  return total + value;
}

template <bool kMax>
HWY_INLINE float Start() {
  return kMax ? kLowest : 0.0f;
}

// Lanes are adjacent: each output pixel gathers its taps into a register.
template <bool kMax>
HWY_INLINE void PoolPixels(const PoolRow& row) {
  for (int64_t x = 0; x < row.output_width; ++x) {
    const TapRange taps = row.columns[x];
    const int64_t column = x * row.stride - row.left + taps.first * row.dilation;
    const float* in = row.input + column * row.lanes;
    float* out = row.output + x * row.lanes;
    const int64_t step = row.dilation * row.lanes, count = taps.last - taps.first;
    const float divisor = row.row_divisor * row.column_divisors[x];
    ForEachVector(row.lanes, [&](auto d, int64_t lane) {
      auto total = hn::Set(d, Start<kMax>());
      for (int64_t j = 0; j < count; ++j) {
        auto column_total = hn::Set(d, Start<kMax>());
        const float* from = in + j * step + lane;
        for (int64_t i = 0; i < row.rows; ++i)
          column_total = Join<kMax>(column_total, hn::LoadU(d, from + i * row.row_floats));
        total = Join<kMax>(total, column_total);
      }
      hn::StoreU(kMax ? total : hn::Div(total, hn::Set(d, divisor)), d, out + lane);
    });
  }
}

// out[x] = join(out[x], in[x * stride]) with the stride known where it is common.
template <bool kMax>
HWY_INLINE void JoinStrided(const float* in, float* out, int64_t count, int64_t stride) {
  if (stride == 1) {
    ForEachVector(count, [&](auto d, int64_t i) {
      hn::StoreU(Join<kMax>(hn::LoadU(d, out + i), hn::LoadU(d, in + i)), d, out + i);
    });
  } else if (stride == 2) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) out[i] = JoinOne<kMax>(out[i], in[2 * i]);
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) out[i] = JoinOne<kMax>(out[i], in[stride * i]);
  }
}

// Calls body(tag, i) for vectors that cover [0, count), where the last may overlap the one before.
template <typename Body>
HWY_INLINE void Cover(int64_t count, const Body& body) {
  const auto in_steps = [&](auto d, int64_t lanes) {
    for (int64_t i = 0; i + lanes < count; i += lanes) body(d, i);
    body(d, count - lanes);
  };
  if (count >= kFloatLanes) return in_steps(FloatTag(), kFloatLanes);
  if (kFloatLanes > 8 && count >= 8) return in_steps(hn::CappedTag<float, 8>(), 8);
  if (kFloatLanes > 4 && count >= 4) return in_steps(hn::CappedTag<float, 4>(), 4);
  in_steps(hn::CappedTag<float, 1>(), 1);
}

constexpr int64_t kMaxJoined = 2048;  // floats of a row in the stack

// Outputs [first, first + count) of one lane: the rows are joined to one, with what changes nothing in place
// of the padding, and of that the taps. Precondition: what they read has at most kMaxJoined columns.
template <bool kMax>
HWY_INLINE void PoolJoinedRows(const PoolRow& row, int64_t first, int64_t count) {
  HWY_ALIGN float joined[kMaxJoined];
  const int64_t begin = first * row.stride - row.left;  // the input column of joined[0]
  const int64_t width = (count - 1) * row.stride + (row.taps - 1) * row.dilation + 1;
  int64_t low = begin < 0 ? -begin : 0, high = row.input_width - begin;
  low = low < width ? low : width;
  high = high < low ? low : high < width ? high : width;
  for (int64_t i = 0; i < low; ++i) joined[i] = Start<kMax>();
  for (int64_t i = high; i < width; ++i) joined[i] = Start<kMax>();
  if (low < high) {
    Cover(high - low, [&](auto d, int64_t x) {
      auto total = hn::Set(d, Start<kMax>());
      for (int64_t i = 0; i < row.rows; ++i)
        total = Join<kMax>(total, hn::LoadU(d, row.input + i * row.row_floats + begin + low + x));
      hn::StoreU(total, d, joined + low + x);
    });
  }
  float* const out = row.output + first;
  const float* const column_divisors = row.column_divisors + first;
  if (row.stride == 1) {
    Cover(count, [&](auto d, int64_t x) {
      auto total = hn::LoadU(d, joined + x);
      for (int64_t j = 1; j < row.taps; ++j)
        total = Join<kMax>(total, hn::LoadU(d, joined + x + j * row.dilation));
      if constexpr (!kMax) {
        const auto divisors = hn::LoadU(d, column_divisors + x);
        total = hn::Div(total, hn::Mul(divisors, hn::Set(d, row.row_divisor)));
      }
      hn::StoreU(total, d, out + x);
    });
    return;
  }
  for (int64_t x = 0; x < count; ++x) out[x] = joined[x * row.stride];
  for (int64_t j = 1; j < row.taps; ++j) JoinStrided<kMax>(joined + j * row.dilation, out, count, row.stride);
  if constexpr (!kMax) {
    for (int64_t x = 0; x < count; ++x) out[x] /= row.row_divisor * column_divisors[x];
  }
}

// One lane whose taps span more columns than are joined at a time, or none.
template <bool kMax>
HWY_NOINLINE void PoolOneByOne(const PoolRow& row) {
  for (int64_t x = 0; x < row.output_width; ++x) {
    float total = Start<kMax>();
    for (int64_t j = row.columns[x].first; j < row.columns[x].last; ++j) {
      float column_total = Start<kMax>();
      const float* const from = row.input + x * row.stride - row.left + j * row.dilation;
      for (int64_t i = 0; i < row.rows; ++i)
        column_total = JoinOne<kMax>(column_total, from[i * row.row_floats]);
      total = JoinOne<kMax>(total, column_total);
    }
    row.output[x] = kMax ? total : total / (row.row_divisor * row.column_divisors[x]);
  }
}

// Each column of a window is joined from top to bottom, and these from left to right, in any layout.
template <bool kMax>
HWY_INLINE void PoolPlain(const PoolRow& row) {
  const int64_t span = (row.taps - 1) * row.dilation + 1;
  if (row.taps == 0 || span > kMaxJoined) return PoolOneByOne<kMax>(row);
  if ((row.output_width - 1) * row.stride + span <= kMaxJoined)
    return PoolJoinedRows<kMax>(row, 0, row.output_width);
  const int64_t step = (kMaxJoined - span) / row.stride + 1;
  for (int64_t x = 0; x < row.output_width; x += step)
    PoolJoinedRows<kMax>(row, x, row.output_width - x < step ? row.output_width - x : step);
}

// What is joined at a time, in sixteen lanes: lane j takes elements j, j + 16, ... Sums of more floats than
// these are added up in doubles, so that errors do not grow with the size of an image.
constexpr int64_t kJoinedAtOnce = 1024;

template <bool kMax>
struct JoinLanes {
  template <typename V>
  HWY_INLINE V operator()(V total, V value) const {
    return Join<kMax>(total, value);
  }
};

template <bool kMax, typename In>
HWY_INLINE float JoinRun(const In* in, int64_t count) {
  Sixteen all = SetSixteen(Start<kMax>());
  JoinAll(all, in, count, Start<kMax>(), JoinLanes<kMax>());
  return JoinedLanes(all, JoinLanes<kMax>());
}

// Called, as is SumManyPixels: their code would lengthen what small planes run through.
template <typename In>
HWY_NOINLINE float SumOfManyRuns(const In* in, int64_t count) {
  double total = 0;
  for (int64_t i = 0; i < count; i += kJoinedAtOnce)
    total +=
        static_cast<double>(JoinRun<false>(in + i, count - i < kJoinedAtOnce ? count - i : kJoinedAtOnce));
  return static_cast<float>(total);
}

// The maximum or mean of adjacent elements.
template <bool kMax, typename In>
HWY_INLINE float RunOf(const In* in, int64_t count) {
  if constexpr (kMax) return JoinRun<true>(in, count);
  const float total = count <= kJoinedAtOnce ? JoinRun<false>(in, count) : SumOfManyRuns(in, count);
  return total / static_cast<float>(count);
}

// The mean of the rows' means, as there are where lanes are pooled row by row.
template <bool kMax, typename In, typename Out>
HWY_INLINE void GlobalPlain(const In* in, Out* out, int64_t pixels, int64_t width) {
  if (width == pixels || width == 1) return StoreOne(RunOf<kMax>(in, pixels), out);
  const int64_t rows = pixels / width;
  HWY_ALIGN float of_rows[kJoinedAtOnce];
  double total = 0;
  float largest = kLowest;
  for (int64_t y = 0; y < rows; y += kJoinedAtOnce) {
    const int64_t count = rows - y < kJoinedAtOnce ? rows - y : kJoinedAtOnce;
    for (int64_t i = 0; i < count; ++i) of_rows[i] = RunOf<kMax>(in + (y + i) * width, width);
    const float part = JoinRun<kMax>(of_rows, count);
    total += static_cast<double>(part);
    largest = JoinOne<true>(largest, part);
  }
  StoreOne(kMax ? largest : static_cast<float>(total) / static_cast<float>(rows), out);
}

// The maximum or sum over pixels, of as many channels as a vector has: of the lanes kLane, kLane + kStep, ...
// of sixteen. Lanes that no pixel has are left out, which is the same as joining what they start with.
template <bool kMax, int kLane, int kStep, class D, typename In>
HWY_INLINE hn::VFromD<D> JoinPixelsOf(D d, const In* in, int64_t stride, int64_t pixels) {
  if constexpr (kStep == 16) {
    auto lane = hn::Set(d, Start<kMax>());
    for (int64_t pixel = kLane; pixel < pixels; pixel += 16)
      lane = Join<kMax>(lane, LoadFloats(d, in + pixel * stride));
    return lane;
  } else {
    const auto low = JoinPixelsOf<kMax, kLane, 2 * kStep>(d, in, stride, pixels);
    if (kLane + kStep >= pixels) return low;
    return Join<kMax>(low, JoinPixelsOf<kMax, kLane + kStep, 2 * kStep>(d, in, stride, pixels));
  }
}
template <bool kMax, class D, typename In>
HWY_INLINE hn::VFromD<D> JoinPixels(D d, const In* in, int64_t stride, int64_t pixels) {
  return JoinPixelsOf<kMax, 0, 1>(d, in, stride, pixels);
}

template <class D, typename In>
HWY_NOINLINE hn::VFromD<D> SumManyPixels(D d, const In* in, int64_t stride, int64_t pixels) {
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));
  HWY_ALIGN float part[kLanes];
  double totals[kLanes] = {};
  for (int64_t pixel = 0; pixel < pixels; pixel += kJoinedAtOnce) {
    const int64_t count = pixels - pixel < kJoinedAtOnce ? pixels - pixel : kJoinedAtOnce;
    hn::Store(JoinPixels<false>(d, in + pixel * stride, stride, count), d, part);
    for (int64_t lane = 0; lane < kLanes; ++lane) totals[lane] += static_cast<double>(part[lane]);
  }
  for (int64_t lane = 0; lane < kLanes; ++lane) part[lane] = static_cast<float>(totals[lane]);
  return hn::Load(d, part);
}

template <bool kMax, typename In, typename Out>
HWY_INLINE void GlobalLanes(const In* in, Out* out, int64_t lanes, int64_t stride, int64_t pixels,
                            int64_t width) {
  if (stride == 1) return GlobalPlain<kMax>(in, out, pixels, width);
  ForEachVector(lanes, [&](auto d, int64_t lane) {
    if constexpr (kMax) {
      StoreFloats(JoinPixels<true>(d, in + lane, stride, pixels), d, out + lane);
    } else {
      const auto sum = pixels <= kJoinedAtOnce ? JoinPixels<false>(d, in + lane, stride, pixels)
                                               : SumManyPixels(d, in + lane, stride, pixels);
      StoreFloats(hn::Div(sum, hn::Set(d, static_cast<float>(pixels))), d, out + lane);
    }
  });
}

}  // namespace

void MaxPoolRow(const PoolRow& row) { row.lanes == 1 ? PoolPlain<true>(row) : PoolPixels<true>(row); }

void AveragePoolRow(const PoolRow& row) { row.lanes == 1 ? PoolPlain<false>(row) : PoolPixels<false>(row); }

template <typename In, typename Out>
void GlobalMaxLanes(const In* in, Out* out, int64_t lanes, int64_t stride, int64_t pixels, int64_t width) {
  GlobalLanes<true>(in, out, lanes, stride, pixels, width);
}

template <typename In, typename Out>
void GlobalAverageLanes(const In* in, Out* out, int64_t lanes, int64_t stride, int64_t pixels,
                        int64_t width) {
  GlobalLanes<false>(in, out, lanes, stride, pixels, width);
}

template void GlobalMaxLanes(const float*, float*, int64_t, int64_t, int64_t, int64_t);
template void GlobalMaxLanes(const float*, uint16_t*, int64_t, int64_t, int64_t, int64_t);
template void GlobalMaxLanes(const uint16_t*, float*, int64_t, int64_t, int64_t, int64_t);
template void GlobalMaxLanes(const uint16_t*, uint16_t*, int64_t, int64_t, int64_t, int64_t);
template void GlobalAverageLanes(const float*, float*, int64_t, int64_t, int64_t, int64_t);
template void GlobalAverageLanes(const float*, uint16_t*, int64_t, int64_t, int64_t, int64_t);
template void GlobalAverageLanes(const uint16_t*, float*, int64_t, int64_t, int64_t, int64_t);
template void GlobalAverageLanes(const uint16_t*, uint16_t*, int64_t, int64_t, int64_t, int64_t);

}  // namespace tilesmith::TILESMITH_ISA
HWY_AFTER_NAMESPACE();
