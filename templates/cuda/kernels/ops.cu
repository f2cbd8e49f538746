// Ops whose shapes stand in front of their weights, as structs of ints: one compilation serves all networks.
// A thread computes an element of the output as it lies in memory. Channel c of an image of so many pixels, in
// blocks of `block` channels, lies at place(c, pixel, pixels, block).
constexpr int THREADS = 256;

__device__ __forceinline__ long long own_element() {
  return blockIdx.x * static_cast<long long>(THREADS) + threadIdx.x;
}
__device__ __forceinline__ int place(int c, int pixel, int pixels, int block) {
  return c / block * (block * pixels) + pixel * block + c % block;
}
__device__ __forceinline__ int channel_at(int at, int pixels, int block) {
  return at / (block * pixels) * block + at % block;
}

// out[first + c] = c < channels ? in[c] : 0, for c < count: another layout or type, or an input of a concat.
struct Move {
  int images, channels, pixels, in_block, out_block, first, count, in_bytes, out_bytes;
};
extern "C" __global__ void __launch_bounds__(THREADS) move(const TsArgs a) {
  const Move& s = *reinterpret_cast<const Move*>(a.weights);
  const int image = s.count * s.pixels;
  const long long e = own_element();
  if (e >= static_cast<long long>(s.images) * image) return;
  const int n = e / image, at = e % image;
  const int c = s.out_block == 1 ? at / s.pixels : at % s.count;
  const int pixel = s.out_block == 1 ? at % s.pixels : at / s.count;
  const long long from = n * a.in_stride[0] + place(c, pixel, s.pixels, s.in_block);
  ts_store_at(a.out, n * a.out_stride + place(s.first + c, pixel, s.pixels, s.out_block), s.out_bytes,
              c < s.channels ? ts_real_at(a.in[0], from, s.in_bytes) : 0);
}

// The largest element or the mean of a window; what is no number is passed over by the first.
struct Pool {
  int images, channels, padded, block, ih, iw, oh, ow, kh, kw, sh, sw, dh, dw, top, left, bottom, right;
  int largest, with_padding, bytes;
};
extern "C" __global__ void __launch_bounds__(THREADS) pool(const TsArgs a) {
  const Pool& s = *reinterpret_cast<const Pool*>(a.weights);
  const int pixels = s.oh * s.ow, image = s.padded * pixels;
  const long long e = own_element();
  if (e >= static_cast<long long>(s.images) * image) return;
  const int n = e / image, at = e % image, c = channel_at(at, pixels, s.block);
  const int pixel = at / s.block % pixels, y0 = pixel / s.ow * s.sh - s.top, x0 = pixel % s.ow * s.sw - s.left;
  const long long image_at = n * a.in_stride[0];
  float value = s.largest && c < s.channels ? __uint_as_float(0xff800000u) : 0;
  int counted = 0;
  for (int i = 0; i < s.kh && c < s.channels; ++i) {
    const int y = y0 + i * s.dh;
    for (int j = 0; j < s.kw; ++j) {
      const int x = x0 + j * s.dw;
      const bool inside = y >= 0 && y < s.ih && x >= 0 && x < s.iw;
      if (inside || (s.with_padding && y < s.ih + s.bottom && x < s.iw + s.right)) ++counted;
      if (!inside) continue;
      const float one = ts_real_at(a.in[0], image_at + place(c, y * s.iw + x, s.ih * s.iw, s.block), s.bytes);
      value = !s.largest ? value + one : one > value ? one : value;
    }
  }
  if (!s.largest && counted > 0) value /= counted;
  ts_store_at(a.out, n * a.out_stride + at, s.bytes, value);
}

// The same of all pixels of a channel.
struct GlobalPool {
  int images, channels, padded, block, pixels, largest, bytes;
};
extern "C" __global__ void __launch_bounds__(THREADS) global_pool(const TsArgs a) {
  const GlobalPool& s = *reinterpret_cast<const GlobalPool*>(a.weights);
  const long long e = own_element();
  if (e >= static_cast<long long>(s.images) * s.padded) return;
  const int n = e / s.padded, c = e % s.padded;
  const long long image_at = n * a.in_stride[0];
  float value = s.largest ? __uint_as_float(0xff800000u) : 0;
  for (int pixel = 0; pixel < s.pixels && c < s.channels; ++pixel) {
    const float one = ts_real_at(a.in[0], image_at + place(c, pixel, s.pixels, s.block), s.bytes);
    value = !s.largest ? value + one : one > value ? one : value;
  }
  if (!s.largest) value /= s.pixels;
  ts_store_at(a.out, n * a.out_stride + c, s.bytes, c >= s.channels ? 0 : value);
}

// Arithmetic on two tensors, each of the output's sizes or of 1, in the numbers of BinaryKind.
struct Operand {
  int images, channels, height, width, block;
};
struct Binary {
  int kind, padded, bytes;
  Operand out, in[2];
};
__device__ __forceinline__ float element_of(const TsArgs& a, const Binary& s, int slot, int n, int c, int y, int x) {
  const Operand& in = s.in[slot];
  const int pixel = (in.height == 1 ? 0 : y) * in.width + (in.width == 1 ? 0 : x);
  const long long image_at = (in.images == 1 ? 0 : n) * a.in_stride[slot];
  return ts_real_at(a.in[slot], image_at + place(in.channels == 1 ? 0 : c, pixel, in.height * in.width, in.block),
                    s.bytes);
}
__device__ __forceinline__ float combined(int kind, float x, float y) {
  if (kind == 0) return x + y;
  if (kind == 1) return x - y;
  if (kind == 2) return x * y;
  if (kind == 3) return x / y;
  if (kind == 7) return x >= 0 ? x : x * y;
  if (x != x || y != y) return x + y;
  return kind == 5 ? (y < x ? y : x) : (x < y ? y : x);
}
extern "C" __global__ void __launch_bounds__(THREADS) binary(const TsArgs a) {
  const Binary& s = *reinterpret_cast<const Binary*>(a.weights);
  const int pixels = s.out.height * s.out.width, image = s.padded * pixels;
  const long long e = own_element();
  if (e >= static_cast<long long>(s.out.images) * image) return;
  const int n = e / image, at = e % image, c = channel_at(at, pixels, s.out.block);
  const int pixel = at / s.out.block % pixels, y = pixel / s.out.width, x = pixel % s.out.width;
  const float value = c >= s.out.channels
                          ? 0
                          : combined(s.kind, element_of(a, s, 0, n, c, y, x), element_of(a, s, 1, n, c, y, x));
  ts_store_at(a.out, n * a.out_stride + at, s.bytes, value);
}
