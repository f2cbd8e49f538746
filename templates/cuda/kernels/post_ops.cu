// `sum` of output channel `c` as it is stored, in an Out, at `offset` in image `n`, where what is added to it lies as
// well; zero for padding channels.
__device__ __forceinline__ Out finish(const TsArgs& a, float sum, int c, int n, int offset) {
  Out stored = {};
  if (c >= G * OC) return stored;
  if constexpr (HAS_BIAS) sum += a.weights[BIAS_AT + c];
  if constexpr (HAS_SUM) sum += ts_real(reinterpret_cast<const Out*>(a.in[1])[n * a.in_stride[1] + offset]);
  ts_store(stored, activate(sum));
  return stored;
}
