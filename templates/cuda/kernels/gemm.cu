// Implicit GEMM: filters x positions, summed over k = (tap, channel) of a group. Block (x, y, z) computes
// TILE_F filters y and TILE_P positions x of unit z / SPLIT, which is a group or, where BATCHED, an image
// with weights of its own, over part z % SPLIT of k. Weights come as [unit][k][filter], padded with zeros to
// whole tiles. Tiles of weights and input go through STAGES places of shared memory, copied asynchronously.
// TOGETHER: four channels of a pixel lie together and are copied so; the tile is [position][k], else
// [k][position].
//
// TENSOR is 0 for FFMA, a register tile of THREAD_F x THREAD_P; else what tensor cores multiply, on WARP_F x WARP_P.
// 1: TF32. 3: three products of TF32 that make one of floats, of operands split in two (Ootomo, Yokota, "Recovering
// single precision accuracy from tensor cores while surpassing the FP32 theoretical peak performance", 2022). 16: bf16,
// 8: bytes. Of these a word of four bytes holds two or four channels, and channels, k and their tiles are counted in
// words everywhere: in words operands of all types lie alike. Where INPUT_WORDS is 2, the input is stored in floats,
// two of which become a word.
constexpr int POSITIONS = OH * OW * (BATCHED ? 1 : MB);
constexpr int STEPS = K_PADDED / TILE_K;
constexpr int K = KH * KW * IC, INPUT_K = TILE_K * INPUT_WORDS;  // words of the input, in all and of a tile
constexpr int QUADS = INPUT_K / 4;
constexpr int INPUT_ITEMS = TILE_P * QUADS;  // where TOGETHER
constexpr int OWN = TOGETHER ? (INPUT_ITEMS + THREADS - 1) / THREADS : TILE_P <= THREADS ? 1 : TILE_P / THREADS;
constexpr int ROWS_AT_ONCE = TILE_P < THREADS ? THREADS / TILE_P : 1;
constexpr int STAGE = TILE_K * WEIGHT_ROW + (TOGETHER ? TILE_P : INPUT_K) * INPUT_ROW;
#if TENSOR == 8
typedef unsigned Sum;  // wraps around
#else
typedef float Sum;
#endif

// The positions whose input this thread copies: where their image is, and where their first tap.
struct Own {
  const float* image[OWN];
  int y[OWN], x[OWN];
  float nothing;  // a word of what lies outside of the image
};

__device__ __forceinline__ void find_own(const TsArgs& a, int unit, Own& own) {
  const int tid = threadIdx.x;
#if TENSOR == 8
  own.nothing = __int_as_float(requantization(a).nothing);
#endif
#pragma unroll
  for (int r = 0; r < OWN; ++r) {
    const int local = TOGETHER ? (tid + r * THREADS) / QUADS : tid % TILE_P + r * THREADS;
    const int p = blockIdx.x * TILE_P + local, n = BATCHED ? unit : p / (OH * OW), at = p % (OH * OW);
    const bool inside = p < POSITIONS && local < TILE_P;
    own.image[r] = a.in[0] + (inside ? n * a.in_stride[0] : 0);
    own.y[r] = inside ? at / OW * SH - PH : -(1 << 30);
    own.x[r] = at % OW * SW - PW;
  }
}

// The input element of k of an own position.
__device__ __forceinline__ const float* input_at(const Own& own, int r, int group, int k, int uniform_k,
                                                 bool& inside) {
  const int tap = (IC % INPUT_K == 0 ? uniform_k : k) / IC, c = k % IC;
  const int y = own.y[r] + tap / KW * DH, x = own.x[r] + tap % KW * DW;
  inside = k < K && y >= 0 && y < IH && x >= 0 && x < IW;
  return inside ? own.image[r] + in_channel(group * IC + c) + (y * IW + x) * IN_BLOCK : own.image[r];
}

template <int N>
__device__ __forceinline__ void copy_input(const Own& own, float* to, const float* from, bool inside) {
#if TENSOR == 8
  if (!inside) {
#pragma unroll
    for (int i = 0; i < N; ++i) to[i] = own.nothing;
    return;
  }
#endif
  if constexpr (N == 4) {
    ts_copy16(to, from, inside);
  } else {
    ts_copy4(to, from, inside);
  }
}

__device__ __forceinline__ void load_step(const TsArgs& a, const Own& own, int unit, int step, float* stage) {
  const int tid = threadIdx.x, group = BATCHED ? 0 : unit;
  const float* weights =
      a.weights + (static_cast<long long>(unit) * K_PADDED + step * TILE_K) * F_PADDED + blockIdx.y * TILE_F;
#pragma unroll 8
  for (int e = tid; e < TILE_K * TILE_F / 4; e += THREADS) {
    const int row = e / (TILE_F / 4), quad = e % (TILE_F / 4);
    ts_copy16(stage + row * WEIGHT_ROW + quad * 4, weights + static_cast<long long>(row) * F_PADDED + quad * 4, true);
  }
  float* const input = stage + TILE_K * WEIGHT_ROW;
  bool inside;
  if constexpr (TOGETHER) {
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
      const int e = tid + r * THREADS, k = e % QUADS * 4;
      if (INPUT_ITEMS % THREADS != 0 && e >= INPUT_ITEMS) break;
      const float* from = input_at(own, r, group, step * INPUT_K + k, step * INPUT_K, inside);
      copy_input<4>(own, input + e / QUADS * INPUT_ROW + k, from, inside);
    }
  } else {
#pragma unroll 8
    for (int row = TILE_P < THREADS ? tid / TILE_P : 0; row < INPUT_K; row += ROWS_AT_ONCE) {
#pragma unroll
      for (int r = 0; r < OWN; ++r) {
        const float* from = input_at(own, r, group, step * INPUT_K + row, step * INPUT_K, inside);
        copy_input<1>(own, input + row * INPUT_ROW + tid % TILE_P + r * THREADS, from, inside);
      }
    }
  }
}

// Written at once.
template <int N>
struct alignas(N * sizeof(Out)) Several {
  Out values[N];
};

// Sums of N filters from `f` on of the unit, at position `p`.
template <int N>
__device__ __forceinline__ void store(const TsArgs& a, int unit, int f, int p, const Sum (&sums)[N]) {
  if (p >= POSITIONS) return;
  if constexpr (SPLIT > 1) {
    const int part = blockIdx.z % SPLIT;
    Sum* to = reinterpret_cast<Sum*>(a.scratch) +
              ((static_cast<long long>(part) * UNITS + unit) * POSITIONS + p) * F_PADDED + f;
#pragma unroll
    for (int i = 0; i < N; ++i) to[i] = sums[i];
    return;
  }
  const int n = BATCHED ? unit : p / (OH * OW), group = BATCHED ? 0 : unit;
  const int filters = group == G - 1 ? OC + OUT_PADDING : OC;
  if (f >= filters) return;
  const int pixel = p % (OH * OW) * OUT_BLOCK;
  Out* const out = reinterpret_cast<Out*>(a.out) + n * a.out_stride;
  if constexpr (VECTOR_OUT) {
    const int offset = out_channel(group * OC + f) + pixel;
    Several<N> several;
#pragma unroll
    for (int i = 0; i < N; ++i) several.values[i] = finish(a, sums[i], group * OC + f + i, n, offset + i);
    *reinterpret_cast<Several<N>*>(out + offset) = several;
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (f + i >= filters) break;
      const int offset = out_channel(group * OC + f + i) + pixel;
      out[offset] = finish(a, sums[i], group * OC + f + i, n, offset);
    }
  }
}

#if TENSOR == 0
constexpr int ACROSS_F = TILE_F / THREAD_F, ACROSS_P = TILE_P / THREAD_P;  // threads
struct Sums {
  float s[THREAD_P][THREAD_F];
};
// Filters go to threads in fours; positions in fours as well where they lie together in shared memory.
__device__ __forceinline__ int thread_f() { return threadIdx.x % ACROSS_F * 4; }
__device__ __forceinline__ int position_of(int j) {
  const int across = threadIdx.x / ACROSS_F;
  return TOGETHER ? j * ACROSS_P + across : j / 4 * (4 * ACROSS_P) + across * 4 + j % 4;
}
__device__ __forceinline__ void read_weights(const float* weights, float (&w)[THREAD_F]) {
#pragma unroll
  for (int i = 0; i < THREAD_F; i += 4) {
    const float4 four = *reinterpret_cast<const float4*>(weights + i * ACROSS_F + thread_f());
    w[i] = four.x, w[i + 1] = four.y, w[i + 2] = four.z, w[i + 3] = four.w;
  }
}
__device__ __forceinline__ void multiply(const float* stage, Sums& sums) {
  const float* const input = stage + TILE_K * WEIGHT_ROW;
  float w[THREAD_F];
  if constexpr (TOGETHER) {
#pragma unroll
    for (int k = 0; k < TILE_K; k += 4) {
      float x[THREAD_P][4];
#pragma unroll
      for (int j = 0; j < THREAD_P; ++j) {
        const float4 four = *reinterpret_cast<const float4*>(input + position_of(j) * INPUT_ROW + k);
        x[j][0] = four.x, x[j][1] = four.y, x[j][2] = four.z, x[j][3] = four.w;
      }
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        read_weights(stage + (k + q) * WEIGHT_ROW, w);
#pragma unroll
        for (int j = 0; j < THREAD_P; ++j)
#pragma unroll
          for (int i = 0; i < THREAD_F; ++i) sums.s[j][i] += w[i] * x[j][q];
      }
    }
  } else {
#pragma unroll UNROLL
    for (int k = 0; k < TILE_K; ++k) {
      float x[THREAD_P];
#pragma unroll
      for (int j = 0; j < THREAD_P; j += 4) {
        const float4 four = *reinterpret_cast<const float4*>(input + k * INPUT_ROW + position_of(j));
        x[j] = four.x, x[j + 1] = four.y, x[j + 2] = four.z, x[j + 3] = four.w;
      }
      read_weights(stage + k * WEIGHT_ROW, w);
#pragma unroll
      for (int j = 0; j < THREAD_P; ++j)
#pragma unroll
        for (int i = 0; i < THREAD_F; ++i) sums.s[j][i] += w[i] * x[j];
    }
  }
}
__device__ __forceinline__ void clear(Sums& sums) {
#pragma unroll
  for (int j = 0; j < THREAD_P; ++j)
#pragma unroll
    for (int i = 0; i < THREAD_F; ++i) sums.s[j][i] = 0;
}
__device__ __forceinline__ void store_all(const TsArgs& a, int unit, const Sums& sums) {
#pragma unroll
  for (int j = 0; j < THREAD_P; ++j) {
#pragma unroll
    for (int i = 0; i < THREAD_F; i += 4) {
      const float four[4] = {sums.s[j][i], sums.s[j][i + 1], sums.s[j][i + 2], sums.s[j][i + 3]};
      store(a, unit, blockIdx.y * TILE_F + i * ACROSS_F + thread_f(), blockIdx.x * TILE_P + position_of(j), four);
    }
  }
}
#else
constexpr int ACROSS_F = TILE_F / WARP_F;                      // warps
constexpr int TILES_F = WARP_F / 8, TILES_P = WARP_P / 16;  // of one mma
struct Sums {
  Sum s[TILES_P][TILES_F][4];
};
// A lane's rows and columns in the operands of an mma.
__device__ __forceinline__ int lane_row() { return threadIdx.x % 32 / 4; }
__device__ __forceinline__ int lane_column() { return threadIdx.x % 4; }
__device__ __forceinline__ int warp_f() { return threadIdx.x / 32 % ACROSS_F * WARP_F; }
__device__ __forceinline__ int warp_p() { return threadIdx.x / 32 / ACROSS_F * WARP_P; }
__device__ __forceinline__ void split(float x, unsigned& high, unsigned& low) {
  high = TENSOR > 3 ? __float_as_uint(x) : ts_tf32(x);
  if constexpr (TENSOR == 3) low = ts_tf32(x - __uint_as_float(high));
}
__device__ __forceinline__ float input_word(const float* input, int p, int word) {
  const auto at = [=](int k) { return input[TOGETHER ? p * INPUT_ROW + k : k * INPUT_ROW + p]; };
  if constexpr (INPUT_WORDS == 2) {
    return __uint_as_float(ts_bf16_pair(at(2 * word), at(2 * word + 1)));
  } else {
    return at(word);
  }
}
__device__ __forceinline__ void add_product(Sum (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
#if TENSOR == 8
  ts_mma_bytes<IN_SIGNED>(sums, a, b);
#elif TENSOR == 16
  ts_mma_bf16(sums, a, b);
#else
  ts_mma_tf32(sums, a, b);
#endif
}
__device__ __forceinline__ void multiply(const float* stage, Sums& sums) {
  const float* const input = stage + TILE_K * WEIGHT_ROW;
  constexpr int AHEAD = TENSOR == 3 ? 1 : TILE_K / 8;  // halves of two steps at once do not fit registers
#pragma unroll AHEAD
  for (int k = 0; k < TILE_K; k += 8) {
    unsigned b[TILES_F][2], b_low[TILES_F][2];
#pragma unroll
    for (int i = 0; i < TILES_F; ++i)
#pragma unroll
      for (int h = 0; h < 2; ++h)
        split(stage[(k + lane_column() + 4 * h) * WEIGHT_ROW + warp_f() + i * 8 + lane_row()], b[i][h], b_low[i][h]);
#pragma unroll
    for (int j = 0; j < TILES_P; ++j) {
      unsigned a[4], a_low[4];
#pragma unroll
      for (int h = 0; h < 4; ++h) {
        const int p = warp_p() + j * 16 + lane_row() + h % 2 * 8, column = k + lane_column() + h / 2 * 4;
        split(input_word(input, p, column), a[h], a_low[h]);
      }
#pragma unroll
      for (int i = 0; i < TILES_F; ++i) {
        if constexpr (TENSOR == 3) {
          add_product(sums.s[j][i], a_low, b[i]);
          add_product(sums.s[j][i], a, b_low[i]);
        }
        add_product(sums.s[j][i], a, b[i]);
      }
    }
  }
}
__device__ __forceinline__ void clear(Sums& sums) {
#pragma unroll
  for (int j = 0; j < TILES_P; ++j)
#pragma unroll
    for (int i = 0; i < TILES_F; ++i)
#pragma unroll
      for (int h = 0; h < 4; ++h) sums.s[j][i][h] = 0;
}
__device__ __forceinline__ void store_all(const TsArgs& a, int unit, const Sums& sums) {
#pragma unroll
  for (int j = 0; j < TILES_P; ++j) {
#pragma unroll
    for (int i = 0; i < TILES_F; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const Sum two[2] = {sums.s[j][i][2 * h], sums.s[j][i][2 * h + 1]};
        store(a, unit, blockIdx.y * TILE_F + warp_f() + i * 8 + 2 * lane_column(),
              blockIdx.x * TILE_P + warp_p() + j * 16 + lane_row() + h * 8, two);
      }
    }
  }
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) gemm(const TsArgs a) {
  float* const shared = ts_shared();
  const int unit = blockIdx.z / SPLIT, part = blockIdx.z % SPLIT;
  const int begin = static_cast<long long>(STEPS) * part / SPLIT;
  const int end = static_cast<long long>(STEPS) * (part + 1) / SPLIT;
  Own own;
  find_own(a, unit, own);
  Sums sums;
  clear(sums);
#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) {
    if (begin + s < end) load_step(a, own, unit, begin + s, shared + s * STAGE);
    ts_commit();
  }
  for (int step = begin, at = 0, next = STAGES - 1; step < end; ++step) {
    ts_wait<STAGES - 2>();
    __syncthreads();
    if (step + STAGES - 1 < end) load_step(a, own, unit, step + STAGES - 1, shared + next * STAGE);
    ts_commit();
    multiply(shared + at * STAGE, sums);
    at = at + 1 == STAGES ? 0 : at + 1;
    next = next + 1 == STAGES ? 0 : next + 1;
  }
  store_all(a, unit, sums);
}

#if SPLIT > 1
// The parts added up, an output a thread, in the order of the output.
extern "C" __global__ void __launch_bounds__(256) gemm_reduce(const TsArgs a) {
  constexpr int IMAGE = (G * OC + OUT_PADDING) * OH * OW;
  const long long e = blockIdx.x * 256LL + threadIdx.x;
  if (e >= static_cast<long long>(MB) * IMAGE) return;
  const int n = e / IMAGE, offset = e % IMAGE;
  const int pixel = offset / OUT_BLOCK % (OH * OW);
  const int c = offset / (OUT_BLOCK * OH * OW) * OUT_BLOCK + offset % OUT_BLOCK;
  Sum sum = 0;
  if (c < G * OC) {
    const Sum* from = reinterpret_cast<const Sum*>(a.scratch) + (static_cast<long long>(c / OC) * POSITIONS + n * OH * OW + pixel) * F_PADDED + c % OC;
    for (int part = 0; part < SPLIT; ++part) sum += from[static_cast<long long>(part) * UNITS * POSITIONS * F_PADDED];
  }
  reinterpret_cast<Out*>(a.out)[n * a.out_stride + offset] = finish(a, sum, c, n, offset);
}
#endif
