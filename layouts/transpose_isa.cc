// Interleave and Deinterleave: transposes of square tiles held in registers.
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "layouts/transform_moves.h"

namespace tilesmith::TILESMITH_ISA {
namespace {

// A tile type gives: Vector, kWidth, loads and stores of whole vectors and of their first `count` floats
// (the rest of a loaded vector is zero), and the transpose of kWidth vectors.
struct Tile4 {
  typedef float Vector __attribute__((vector_size(16)));
  static constexpr int kWidth = 4;

  static Vector Load(const float* p) {
    Vector v;
    __builtin_memcpy(&v, p, sizeof(v));
    return v;
  }
  static void Store(float* p, Vector v) { __builtin_memcpy(p, &v, sizeof(v)); }
  static Vector LoadFirst(const float* p, int count) {
    if (count == kWidth) return Load(p);
    Vector v = {};
    if (count > 0) v[0] = p[0];
    if (count > 1) v[1] = p[1];
    if (count > 2) v[2] = p[2];
    return v;
  }
  static void StoreFirst(float* p, Vector v, int count) {
    if (count == kWidth) return Store(p, v);
    if (count > 0) p[0] = v[0];
    if (count > 1) p[1] = v[1];
    if (count > 2) p[2] = v[2];
  }
  static void Transpose(Vector v[kWidth]) {
    const Vector a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5);
    const Vector b = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7);
    const Vector c = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5);
    const Vector d = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
    v[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
    v[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
    v[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
    v[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
  }
};

#if defined(__AVX2__)
struct Tile8 {
  using Vector = __m256;
  static constexpr int kWidth = 8;

  static Vector Load(const float* p) { return _mm256_loadu_ps(p); }
  static void Store(float* p, Vector v) { _mm256_storeu_ps(p, v); }
  static Vector LoadFirst(const float* p, int count) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(count), lanes));
  }
  // In powers of two: masked stores are slow on several AMD generations.
  static void StoreFirst(float* p, Vector v, int count) {
    if (count == kWidth) return Store(p, v);
    __m128 part = _mm256_castps256_ps128(v);
    if (count & 4) {
      _mm_storeu_ps(p, part);
      part = _mm256_extractf128_ps(v, 1);
      p += 4;
    }
    if (count & 2) {
      _mm_storel_pi(reinterpret_cast<__m64*>(p), part);
      part = _mm_movehl_ps(part, part);
      p += 2;
    }
    if (count & 1) _mm_store_ss(p, part);
  }
  static void Transpose(Vector v[kWidth]) {
    Vector t[kWidth];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 4) {
      const Vector a = _mm256_unpacklo_ps(v[i], v[i + 1]);
      const Vector b = _mm256_unpackhi_ps(v[i], v[i + 1]);
      const Vector c = _mm256_unpacklo_ps(v[i + 2], v[i + 3]);
      const Vector d = _mm256_unpackhi_ps(v[i + 2], v[i + 3]);
      t[i] = _mm256_shuffle_ps(a, c, 0x44);
      t[i + 1] = _mm256_shuffle_ps(a, c, 0xEE);
      t[i + 2] = _mm256_shuffle_ps(b, d, 0x44);
      t[i + 3] = _mm256_shuffle_ps(b, d, 0xEE);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 4; ++i) {
      v[i] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x20);
      v[i + 4] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x31);
    }
  }
};
#endif

#if defined(__AVX512F__)
struct Tile16 {
  using Vector = __m512;
  static constexpr int kWidth = 16;

  // The plain shuffles warn of an uninitialised operand in GCC 12; with a full zeroing mask they are the same
  // instructions.
  static constexpr __mmask16 kAll = 0xFFFF;

  static __mmask16 First(int count) { return static_cast<__mmask16>((1u << count) - 1); }
  static Vector Load(const float* p) { return _mm512_loadu_ps(p); }
  static void Store(float* p, Vector v) { _mm512_storeu_ps(p, v); }
  static Vector LoadFirst(const float* p, int count) { return _mm512_maskz_loadu_ps(First(count), p); }
  static void StoreFirst(float* p, Vector v, int count) { _mm512_mask_storeu_ps(p, First(count), v); }
  static void Transpose(Vector v[kWidth]) {
    Vector t[kWidth];
    // Within each quarter of the vectors: 4x4 transposes.
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 4) {
      const Vector a = _mm512_maskz_unpacklo_ps(kAll, v[i], v[i + 1]);
      const Vector b = _mm512_maskz_unpackhi_ps(kAll, v[i], v[i + 1]);
      const Vector c = _mm512_maskz_unpacklo_ps(kAll, v[i + 2], v[i + 3]);
      const Vector d = _mm512_maskz_unpackhi_ps(kAll, v[i + 2], v[i + 3]);
      t[i] = _mm512_maskz_shuffle_ps(kAll, a, c, 0x44);
      t[i + 1] = _mm512_maskz_shuffle_ps(kAll, a, c, 0xEE);
      t[i + 2] = _mm512_maskz_shuffle_ps(kAll, b, d, 0x44);
      t[i + 3] = _mm512_maskz_shuffle_ps(kAll, b, d, 0xEE);
    }
    // Then the 4x4 transpose of the quarters: t[4 * g + i] holds, in quarter q, rows 4g..4g+3 of column
    // 4q + i.
#pragma GCC unroll 16
    for (int i = 0; i < 4; ++i) {
      const Vector a =
          _mm512_maskz_shuffle_f32x4(kAll, t[i], t[i + 4], 0x88);  // quarters 0, 2 of groups 0, 1
      const Vector b = _mm512_maskz_shuffle_f32x4(kAll, t[i], t[i + 4], 0xDD);  // quarters 1, 3
      const Vector c =
          _mm512_maskz_shuffle_f32x4(kAll, t[i + 8], t[i + 12], 0x88);  // the same of groups 2, 3
      const Vector d = _mm512_maskz_shuffle_f32x4(kAll, t[i + 8], t[i + 12], 0xDD);
      v[i] = _mm512_maskz_shuffle_f32x4(kAll, a, c, 0x88);
      v[i + 4] = _mm512_maskz_shuffle_f32x4(kAll, b, d, 0x88);
      v[i + 8] = _mm512_maskz_shuffle_f32x4(kAll, a, c, 0xDD);
      v[i + 12] = _mm512_maskz_shuffle_f32x4(kAll, b, d, 0xDD);
    }
  }
};
#endif

// out[j * out_stride + i] = i < rows ? in[i * in_stride + j] : 0, for j < cols, i < out_cols.
struct TileMove {
  const float* in;
  int64_t in_stride;
  float* out;
  int64_t out_stride;
  int rows, cols, out_cols;
};

template <typename Tile>
inline void MoveWholeTile(const TileMove& tile) {
  typename Tile::Vector v[Tile::kWidth];
#pragma GCC unroll 16
  for (int i = 0; i < Tile::kWidth; ++i) v[i] = Tile::Load(tile.in + i * tile.in_stride);
  Tile::Transpose(v);
#pragma GCC unroll 16
  for (int j = 0; j < Tile::kWidth; ++j) Tile::Store(tile.out + j * tile.out_stride, v[j]);
}

template <typename Tile>
void MovePartOfTile(const TileMove& tile) {
  typename Tile::Vector v[Tile::kWidth];
#pragma GCC unroll 16
  for (int i = 0; i < Tile::kWidth; ++i) {
    v[i] = typename Tile::Vector{};
    if (i < tile.rows) v[i] = Tile::LoadFirst(tile.in + i * tile.in_stride, tile.cols);
  }
  Tile::Transpose(v);
#pragma GCC unroll 16
  for (int j = 0; j < Tile::kWidth; ++j) {
    if (j < tile.cols) Tile::StoreFirst(tile.out + j * tile.out_stride, v[j], tile.out_cols);
  }
}

template <typename Tile>
inline void MoveTile(const TileMove& tile) {
  if (tile.rows == Tile::kWidth && tile.cols == Tile::kWidth) {
    MoveWholeTile<Tile>(tile);
  } else {
    MovePartOfTile<Tile>(tile);
  }
}

inline int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// At most a tile's width of what is left, and nothing where nothing is left.
template <typename Tile>
inline int Extent(int64_t left) {
  return left <= 0 ? 0 : static_cast<int>(Smaller(left, Tile::kWidth));
}

// Pixels are the outer loop of both: the lines on the block side are then finished while they are in L1.
template <typename Tile>
void InterleaveBy(const PlaneMove<float>& m) {
  for (int64_t p = 0; p < m.pixels; p += Tile::kWidth) {
    for (int64_t c = 0; c < m.padded; c += Tile::kWidth) {
      const int channels = Extent<Tile>(m.channels - c);
      const float* in = channels > 0 ? m.in + c * m.plane_stride + p : m.in;
      MoveTile<Tile>({in, m.plane_stride, m.out + p * m.pixel_stride + c, m.pixel_stride, channels,
                      Extent<Tile>(m.pixels - p), Extent<Tile>(m.padded - c)});
    }
  }
}

template <typename Tile>
void DeinterleaveBy(const PlaneMove<float>& m) {
  for (int64_t p = 0; p < m.pixels; p += Tile::kWidth) {
    const int pixels = Extent<Tile>(m.pixels - p);
    for (int64_t c = 0; c < m.channels; c += Tile::kWidth) {
      MoveTile<Tile>({m.in + p * m.pixel_stride + c, m.pixel_stride, m.out + c * m.plane_stride + p,
                      m.plane_stride, pixels, Extent<Tile>(m.channels - c), pixels});
    }
  }
}

// The narrowest tile that holds the shorter side: wider ones would shuffle zeros.
void InterleaveElements(const PlaneMove<float>& move) {
  [[maybe_unused]] const int64_t side = Smaller(move.padded, move.pixels);
#if defined(__AVX512F__)
  if (side > 8) return InterleaveBy<Tile16>(move);
#endif
#if defined(__AVX2__)
  if (side > 4) return InterleaveBy<Tile8>(move);
#endif
  InterleaveBy<Tile4>(move);
}

void DeinterleaveElements(const PlaneMove<float>& move) {
  [[maybe_unused]] const int64_t side = Smaller(move.channels, move.pixels);
#if defined(__AVX512F__)
  if (side > 8) return DeinterleaveBy<Tile16>(move);
#endif
#if defined(__AVX2__)
  if (side > 4) return DeinterleaveBy<Tile8>(move);
#endif
  DeinterleaveBy<Tile4>(move);
}

// Three planes of bytes, which an image's colours are.
inline void InterleaveColours(const PlaneMove<uint8_t>& m) {
  typedef uint8_t Bytes __attribute__((vector_size(16)));
  const auto load = [&](int64_t plane, int64_t p) {
    Bytes bytes;
    __builtin_memcpy(&bytes, m.in + plane * m.plane_stride + p, sizeof(bytes));
    return bytes;
  };
  const auto store = [](uint8_t* to, Bytes bytes) { __builtin_memcpy(to, &bytes, sizeof(bytes)); };
  int64_t p = 0;
  for (; p + 16 <= m.pixels; p += 16) {
    const Bytes a = load(0, p), b = load(1, p), c = load(2, p);
    const Bytes t0 = __builtin_shufflevector(a, b, 0, 16, 0, 1, 17, 0, 2, 18, 0, 3, 19, 0, 4, 20, 0, 5);
    store(m.out + 3 * p + 0,
          __builtin_shufflevector(t0, c, 0, 1, 16, 3, 4, 17, 6, 7, 18, 9, 10, 19, 12, 13, 20, 15));
    const Bytes t1 = __builtin_shufflevector(a, b, 21, 0, 6, 22, 0, 7, 23, 0, 8, 24, 0, 9, 25, 0, 10, 26);
    store(m.out + 3 * p + 16,
          __builtin_shufflevector(t1, c, 0, 21, 2, 3, 22, 5, 6, 23, 8, 9, 24, 11, 12, 25, 14, 15));
    const Bytes t2 = __builtin_shufflevector(a, b, 0, 11, 27, 0, 12, 28, 0, 13, 29, 0, 14, 30, 0, 15, 31, 0);
    store(m.out + 3 * p + 32,
          __builtin_shufflevector(t2, c, 26, 1, 2, 27, 4, 5, 28, 7, 8, 29, 10, 11, 30, 13, 14, 31));
  }
  for (; p < m.pixels; ++p) {
    for (int64_t c = 0; c < 3; ++c) m.out[3 * p + c] = m.in[c * m.plane_stride + p];
  }
}

// Elements of other sizes one by one, in squares whose lines stay in L1.
constexpr int64_t kSquare = 32;

template <typename Element>
void InterleaveElements(const PlaneMove<Element>& m) {
  if constexpr (sizeof(Element) == 1) {
    if (m.channels == 3 && m.padded == 3 && m.pixel_stride == 3) return InterleaveColours(m);
  }
  for (int64_t first = 0; first < m.pixels; first += kSquare) {
    const int64_t end = Smaller(first + kSquare, m.pixels);
    for (int64_t c = 0; c < m.channels; ++c)
      for (int64_t p = first; p < end; ++p) m.out[p * m.pixel_stride + c] = m.in[c * m.plane_stride + p];
    for (int64_t c = m.channels; c < m.padded; ++c)
      for (int64_t p = first; p < end; ++p) m.out[p * m.pixel_stride + c] = 0;
  }
}

template <typename Element>
void DeinterleaveElements(const PlaneMove<Element>& m) {
  for (int64_t first = 0; first < m.pixels; first += kSquare) {
    const int64_t end = Smaller(first + kSquare, m.pixels);
    for (int64_t c = 0; c < m.channels; ++c)
      for (int64_t p = first; p < end; ++p) m.out[c * m.plane_stride + p] = m.in[p * m.pixel_stride + c];
  }
}

}  // namespace

template <typename Element>
void Interleave(const PlaneMove<Element>& move) {
  InterleaveElements(move);
}

template <typename Element>
void Deinterleave(const PlaneMove<Element>& move) {
  DeinterleaveElements(move);
}

template void Interleave(const PlaneMove<uint8_t>&);
template void Interleave(const PlaneMove<uint16_t>&);
template void Interleave(const PlaneMove<float>&);
template void Interleave(const PlaneMove<uint64_t>&);
template void Deinterleave(const PlaneMove<uint8_t>&);
template void Deinterleave(const PlaneMove<uint16_t>&);
template void Deinterleave(const PlaneMove<float>&);
template void Deinterleave(const PlaneMove<uint64_t>&);

}  // namespace tilesmith::TILESMITH_ISA
