// The same of bytes: sums of raw inputs and of weights less their zero points. These numbers stand at BIAS_AT, behind
// them what is added to each channel's sum, then its factor. Each product and sum is rounded by itself
// (ops/quantize/quantized_conv.h), so that outputs are those of the process's cores bit for bit.
struct Requantization {
  int nothing;      // the input's zero point four times: what lies outside of the image
  int least, most;  // of the output's type
  int zero, low, high;
  int sum_zero, sum_low, sum_high, residual_zero;
  float own_factor, residual_factor;
};
constexpr int REQUANTIZATION = 12;
__device__ __forceinline__ const Requantization& requantization(const TsArgs& a) {
  return *reinterpret_cast<const Requantization*>(a.weights + BIAS_AT);
}
// Steps rounded into the type's range, then into the limits.
__device__ __forceinline__ int quantized(const Requantization& q, float steps, int zero, int low, int high) {
  const float least = static_cast<float>(q.least - zero), most = static_cast<float>(q.most - zero);
  const int value = steps > least ? static_cast<int>(rintf(steps < most ? steps : most)) + zero : q.least;
  return value < low ? low : value > high ? high : value;
}
__device__ __forceinline__ Out finish(const TsArgs& a, unsigned sum, int c, int n, int offset) {
  if (c >= G * OC) return 0;
  const Requantization& q = requantization(a);
  const float* const terms = a.weights + BIAS_AT + REQUANTIZATION;
  const int whole = static_cast<int>(sum + reinterpret_cast<const unsigned*>(terms)[c]);
  const float steps = __fmul_rn(static_cast<float>(whole), terms[G * OC + c]);
  if constexpr (OUT_IS_REAL) return static_cast<Out>(steps);
  const int own = quantized(q, steps, q.zero, q.low, q.high);
  if constexpr (!HAS_SUM) return static_cast<Out>(own);
  const int residual = static_cast<int>(reinterpret_cast<const Out*>(a.in[1])[n * a.in_stride[1] + offset]);
  const float both = __fadd_rn(__fmul_rn(static_cast<float>(own - q.zero), q.own_factor),
                               __fmul_rn(static_cast<float>(residual - q.residual_zero), q.residual_factor));
  return static_cast<Out>(quantized(q, both, q.sum_zero, q.sum_low, q.sum_high));
}
