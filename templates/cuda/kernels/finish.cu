// Activations, in the numbers of ActivationKind; ALPHA() and BETA() are theirs. A NaN stays one.
__device__ __forceinline__ float activate(float x) {
  if constexpr (ACTIVATION == 1) return x < 0 ? 0 : x;
  if constexpr (ACTIVATION == 2) return x < ALPHA() ? ALPHA() : x > BETA() ? BETA() : x;
  if constexpr (ACTIVATION == 3) return x >= 0 ? x : ALPHA() * x;
  if constexpr (ACTIVATION == 4) {
    const float y = ALPHA() * x + BETA();
    return y < 0 ? 0 : y > 1 ? 1 : y;
  }
  if constexpr (ACTIVATION == 5) {
    const float y = x / 6 + 0.5f;
    return x * (y < 0 ? 0 : y > 1 ? 1 : y);
  }
  if constexpr (ACTIVATION == 6) return 1 / (1 + expf(-x));
  if constexpr (ACTIVATION == 7) return tanhf(x);
  if constexpr (ACTIVATION == 8) return x < -100 ? 0 : x / (1 + expf(-x));
  return x;
}
