// Where channel and pixel of an image lie, and what stands behind the sum of an output.
__device__ __forceinline__ int in_channel(int c) { return c / IN_BLOCK * (IN_BLOCK * IH * IW) + c % IN_BLOCK; }
__device__ __forceinline__ int out_channel(int c) {
  return c / OUT_BLOCK * (OUT_BLOCK * OH * OW) + c % OUT_BLOCK;
}
// `sum` of output channel `c` as it is stored at `offset` in image `n`; zero for padding channels.
__device__ __forceinline__ float finish(const TsArgs& a, float sum, int c, int n, int offset) {
  if (c >= G * OC) return 0;
  if constexpr (HAS_BIAS) sum += a.weights[BIAS_AT + c];
  if constexpr (HAS_SUM) sum += a.in[1][n * a.in_stride[1] + offset];
  return activate(sum);
}
