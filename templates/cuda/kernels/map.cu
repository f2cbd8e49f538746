// out = activate(scale[c] * in + shift[c]), scale and shift where HAS_SCALE; shapes as in ops.cu, in eight ints
// in front of scale and shift.
constexpr int THREADS = 256;

struct Map {
  int images, channels, padded, pixels, block, bytes;
};
extern "C" __global__ void __launch_bounds__(THREADS) map(const TsArgs a) {
  const Map& s = *reinterpret_cast<const Map*>(a.weights);
  const int image = s.padded * s.pixels;
  const long long e = blockIdx.x * static_cast<long long>(THREADS) + threadIdx.x;
  if (e >= static_cast<long long>(s.images) * image) return;
  const int n = e / image, at = e % image, c = at / (s.block * s.pixels) * s.block + at % s.block;
  float value = 0;
  if (c < s.channels) {
    value = ts_real_at(a.in[0], n * a.in_stride[0] + at, s.bytes);
    if constexpr (HAS_SCALE) value = a.weights[8 + c] * value + a.weights[8 + s.channels + c];
    value = activate(value);
  }
  ts_store_at(a.out, n * a.out_stride + at, s.bytes, value);
}
