// The same of bytes: sums of raw inputs and of weights less their zero points. These numbers stand at BIAS_AT, behind
// them what is added to each channel's sum, then its factor. It is rounded as ops/quantize/quantized_conv.h says, so
// that outputs are those of the process's cores bit for bit.
struct Requantization {
  int nothing;      // the input's zero point four times: what lies outside of the image
  int least, most;  // of the output's type
  int zero, low, high;
  int residual_flip;
  float factor, offset, own_low, own_high;  // of a residual
};
constexpr int REQUANTIZATION = 11;
__device__ __forceinline__ const Requantization& requantization(const TsArgs& a) {
  return *reinterpret_cast<const Requantization*>(a.weights + BIAS_AT);
}
// Steps rounded into the type's range, then into the limits.
__device__ __forceinline__ int quantized(const Requantization& q, float steps) {
  const float least = static_cast<float>(q.least - q.zero), most = static_cast<float>(q.most - q.zero);
  const int value = steps > least ? static_cast<int>(rintf(steps < most ? steps : most)) + q.zero : q.least;
  return value < q.low ? q.low : value > q.high ? q.high : value;
}
__device__ __forceinline__ Out finish(const TsArgs& a, unsigned sum, int c, int n, int offset) {
  if (c >= G * OC) return 0;
  const Requantization& q = requantization(a);
  const float* const terms = a.weights + BIAS_AT + REQUANTIZATION;
  const int whole = static_cast<int>(sum + reinterpret_cast<const unsigned*>(terms)[c]);
  const float sum_as_float = static_cast<float>(whole), multiplier = terms[G * OC + c];
  if constexpr (OUT_IS_REAL) return static_cast<Out>(__fmul_rn(sum_as_float, multiplier));
  if constexpr (!HAS_SUM) return static_cast<Out>(quantized(q, __fmul_rn(sum_as_float, multiplier)));
  const float unclamped = __fmaf_rn(sum_as_float, multiplier, q.offset);
  const float own = unclamped < q.own_low ? q.own_low : unclamped > q.own_high ? q.own_high : unclamped;
  const int residual = static_cast<int>(reinterpret_cast<const Out*>(a.in[1])[n * a.in_stride[1] + offset]);
  return static_cast<Out>(
      quantized(q, __fmaf_rn(static_cast<float>(residual + q.residual_flip), q.factor, own)));
}
