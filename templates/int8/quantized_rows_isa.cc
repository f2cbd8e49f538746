// Rows of bytes on their way into and out of quantised convolutions.
#include "layouts/base/simd.h"
#include "templates/int8/pixels.h"

// Offsets inside a row are small. NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)
namespace tilesmith::TILESMITH_ISA {
namespace {

#ifdef TILESMITH_ISA_avx512_vnni
using RowNumber = uint8_t;
#else
using RowNumber = int16_t;
#endif
constexpr int kRowWordNumbers = 4 / sizeof(RowNumber);

typedef uint8_t Bytes __attribute__((vector_size(16)));
typedef int16_t EightShorts __attribute__((vector_size(16)));
typedef int64_t Halves __attribute__((vector_size(16)));

inline Bytes LowerBytes(Bytes a, Bytes b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
inline Bytes UpperBytes(Bytes a, Bytes b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

// These take turns with pairs of bytes.
inline Bytes LowerPairs(Bytes a, Bytes b) {
  return __builtin_shufflevector(a, b, 0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23);
}
inline Bytes UpperPairs(Bytes a, Bytes b) {
  return __builtin_shufflevector(a, b, 8, 9, 24, 25, 10, 11, 26, 27, 12, 13, 28, 29, 14, 15, 30, 31);
}

// Eight rows of eight bytes as columns, two in each of four vectors.
struct EightColumns {
  Bytes two[4];
};
inline EightColumns Transposed(const uint8_t* rows, int64_t step) {
  Bytes row[8];
  for (int i = 0; i < 8; ++i) {
    int64_t eight;
    __builtin_memcpy(&eight, rows + i * step, sizeof(eight));
    row[i] = (Bytes)Halves{eight, 0};
  }
  const Bytes a = LowerBytes(row[0], row[4]), b = LowerBytes(row[1], row[5]);
  const Bytes c = LowerBytes(row[2], row[6]), d = LowerBytes(row[3], row[7]);
  const Bytes even = LowerBytes(a, c), odd = LowerBytes(b, d);
  const Bytes even_up = UpperBytes(a, c), odd_up = UpperBytes(b, d);
  return {{LowerBytes(even, odd), UpperBytes(even, odd), LowerBytes(even_up, odd_up),
           UpperBytes(even_up, odd_up)}};
}

inline RowNumber Widened(const WidenedRow& row, uint8_t byte) {
  return static_cast<RowNumber>((byte ^ row.flip) - row.zero);
}

// Eight adjacent columns of eight planes.
inline void WidenSquare(const WidenedRow& row, int64_t column, int64_t channel) {
  const EightColumns columns = Transposed(row.in + channel * row.channel_step + column, row.channel_step);
  RowNumber* to = static_cast<RowNumber*>(row.out) + column * row.out_step + channel;
  for (const Bytes two : columns.two) {
    const Bytes bytes = two ^ row.flip;
    if constexpr (sizeof(RowNumber) == 1) {
      for (int half = 0; half < 2; ++half, to += row.out_step) {
        const int64_t eight = ((Halves)bytes)[half];
        __builtin_memcpy(to, &eight, sizeof(eight));
      }
      continue;
    }
    const EightShorts first = (EightShorts)LowerBytes(bytes, Bytes{}) - row.zero;
    const EightShorts second = (EightShorts)UpperBytes(bytes, Bytes{}) - row.zero;
    __builtin_memcpy(to, &first, sizeof(first));
    __builtin_memcpy(to + row.out_step, &second, sizeof(second));
    to += 2 * row.out_step;
  }
}

// Pixels of an image, three channels and a zero: 16 columns of planes, or as many as there are whole vectors
// of. Returns how many columns it has widened.
inline int64_t WidenPlanesOfThree(const WidenedRow& row) {
  int64_t x = 0;
  for (; x + 16 <= row.columns; x += 16) {
    Bytes plane[3];
    for (int c = 0; c < 3; ++c) {
      __builtin_memcpy(&plane[c], row.in + c * row.channel_step + x, sizeof(Bytes));
      plane[c] ^= row.flip;
    }
    const Bytes low = LowerBytes(plane[0], plane[1]), high = UpperBytes(plane[0], plane[1]);
    const Bytes low_rest = LowerBytes(plane[2], Bytes{}), high_rest = UpperBytes(plane[2], Bytes{});
    const Bytes pixels[] = {LowerPairs(low, low_rest), UpperPairs(low, low_rest), LowerPairs(high, high_rest),
                            UpperPairs(high, high_rest)};
    __builtin_memcpy(static_cast<uint8_t*>(row.out) + 4 * x, pixels, sizeof(pixels));
  }
  return x;
}

// Here channels are adjacent: there are four pixels of a vector that holds five.
inline int64_t WidenPixelsOfThree(const WidenedRow& row) {
  int64_t x = 0;
  for (; 3 * x + 16 <= 3 * row.columns; x += 4) {
    Bytes pixels;
    __builtin_memcpy(&pixels, row.in + 3 * x, sizeof(pixels));
    pixels = __builtin_shufflevector(pixels ^ row.flip, Bytes{}, 0, 1, 2, 16, 3, 4, 5, 16, 6, 7, 8, 16, 9, 10,
                                     11, 16);
    __builtin_memcpy(static_cast<uint8_t*>(row.out) + 4 * x, &pixels, sizeof(pixels));
  }
  return x;
}

// Returns how many columns one of these two takes.
inline int64_t WidenThree(const WidenedRow& row) {
  if (sizeof(RowNumber) != 1 || row.channels != 3 || row.out_step != 4) return 0;
  if (row.channel_step == 1) return row.in_step == 3 ? WidenPixelsOfThree(row) : 0;
  return row.in_step == 1 ? WidenPlanesOfThree(row) : 0;
}

inline void WidenPlanes(const WidenedRow& row) {
  constexpr int64_t kLine = 32;  // channels of a cache line, written before the next pixels' are
  const int64_t columns = row.in_step == 1 ? row.columns / 8 * 8 : 0, channels = row.channels / 8 * 8;
  for (int64_t line = 0; line < channels; line += kLine) {
    const int64_t end = line + kLine < channels ? line + kLine : channels;
    for (int64_t x = 0; x < columns; x += 8) {
      for (int64_t c = line; c < end; c += 8) WidenSquare(row, x, c);
    }
  }
  for (int64_t c = 0; c < row.channels; ++c) {
    for (int64_t x = c < channels ? columns : 0; x < row.columns; ++x)
      static_cast<RowNumber*>(row.out)[x * row.out_step + c] =
          Widened(row, row.in[x * row.in_step + c * row.channel_step]);
  }
}

// A constant `channels` makes of the inner loop a few vectors.
[[gnu::always_inline]] inline void WidenLanes(const WidenedRow& row, int64_t columns, int64_t channels) {
  const WidenedRow local = row;
  for (int64_t x = 0; x < columns; ++x) {
    const uint8_t* __restrict const in = local.in + x * local.in_step;
    RowNumber* __restrict const out = static_cast<RowNumber*>(local.out) + x * local.out_step;
    for (int64_t c = 0; c < channels; ++c) out[c] = Widened(local, in[c]);
  }
}

inline void WidenPixels(const WidenedRow& row) {
  switch (row.channels) {
    case 4:
      return WidenLanes(row, row.columns, 4);
    case 8:
      return WidenLanes(row, row.columns, 8);
    case 16:
      return WidenLanes(row, row.columns, 16);
    case 32:
      return WidenLanes(row, row.columns, 32);
    case 48:
      return WidenLanes(row, row.columns, 48);
    case 64:
      return WidenLanes(row, row.columns, 64);
    default:
      return WidenLanes(row, row.columns, row.channels);
  }
}

}  // namespace

void WidenRow(const WidenedRow& given) {
  WidenedRow row = given;
  const int64_t done = WidenThree(row);
  row.in += done * row.in_step;
  row.out = static_cast<RowNumber*>(row.out) + done * row.out_step;
  row.columns -= done;
  if (row.channel_step != 1) return WidenPlanes(row);
  if (row.in_step == row.channels && row.out_step == row.channels) {
    return WidenLanes(row, 1, row.columns * row.channels);
  }
  WidenPixels(row);
}

void GatherWords(const void* in, int64_t distance, int64_t count, void* out) {
  const RowNumber* __restrict const from = static_cast<const RowNumber*>(in);
  RowNumber* __restrict const to = static_cast<RowNumber*>(out);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = 0; k < kRowWordNumbers; ++k) to[kRowWordNumbers * i + k] = from[i + k * distance];
  }
}

void StoreChannelRows(const ChannelRows& rows) {
  const int64_t pixels = rows.pixels / 8 * 8, channels = rows.channels / 8 * 8;
  for (int64_t c = 0; c < channels; c += 8) {
    for (int64_t p = 0; p < pixels; p += 8) {
      const EightColumns columns = Transposed(rows.in + p * rows.in_step + c, rows.in_step);
      uint8_t* to = rows.out + c * rows.out_step + p;
      for (const Bytes two : columns.two) {
        for (int half = 0; half < 2; ++half, to += rows.out_step) {
          const int64_t eight = ((Halves)two)[half];
          __builtin_memcpy(to, &eight, sizeof(eight));
        }
      }
    }
  }
  for (int64_t c = 0; c < rows.channels; ++c) {
    for (int64_t p = c < channels ? pixels : 0; p < rows.pixels; ++p)
      rows.out[c * rows.out_step + p] = rows.in[p * rows.in_step + c];
  }
}

}  // namespace tilesmith::TILESMITH_ISA
// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
