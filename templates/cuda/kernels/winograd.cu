// The transforms around the products of Winograd's algorithm, an element of a tile's channel a thread; tiles
// have TILE x TILE outputs, windows are WINDOW x WINDOW. transform_input and transform_output are B^T and A^T
// of the tile. Products' operands lie as [xi][tile][channel] where channels lie together in the tensor
// (CHANNELS_FIRST_IN, ..._OUT), else as [xi][channel][tile].
constexpr int Y_TILES = (OH + TILE - 1) / TILE, X_TILES = (OW + TILE - 1) / TILE;
constexpr int TILES = MB * Y_TILES * X_TILES;
constexpr int FILTERS = OC + OUT_PADDING;

extern "C" __global__ void __launch_bounds__(THREADS) winograd_input(const TsArgs a) {
  const long long e = blockIdx.x * static_cast<long long>(THREADS) + threadIdx.x;
  if (e >= static_cast<long long>(TILES) * IC) return;
  const int c = CHANNELS_FIRST_IN ? e % IC : e / TILES, tile = CHANNELS_FIRST_IN ? e / IC : e % TILES;
  const int n = tile / (Y_TILES * X_TILES);
  const int y = tile / X_TILES % Y_TILES * TILE * SH - PH, x = tile % X_TILES * TILE * SW - PW;
  const float* const plane = a.in[0] + n * a.in_stride[0] + in_channel(c);
  float d[WINDOW][WINDOW];
#pragma unroll
  for (int j = 0; j < WINDOW; ++j) {
    float column[WINDOW], result[WINDOW];
#pragma unroll
    for (int i = 0; i < WINDOW; ++i) {
      const bool inside = y + i >= 0 && y + i < IH && x + j >= 0 && x + j < IW;
      column[i] = inside ? plane[((y + i) * IW + x + j) * IN_BLOCK] : 0;
    }
    transform_input(column, result);
#pragma unroll
    for (int i = 0; i < WINDOW; ++i) d[i][j] = result[i];
  }
  float* const out = a.out + (CHANNELS_FIRST_IN ? static_cast<long long>(tile) * IC + c
                                                : static_cast<long long>(c) * TILES + tile);
#pragma unroll
  for (int i = 0; i < WINDOW; ++i) {
    float row[WINDOW];
    transform_input(d[i], row);
#pragma unroll
    for (int j = 0; j < WINDOW; ++j) out[(i * WINDOW + j) * (static_cast<long long>(IC) * TILES)] = row[j];
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) winograd_output(const TsArgs a) {
  const long long e = blockIdx.x * static_cast<long long>(THREADS) + threadIdx.x;
  if (e >= static_cast<long long>(TILES) * FILTERS) return;
  const int f = CHANNELS_FIRST_OUT ? e % FILTERS : e / TILES, tile = CHANNELS_FIRST_OUT ? e / FILTERS : e % TILES;
  const int n = tile / (Y_TILES * X_TILES);
  const int y = tile / X_TILES % Y_TILES * TILE, x = tile % X_TILES * TILE;
  float m[TILE][WINDOW];
  if (f < OC) {
    const float* const from = a.scratch + (CHANNELS_FIRST_OUT ? static_cast<long long>(tile) * OC + f
                                                              : static_cast<long long>(f) * TILES + tile);
#pragma unroll
    for (int j = 0; j < WINDOW; ++j) {
      float column[WINDOW], result[TILE];
#pragma unroll
      for (int i = 0; i < WINDOW; ++i) column[i] = from[(i * WINDOW + j) * (static_cast<long long>(OC) * TILES)];
      transform_output(column, result);
#pragma unroll
      for (int i = 0; i < TILE; ++i) m[i][j] = result[i];
    }
  } else {
#pragma unroll
    for (int i = 0; i < TILE; ++i)
#pragma unroll
      for (int j = 0; j < WINDOW; ++j) m[i][j] = 0;
  }
  float* const out = a.out + n * a.out_stride;
#pragma unroll
  for (int i = 0; i < TILE; ++i) {
    float row[TILE];
    transform_output(m[i], row);
#pragma unroll
    for (int j = 0; j < TILE; ++j) {
      if (y + i >= OH || x + j >= OW) continue;
      const int offset = out_channel(f) + ((y + i) * OW + x + j) * OUT_BLOCK;
      out[offset] = finish(a, row[j], f, n, offset);
    }
  }
}
