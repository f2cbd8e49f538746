// A thread computes TILE_F filters of a group at TILE_Y x TILE_X positions, reading what it needs through the
// caches. Neighbouring threads have neighbouring channels where CHANNELS_FIRST, else neighbouring positions.
// Weights come as [channel][tap][filter of the tile][tile of filters]. A padding channel is a tile by itself.
constexpr int F_TILES = (OC + TILE_F - 1) / TILE_F;
constexpr int REAL = G * F_TILES, ALL = REAL + OUT_PADDING;
constexpr int Y_TILES = (OH + TILE_Y - 1) / TILE_Y, X_TILES = (OW + TILE_X - 1) / TILE_X;

// Inputs, without those that two windows share, of so many outputs and taps in a direction.
template <int OUTPUTS, int TAPS, int STRIDE, int DILATION>
constexpr long long INPUTS_ALONG = 1LL * OUTPUTS * TAPS < (OUTPUTS - 1LL) * STRIDE + (TAPS - 1LL) * DILATION + 1
                                       ? 1LL * OUTPUTS * TAPS
                                       : (OUTPUTS - 1LL) * STRIDE + (TAPS - 1LL) * DILATION + 1;
// What is read for so many rows and columns of the window. Where they are unrolled the compiler reads all of it
// ahead, so that more than MAX_READS would not stay in registers.
template <int ROWS, int COLUMNS>
constexpr long long READS =
    UNROLL * (1LL * ROWS * COLUMNS * TILE_F +
              INPUTS_ALONG<TILE_Y, ROWS, SH, DH> * INPUTS_ALONG<TILE_X, COLUMNS, SW, DW>);
constexpr int MAX_READS = 48;
constexpr int ROWS_UNROLLED = READS<KH, KW> <= MAX_READS ? KH : 1;
constexpr int COLUMNS_UNROLLED = READS<1, KW> <= MAX_READS ? KW : 1;

__device__ __forceinline__ void add_products(const TsArgs& a, int tile, int n, int y, int x,
                                             float (&sums)[TILE_F][TILE_Y][TILE_X]) {
  const float* const image = a.in[0] + n * a.in_stride[0];
#pragma unroll UNROLL
  for (int c = 0; c < IC; ++c) {
    const float* const plane = image + in_channel(tile / F_TILES * IC + c);
#pragma unroll ROWS_UNROLLED
    for (int i = 0; i < KH; ++i) {
#pragma unroll COLUMNS_UNROLLED
      for (int j = 0; j < KW; ++j) {
        float w[TILE_F];
#pragma unroll
        for (int f = 0; f < TILE_F; ++f)
          w[f] = a.weights[static_cast<long long>(((c * KH + i) * KW + j) * TILE_F + f) * REAL + tile];
#pragma unroll
        for (int r = 0; r < TILE_Y; ++r) {
          const int iy = (y + r) * SH - PH + i * DH;
#pragma unroll
          for (int s = 0; s < TILE_X; ++s) {
            const int ix = (x + s) * SW - PW + j * DW;
            const bool inside = iy >= 0 && iy < IH && ix >= 0 && ix < IW;
            const float value = inside ? plane[(iy * IW + ix) * IN_BLOCK] : 0;
#pragma unroll
            for (int f = 0; f < TILE_F; ++f) sums[f][r][s] += inside ? w[f] * value : 0;
          }
        }
      }
    }
  }
}

// One block at least: see ResidentBlocks (templates/cuda/limits.h).
extern "C" __global__ void __launch_bounds__(THREADS, 1) gather(const TsArgs a) {
  long long e = blockIdx.x * static_cast<long long>(THREADS) + threadIdx.x;
  if (e >= static_cast<long long>(MB) * ALL * Y_TILES * X_TILES) return;
  int tile, at;
  if constexpr (CHANNELS_FIRST) {
    tile = e % ALL, e /= ALL, at = e % (Y_TILES * X_TILES), e /= Y_TILES * X_TILES;
  } else {
    at = e % (Y_TILES * X_TILES), e /= Y_TILES * X_TILES, tile = e % ALL, e /= ALL;
  }
  const int n = e, y = at / X_TILES * TILE_Y, x = at % X_TILES * TILE_X;
  float sums[TILE_F][TILE_Y][TILE_X];
#pragma unroll
  for (int f = 0; f < TILE_F; ++f)
#pragma unroll
    for (int r = 0; r < TILE_Y; ++r)
#pragma unroll
      for (int s = 0; s < TILE_X; ++s) sums[f][r][s] = 0;
  if (tile < REAL) add_products(a, tile, n, y, x, sums);
  const int first = tile < REAL ? tile / F_TILES * OC + tile % F_TILES * TILE_F : G * OC + tile - REAL;
  const int filters = tile < REAL ? OC - tile % F_TILES * TILE_F : 1;
  float* const out = a.out + n * a.out_stride;
#pragma unroll
  for (int f = 0; f < TILE_F; ++f) {
    if (f >= filters) break;
#pragma unroll
    for (int r = 0; r < TILE_Y; ++r) {
#pragma unroll
      for (int s = 0; s < TILE_X; ++s) {
        if (y + r >= OH || x + s >= OW) continue;
        const int offset = out_channel(first + f) + ((y + r) * OW + x + s) * OUT_BLOCK;
        out[offset] = finish(a, sums[f][r][s], first + f, n, offset);
      }
    }
  }
}
