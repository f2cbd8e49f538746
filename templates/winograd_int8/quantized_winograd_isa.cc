#include "layouts/base/simd.h"
#include "templates/winograd_int8/loops.h"

namespace tilesmith::TILESMITH_ISA {
namespace {

constexpr int kSumLanes = 2 * kWidth;  // QuantizedConvLanes
typedef int16_t Shorts __attribute__((vector_size(kSumLanes * sizeof(int16_t))));
typedef uint32_t Words __attribute__((vector_size(kWidth * sizeof(uint32_t))));
typedef int32_t SignedWords __attribute__((vector_size(kWidth * sizeof(int32_t))));

template <typename V, typename T>
inline V LoadAs(const T* from) {
  V vector;
  __builtin_memcpy(&vector, from, sizeof(vector));
  return vector;
}

// B' d of one column or row.
template <typename V>
inline void TransformFour(const V (&d)[4], V (&out)[4]) {
  out[0] = d[0] - d[2];
  out[1] = d[1] + d[2];
  out[2] = d[2] - d[1];
  out[3] = d[1] - d[3];
}

}  // namespace

void TransformWindows(const WinogradWindows& w) {
  for (int64_t tile = 0; tile < w.tiles; ++tile) {
    const int16_t* const window = w.in + 2 * tile * w.channels;
    for (int64_t c = 0; c < w.channels; c += kSumLanes) {
      Shorts columns[4][4];  // of B' d, by column
      for (int j = 0; j < 4; ++j) {
        Shorts d[4];
        for (int i = 0; i < 4; ++i) d[i] = LoadAs<Shorts>(window + i * w.row_step + j * w.channels + c);
        TransformFour(d, columns[j]);
      }
      int16_t* out = w.out + tile * w.channels + c;
      for (int i = 0; i < 4; ++i) {
        const Shorts row[4] = {columns[0][i], columns[1][i], columns[2][i], columns[3][i]};
        Shorts elements[4];
        TransformFour(row, elements);
        for (const Shorts& element : elements) {
          __builtin_memcpy(out, &element, sizeof(element));
          out += w.element_step;
        }
      }
    }
  }
}

void SumProducts(const WinogradProducts& p) {
  const int64_t row = 2 * p.tiles * kSumLanes;
  for (int64_t tile = 0; tile < p.tiles; ++tile) {
    for (int64_t v = 0; v < 2; ++v) {
      const int32_t* const in = p.in + tile * kSumLanes + v * kWidth;
      Words upper[4], lower[4];  // A' m, by column
      for (int j = 0; j < 4; ++j) {
        const auto at = [&](int i) { return LoadAs<Words>(in + (4 * i + j) * p.element_step); };
        const Words second = at(1), third = at(2);
        upper[j] = at(0) + second + third;
        lower[j] = second - third - at(3);
      }
      const SignedWords bias = LoadAs<SignedWords>(p.bias + v * kWidth);
      int32_t* out = p.out + 2 * tile * kSumLanes + v * kWidth;
      const auto store = [&](const Words(&m)[4], int32_t* to) {
        const SignedWords left = (SignedWords)(m[0] + m[1] + m[2]) >> 2;
        const SignedWords right = (SignedWords)(m[1] - m[2] - m[3]) >> 2;
        const SignedWords outputs[2] = {left + bias, right + bias};
        __builtin_memcpy(to, &outputs[0], sizeof(left));
        __builtin_memcpy(to + kSumLanes, &outputs[1], sizeof(right));
      };
      store(upper, out);
      store(lower, out + row);
    }
  }
}

}  // namespace tilesmith::TILESMITH_ISA
