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
      for (int64_t i = 0; i < row.rows; ++i) {
        const float* from = in + i * row.row_floats + lane;
        for (int64_t j = 0; j < count; ++j) total = Join<kMax>(total, hn::LoadU(d, from + j * step));
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

// The columns whose tap j lies inside the input are one range: x >= first and x < last.
HWY_INLINE TapRange ColumnsOfTap(const PoolRow& row, int64_t j) {
  int64_t first = 0, last = row.output_width;
  while (first < last && (row.columns[first].first > j || row.columns[first].last <= j)) ++first;
  while (last > first && (row.columns[last - 1].first > j || row.columns[last - 1].last <= j)) --last;
  return {first, last};
}

// One lane, so neighbours in memory are neighbours in the row: the output row collects tap after tap.
template <bool kMax>
HWY_INLINE void PoolTaps(const PoolRow& row) {
  for (int64_t x = 0; x < row.output_width; ++x) row.output[x] = Start<kMax>();
  for (int64_t j = 0; j < row.taps; ++j) {
    const TapRange columns = ColumnsOfTap(row, j);
    if (columns.first == columns.last) continue;
    for (int64_t i = 0; i < row.rows; ++i) {
      const float* in =
          row.input + i * row.row_floats + columns.first * row.stride - row.left + j * row.dilation;
      JoinStrided<kMax>(in, row.output + columns.first, columns.last - columns.first, row.stride);
    }
  }
  if constexpr (!kMax) {
    for (int64_t x = 0; x < row.output_width; ++x) row.output[x] /= row.row_divisor * row.column_divisors[x];
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

// Stride 1: the rows are joined to one, with what changes nothing in place of the padding, and that is joined
// with itself, shifted by each tap.
template <bool kMax>
HWY_INLINE void PoolJoinedRows(const PoolRow& row) {
  HWY_ALIGN float joined[kMaxJoined];
  const int64_t width = row.output_width + (row.taps - 1) * row.dilation;
  const int64_t inside = row.left + row.input_width < width ? row.input_width : width - row.left;
  for (int64_t i = 0; i < row.left; ++i) joined[i] = Start<kMax>();
  for (int64_t i = row.left + inside; i < width; ++i) joined[i] = Start<kMax>();
  Cover(inside, [&](auto d, int64_t x) {
    auto total = hn::Set(d, Start<kMax>());
    for (int64_t i = 0; i < row.rows; ++i)
      total = Join<kMax>(total, hn::LoadU(d, row.input + i * row.row_floats + x));
    hn::StoreU(total, d, joined + row.left + x);
  });
  Cover(row.output_width, [&](auto d, int64_t x) {
    auto total = hn::LoadU(d, joined + x);
    for (int64_t j = 1; j < row.taps; ++j)
      total = Join<kMax>(total, hn::LoadU(d, joined + x + j * row.dilation));
    if constexpr (!kMax) {
      const auto divisors = hn::LoadU(d, row.column_divisors + x);
      total = hn::Div(total, hn::Mul(divisors, hn::Set(d, row.row_divisor)));
    }
    hn::StoreU(total, d, row.output + x);
  });
}

template <bool kMax>
HWY_INLINE void PoolPlain(const PoolRow& row) {
  const int64_t width = row.output_width + (row.taps - 1) * row.dilation;
  const bool joined = row.stride == 1 && row.taps > 0 && row.left < width && width <= kMaxJoined;
  joined ? PoolJoinedRows<kMax>(row) : PoolTaps<kMax>(row);
}

// Sums of more floats than these are added up in doubles, so that errors do not grow with the size of an
// image.
constexpr int64_t kFloatPixels = 128;  // of one lane
constexpr int64_t kFloatRun = 64 * kFloatLanes;

template <bool kMax, typename In>
HWY_INLINE float JoinRun(const In* in, int64_t pixels) {
  const FloatTag d;
  FloatVector even = hn::Set(d, Start<kMax>()), odd = even;
  int64_t i = 0;
  for (; i + 2 * kFloatLanes <= pixels; i += 2 * kFloatLanes) {
    even = Join<kMax>(even, LoadFloats(d, in + i));
    odd = Join<kMax>(odd, LoadFloats(d, in + i + kFloatLanes));
  }
  if (i + kFloatLanes <= pixels) {
    even = Join<kMax>(even, LoadFloats(d, in + i));
    i += kFloatLanes;
  }
  const FloatVector all = Join<kMax>(even, odd);
  float total = hn::GetLane(kMax ? hn::MaxOfLanes(d, all) : hn::SumOfLanes(d, all));
  for (; i < pixels; ++i) total = JoinOne<kMax>(total, LoadOne(in + i));
  return total;
}

// Called, as is SumManyPixels: their code would lengthen what small planes run through.
template <typename In>
HWY_NOINLINE float SumOfManyRuns(const In* in, int64_t pixels) {
  double total = 0;
  for (int64_t i = 0; i < pixels; i += kFloatRun)
    total += static_cast<double>(JoinRun<false>(in + i, pixels - i < kFloatRun ? pixels - i : kFloatRun));
  return static_cast<float>(total);
}

template <bool kMax, typename In, typename Out>
HWY_INLINE void GlobalPlain(const In* in, Out* out, int64_t pixels) {
  const float total = kMax || pixels <= kFloatRun ? JoinRun<kMax>(in, pixels) : SumOfManyRuns(in, pixels);
  StoreOne(kMax ? total : total / static_cast<float>(pixels), out);
}

// The maximum or sum over pixels of as many lanes as a vector has.
template <bool kMax, class D, typename In>
HWY_INLINE hn::VFromD<D> JoinPixels(D d, const In* in, int64_t stride, int64_t pixels) {
  auto even = hn::Set(d, Start<kMax>()), odd = even;
  int64_t pixel = 0;
  for (; pixel + 2 <= pixels; pixel += 2) {
    even = Join<kMax>(even, LoadFloats(d, in + pixel * stride));
    odd = Join<kMax>(odd, LoadFloats(d, in + (pixel + 1) * stride));
  }
  if (pixel < pixels) even = Join<kMax>(even, LoadFloats(d, in + pixel * stride));
  return Join<kMax>(even, odd);
}

template <class D, typename In>
HWY_NOINLINE hn::VFromD<D> SumManyPixels(D d, const In* in, int64_t stride, int64_t pixels) {
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));
  HWY_ALIGN float part[kLanes];
  double totals[kLanes] = {};
  for (int64_t pixel = 0; pixel < pixels; pixel += kFloatPixels) {
    const int64_t count = pixels - pixel < kFloatPixels ? pixels - pixel : kFloatPixels;
    hn::Store(JoinPixels<false>(d, in + pixel * stride, stride, count), d, part);
    for (int64_t lane = 0; lane < kLanes; ++lane) totals[lane] += static_cast<double>(part[lane]);
  }
  for (int64_t lane = 0; lane < kLanes; ++lane) part[lane] = static_cast<float>(totals[lane]);
  return hn::Load(d, part);
}

template <bool kMax, typename In, typename Out>
HWY_INLINE void GlobalLanes(const In* in, Out* out, int64_t lanes, int64_t stride, int64_t pixels) {
  if (stride == 1) return GlobalPlain<kMax>(in, out, pixels);
  ForEachVector(lanes, [&](auto d, int64_t lane) {
    if constexpr (kMax) {
      StoreFloats(JoinPixels<true>(d, in + lane, stride, pixels), d, out + lane);
    } else {
      const auto sum = pixels <= kFloatPixels ? JoinPixels<false>(d, in + lane, stride, pixels)
                                              : SumManyPixels(d, in + lane, stride, pixels);
      StoreFloats(hn::Div(sum, hn::Set(d, static_cast<float>(pixels))), d, out + lane);
    }
  });
}

}  // namespace

void MaxPoolRow(const PoolRow& row) { row.lanes == 1 ? PoolPlain<true>(row) : PoolPixels<true>(row); }

void AveragePoolRow(const PoolRow& row) { row.lanes == 1 ? PoolPlain<false>(row) : PoolPixels<false>(row); }

template <typename In, typename Out>
void GlobalMaxLanes(const In* in, Out* out, int64_t lanes, int64_t stride, int64_t pixels) {
  GlobalLanes<true>(in, out, lanes, stride, pixels);
}

template <typename In, typename Out>
void GlobalAverageLanes(const In* in, Out* out, int64_t lanes, int64_t stride, int64_t pixels) {
  GlobalLanes<false>(in, out, lanes, stride, pixels);
}

template void GlobalMaxLanes(const float*, float*, int64_t, int64_t, int64_t);
template void GlobalMaxLanes(const float*, uint16_t*, int64_t, int64_t, int64_t);
template void GlobalMaxLanes(const uint16_t*, float*, int64_t, int64_t, int64_t);
template void GlobalMaxLanes(const uint16_t*, uint16_t*, int64_t, int64_t, int64_t);
template void GlobalAverageLanes(const float*, float*, int64_t, int64_t, int64_t);
template void GlobalAverageLanes(const float*, uint16_t*, int64_t, int64_t, int64_t);
template void GlobalAverageLanes(const uint16_t*, float*, int64_t, int64_t, int64_t);
template void GlobalAverageLanes(const uint16_t*, uint16_t*, int64_t, int64_t, int64_t);

}  // namespace tilesmith::TILESMITH_ISA
HWY_AFTER_NAMESPACE();
