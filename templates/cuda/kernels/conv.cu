// Where channel and pixel of an image lie.
__device__ __forceinline__ int in_channel(int c) { return c / IN_BLOCK * (IN_BLOCK * IH * IW) + c % IN_BLOCK; }
__device__ __forceinline__ int out_channel(int c) {
  return c / OUT_BLOCK * (OUT_BLOCK * OH * OW) + c % OUT_BLOCK;
}
