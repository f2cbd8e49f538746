#include "layouts/base/simd.h"
#include "templates/portable_winograd/tile_loops.h"

// Offsets inside a tile are small. NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)
namespace tilesmith::TILESMITH_ISA {
namespace {

constexpr int kT = kWinogradWindow, kPartLanes = kWidth;
using PartVector = Vector<kPartLanes>;

// The sum of those terms whose values lie in [first, last).
template <typename Value>
PartVector Evaluate(const WinogradSum& sum, int first, int last, const Value& value) {
  PartVector result = {};
  bool begun = false;
  for (int i = 0; i < sum.count; ++i) {
    const auto [coefficient, index] = sum.terms[i];
    if (index < first || index >= last) continue;
    const PartVector x = value(index);
    if (!begun) {
      result = coefficient == 1 ? x : coefficient * x;
      begun = true;
    } else if (coefficient == 1) {
      result = result + x;
    } else if (coefficient == -1) {
      result = result - x;
    } else {
      result = MultiplyAdd(Splat<kPartLanes>(coefficient), x, result);
    }
  }
  return result;
}

void InputRow(const WinogradMaps& maps, const WinogradInput& in, int lane, int row, const PartVector* t) {
  const auto value = [&](int k) { return t[k]; };
  const auto store = [&](int column, PartVector v) {
    Store<kPartLanes>(in.v + (row * kT + column) * in.v_stride + lane, v);
  };
  for (int q = 0; q < kWinogradPairs; ++q) {
    const PartVector even = Evaluate(maps.even[q], in.first_column, in.last_column, value);
    const PartVector odd = Evaluate(maps.odd[q], in.first_column, in.last_column, value);
    store(1 + 2 * q, even + odd);
    store(2 + 2 * q, even - odd);
  }
  store(0, Evaluate(maps.ends[0], in.first_column, in.last_column, value));
  store(kT - 1, Evaluate(maps.ends[1], in.first_column, in.last_column, value));
}

}  // namespace

void TransformWinogradInput(const WinogradMaps& maps, const WinogradInput& in) {
  for (int lane = 0; lane < kWinogradLanes; lane += kPartLanes) {
    PartVector upper[kT], lower[kT];
    const auto columns = [&](const auto& of_column) {
      for (int column = in.first_column; column < in.last_column; ++column) {
        of_column(column, [&](int row) {
          return Load<kPartLanes>(in.d + (row * kT + column) * kWinogradLanes + lane);
        });
      }
    };
    for (int q = 0; q < kWinogradPairs; ++q) {
      columns([&](int column, const auto& value) {
        const PartVector even = Evaluate(maps.even[q], in.first_row, in.last_row, value);
        const PartVector odd = Evaluate(maps.odd[q], in.first_row, in.last_row, value);
        upper[column] = even + odd;
        lower[column] = even - odd;
      });
      InputRow(maps, in, lane, 1 + 2 * q, upper);
      InputRow(maps, in, lane, 2 + 2 * q, lower);
    }
    for (int end = 0; end < 2; ++end) {
      columns([&](int column, const auto& value) {
        upper[column] = Evaluate(maps.ends[end], in.first_row, in.last_row, value);
      });
      InputRow(maps, in, lane, end * (kT - 1), upper);
    }
  }
}

void MultiplyWinogradTile(const WinogradMaps& maps, const WinogradProduct& p) {
  constexpr int kSums = kWinogradPairs + 2;  // what a row of A^T adds up
  const int64_t u_stride = p.channels * kWinogradLanes;
  for (int lane = 0; lane < kWinogradLanes; lane += kPartLanes) {
    PartVector m[kT * kT];
    for (int element = 0; element < kT * kT; ++element) {
      const float* v = p.v + element * p.v_stride;
      const float* u = p.u + element * u_stride + lane;
      for (int64_t first = 0; first < p.channels; first += winograd::kChannelsPerPass) {
        const int64_t end =
            first + winograd::kChannelsPerPass < p.channels ? first + winograd::kChannelsPerPass : p.channels;
        PartVector sum = {};
        for (int64_t c = first; c < end; ++c)
          sum = MultiplyAdd(Splat<kPartLanes>(v[c]), Load<kPartLanes>(u + c * kWinogradLanes), sum);
        m[element] = first == 0 ? sum : sum + m[element];
      }
    }
    // A row of A^T, `of` giving the elements that it is of.
    const auto row_of = [&](const WinogradSum* rows, int k, const auto& of) {
      PartVector values[kSums];
      for (int q = 0; q < kWinogradPairs; ++q)
        values[q] = k % 2 == 0 ? of(1 + 2 * q) + of(2 + 2 * q) : of(1 + 2 * q) - of(2 + 2 * q);
      values[kWinogradPairs] = of(0);
      values[kWinogradPairs + 1] = of(kT - 1);
      return Evaluate(rows[k], 0, kSums, [&](int i) { return values[i]; });
    };
    for (int row = 0; row < kWinogradTile; ++row) {
      PartVector columns[kT];
      for (int column = 0; column < kT; ++column) {
        columns[column] =
            row_of(maps.along_columns, row, [&](int element) { return m[element * kT + column]; });
      }
      for (int column = 0; column < kWinogradTile; ++column) {
        const PartVector y = row_of(maps.along_rows, column, [&](int element) { return columns[element]; });
        Store<kPartLanes>(p.out + (row * kWinogradTile + column) * kWinogradLanes + lane, y);
      }
    }
  }
}

}  // namespace tilesmith::TILESMITH_ISA
// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
