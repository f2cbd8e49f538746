// Ops on tensors in plain order, whose sizes stand in front of their weights as ints, as in ops.cu. A walk is
// where the elements of a tensor lie in an order of somebody's choice: along `rank` axes, the last one fastest.
constexpr int THREADS = 256, AXES = 6;
constexpr int IMAGES = -2147483647;  // as a stride: from one image to the next, which the caller says

struct Walk {
  int rank;
  int size[AXES], stride[AXES];
};
__device__ __forceinline__ long long stride_of(int stride, long long image) { return stride == IMAGES ? image : stride; }
__device__ __forceinline__ long long offset_of(const Walk& w, int index, long long image) {
  long long offset = 0;
  for (int d = w.rank - 1; d >= 0; --d) {
    offset += index % w.size[d] * stride_of(w.stride[d], image);
    index /= w.size[d];
  }
  return offset;
}
__device__ __forceinline__ int own_element() {
  const long long e = blockIdx.x * static_cast<long long>(THREADS) + threadIdx.x;
  return e > 2147483647 ? 2147483647 : static_cast<int>(e);
}

// out[i] = in[first + i * step] along every axis; beyond `extent` of them `value`, what is mirrored (1), or the
// nearest (2): transposes, slices, pads, repetitions.
struct Arrange {
  int count, value, base, base_images;  // of the output: floats and images in front of what is written
  Walk out;
  int first[AXES], step[AXES], extent[AXES], stride[AXES], mode, bytes;
};
extern "C" __global__ void __launch_bounds__(THREADS) arrange(const TsArgs a) {
  const Arrange& s = *reinterpret_cast<const Arrange*>(a.weights);
  const int e = own_element();
  if (e >= s.count) return;
  int index = e;
  long long from = 0;
  bool inside = true;
  for (int d = s.out.rank - 1; d >= 0; --d) {
    int at = s.first[d] + index % s.out.size[d] * s.step[d];
    index /= s.out.size[d];
    const int last = s.extent[d] - 1;
    if (at < 0 || at > last) {
      inside = inside && s.mode != 0;
      if (s.mode == 2) at = at < 0 ? 0 : last;
      if (s.mode == 1) {
        const int period = 2 * last;
        at = period == 0 ? 0 : (at % period + period) % period;
        at = at > last ? period - at : at;
      }
    }
    from += at * stride_of(s.stride[d], a.in_stride[0]);
  }
  ts_store_at(a.out, s.base + s.base_images * a.out_stride + offset_of(s.out, e, a.out_stride), s.bytes,
              inside ? ts_real_at(a.in[0], from, s.bytes) : __uint_as_float(s.value));
}

// out = the element of the data that an index of the second input, of so many bytes, chooses along one axis; those
// below 0 count from its end. What is outside of it chooses NaN.
struct Gather {
  int count, extent, stride, index_bytes;
  Walk data, index, out;
};
extern "C" __global__ void __launch_bounds__(THREADS) gather(const TsArgs a) {
  const Gather& s = *reinterpret_cast<const Gather*>(a.weights);
  const int e = own_element();
  if (e >= s.count) return;
  const long long at = offset_of(s.index, e, a.in_stride[1]);
  const long long given =
      s.index_bytes == 8 ? reinterpret_cast<const long long*>(a.in[1])[at] : reinterpret_cast<const int*>(a.in[1])[at];
  const long long index = given < 0 ? given + s.extent : given;
  const bool inside = index >= 0 && index < s.extent;
  const long long from = offset_of(s.data, e, a.in_stride[0]) + (inside ? index : 0) * stride_of(s.stride, a.in_stride[0]);
  a.out[offset_of(s.out, e, a.out_stride)] = inside ? a.in[0][from] : __uint_as_float(0x7fc00000u);
}

// x / (bias + factor * (sum of squares of the channels from `before` in front to `after` behind)) ^ beta
struct Lrn {
  int images, channels, pixels, before, after, factor, bias, beta;
};
extern "C" __global__ void __launch_bounds__(THREADS) lrn(const TsArgs a) {
  const Lrn& s = *reinterpret_cast<const Lrn*>(a.weights);
  const int e = own_element(), image = s.channels * s.pixels;
  if (e >= s.images * image) return;
  const int n = e / image, at = e % image, c = at / s.pixels;
  const float* const in = a.in[0] + n * a.in_stride[0];
  const int first = c < s.before ? 0 : c - s.before, last = c + s.after < s.channels ? c + s.after : s.channels - 1;
  float squares = 0;
  for (int k = first; k <= last; ++k) {
    const float x = in[at + (k - c) * s.pixels];
    squares += x * x;
  }
  const float scale = __uint_as_float(s.bias) + __uint_as_float(s.factor) * squares;
  a.out[n * a.out_stride + at] = in[at] / powf(scale, __uint_as_float(s.beta));
}

// Arithmetic on two tensors that are broadcast, in the numbers of BinaryKind.
struct Pair {
  int count, kind;
  Walk out, in[2];
};
extern "C" __global__ void __launch_bounds__(THREADS) pair(const TsArgs a) {
  const Pair& s = *reinterpret_cast<const Pair*>(a.weights);
  const int e = own_element();
  if (e >= s.count) return;
  const float x = a.in[0][offset_of(s.in[0], e, a.in_stride[0])], y = a.in[1][offset_of(s.in[1], e, a.in_stride[1])];
  float value = s.kind == 0 ? x + y : s.kind == 1 ? x - y : s.kind == 2 ? x * y : s.kind == 3 ? x / y : powf(x, y);
  if (s.kind == 7) value = x >= 0 ? x : x * y;
  if (s.kind == 5 || s.kind == 6) value = x != x || y != y ? x + y : (s.kind == 5) == (y < x) ? y : x;
  a.out[offset_of(s.out, e, a.out_stride)] = value;
}

// A function of every element, in the order of FUNCTIONS in op_programs.cc.
struct Function {
  int count, kind, alpha, beta, bytes;
  Walk in, out;
};
__device__ __forceinline__ float function_of(int kind, float x, float alpha, float beta) {
  switch (kind) {
    case 0:
      return fabsf(x);
    case 1:
      return x < 0 ? alpha * (expf(x) - 1) : x;
    case 2:
      return erff(x);
    case 3:
      return expf(x);
    case 4:
      return x < -100 ? 0 : x * (1 + erff(x * 0.70710678f)) / 2;
    case 5:
      return x < -100 ? 0 : x * (1 + tanhf(0.79788456f * (x + 0.044715f * x * x * x))) / 2;
    case 6:
      return logf(x);
    case 7:
      return -x;
    case 8:
      return 1 / x;
    case 9:
      return x > 30 ? x : log1pf(expf(x));
    case 10:
      return sqrtf(x);
    case 11:
      return x < -100 ? 0 : x * tanhf(x > 30 ? x : log1pf(expf(x)));
    default:
      return beta * (x < 0 ? alpha * (expf(x) - 1) : x);
  }
}
extern "C" __global__ void __launch_bounds__(THREADS) function(const TsArgs a) {
  const Function& s = *reinterpret_cast<const Function*>(a.weights);
  const int e = own_element();
  if (e >= s.count) return;
  const float x = ts_real_at(a.in[0], offset_of(s.in, e, a.in_stride[0]), s.bytes);
  ts_store_at(a.out, offset_of(s.out, e, a.out_stride), s.bytes,
              function_of(s.kind, x, __uint_as_float(s.alpha), __uint_as_float(s.beta)));
}

// `lanes` threads share a group of elements: their number is a power of two.
struct Share {
  int group, lane, lanes;
};
__device__ __forceinline__ Share share_of(int lanes) {
  const int thread = threadIdx.x, of_block = THREADS / lanes;
  return {static_cast<int>(blockIdx.x) * of_block + thread / lanes, thread % lanes, lanes};
}
// What all lanes of a group have, taken together: 0 the sum, 1 the product, 2 the largest, 3 the smallest; what is
// no number is passed over by the last two.
__device__ __forceinline__ float taken(int how, float x, float y) {
  return how == 0 ? x + y : how == 1 ? x * y : how == 2 ? (y > x ? y : x) : (y < x ? y : x);
}
__device__ __forceinline__ float together(const Share& s, int how, float own) {
  float* const shared = ts_shared();
  __syncthreads();
  shared[threadIdx.x] = own;
  for (int half = s.lanes / 2; half > 0; half /= 2) {
    __syncthreads();
    const float other = s.lane < half ? shared[threadIdx.x + half] : 0;
    if (s.lane < half) shared[threadIdx.x] = taken(how, shared[threadIdx.x], other);
  }
  __syncthreads();
  return shared[threadIdx.x - s.lane];
}

// In the numbers of ReduceKind; `outer` and `inner` are where groups and their elements lie.
struct Reduce {
  int groups, count, lanes, kind;
  Walk outer, inner, out;
};
__device__ __forceinline__ float reduced(const TsArgs& a, const Reduce& s, const Share& own, int kind, float shift) {
  const int how = kind == 2 ? 2 : kind == 3 ? 3 : kind == 4 ? 1 : 0;
  float value = how == 1 ? 1 : how == 2 ? __uint_as_float(0xff800000u) : how == 3 ? __uint_as_float(0x7f800000u) : 0;
  const long long group = own.group < s.groups ? offset_of(s.outer, own.group, a.in_stride[0]) : 0;
  for (int i = own.lane; i < s.count && own.group < s.groups; i += own.lanes) {
    const float x = a.in[0][group + offset_of(s.inner, i, a.in_stride[0])];
    value = taken(how, value, kind == 5 ? fabsf(x) : kind == 6 || kind == 7 ? x * x : kind == 9 ? expf(x - shift) : x);
  }
  return together(own, how, value);
}
extern "C" __global__ void __launch_bounds__(THREADS) reduce(const TsArgs a) {
  const Reduce& s = *reinterpret_cast<const Reduce*>(a.weights);
  const Share own = share_of(s.lanes);
  const float most = s.kind == 9 ? reduced(a, s, own, 2, 0) : 0, shift = most - most == 0 ? most : 0;
  const float sum = reduced(a, s, own, s.kind, shift);
  if (own.lane != 0 || own.group >= s.groups) return;
  a.out[offset_of(s.out, own.group, a.out_stride)] = s.kind == 0   ? sum / s.count
                                                     : s.kind == 6 ? sqrtf(sum)
                                                     : s.kind == 8 ? logf(sum)
                                                     : s.kind == 9 ? shift + logf(sum)
                                                                   : sum;
}

// e^(x - largest) over the sum of these, or its logarithm. Where `rows` is not 0, groups are the rows of matrices of
// so many, and those behind the diagonal do not count: they are 0.
struct Softmax {
  int groups, count, lanes, logarithm, rows;
  Walk outer_in, inner_in, outer_out, inner_out;
};
extern "C" __global__ void __launch_bounds__(THREADS) softmax(const TsArgs a) {
  const Softmax& s = *reinterpret_cast<const Softmax*>(a.weights);
  const Share own = share_of(s.lanes);
  const bool inside = own.group < s.groups;
  const int seen = s.rows == 0 ? s.count : own.group % s.rows + 1, count = seen < s.count ? seen : s.count;
  const float* const in = a.in[0] + (inside ? offset_of(s.outer_in, own.group, a.in_stride[0]) : 0);
  float most = __uint_as_float(0xff800000u), sum = 0;
  for (int i = own.lane; i < count && inside; i += own.lanes)
    most = taken(2, most, in[offset_of(s.inner_in, i, a.in_stride[0])]);
  most = together(own, 2, most);
  for (int i = own.lane; i < count && inside; i += own.lanes)
    sum += expf(in[offset_of(s.inner_in, i, a.in_stride[0])] - most);
  sum = together(own, 0, sum);
  if (!inside) return;
  float* const out = a.out + offset_of(s.outer_out, own.group, a.out_stride);
  for (int i = own.lane; i < s.count; i += own.lanes) {
    const float x = in[offset_of(s.inner_in, i, a.in_stride[0])] - most;
    out[offset_of(s.inner_out, i, a.out_stride)] = i >= count ? 0 : s.logarithm ? x - logf(sum) : expf(x) / sum;
  }
}

// Groups of adjacent elements less their mean, over their spread, in the numbers of Spread; then scaled and
// shifted by channel (1) or by element (2), whose values lie behind these ints.
struct Normalize {
  int images, groups, count, lanes, spread, epsilon, scaled, pixels, values;
};
constexpr int NORMALIZE_INTS = 12;
extern "C" __global__ void __launch_bounds__(THREADS) normalize(const TsArgs a) {
  const Normalize& s = *reinterpret_cast<const Normalize*>(a.weights);
  const Share own = share_of(s.lanes);
  const bool inside = own.group < s.images * s.groups;
  const int n = inside ? own.group / s.groups : 0, first = own.group % s.groups * s.count;
  const float* const in = a.in[0] + n * a.in_stride[0] + (inside ? first : 0);
  const bool centred = s.spread < 2;
  float sum = 0, mean = 0;
  if (centred) {
    for (int i = own.lane; i < s.count && inside; i += own.lanes) sum += in[i];
    mean = together(own, 0, sum) / s.count;
    sum = 0;
  }
  for (int i = own.lane; i < s.count && inside; i += own.lanes) {
    const float x = in[i] - mean;
    sum += s.spread == 3 ? fabsf(x) : x * x;
  }
  sum = together(own, 0, sum);
  const float epsilon = __uint_as_float(s.epsilon);
  float factor = 1 / sqrtf(sum / s.count + epsilon);
  if (s.spread == 1) factor = 1 / (sqrtf(sum / s.count) + epsilon);
  if (s.spread >= 3) {
    const float norm = s.spread == 3 ? sum : sqrtf(sum), least = norm < epsilon ? epsilon : norm;
    factor = least == 0 ? 0 : 1 / least;
  }
  const float* const scale = a.weights + NORMALIZE_INTS;
  float* const out = a.out + n * a.out_stride + first;
  for (int i = own.lane; i < s.count && inside; i += own.lanes) {
    const int at = s.scaled == 2 ? i : s.scaled == 1 ? (first + i) / s.pixels : 0;
    const float y = (in[i] - mean) * factor;
    out[i] = s.scaled ? y * scale[at] + scale[s.values + at] : y;
  }
}

// out = activate(factor * a b + bias), batches of matrices of any strides; a block has 64 x 64 outputs.
struct MatMul {
  int count, m, n, k, factor, has_bias;
  int a_row, a_term, b_term, b_column, out_row, out_column;
  Walk a, b, out;
};
constexpr int MATMUL_INTS = 52, TILE = 64, TERMS = 16;
extern "C" __global__ void __launch_bounds__(THREADS) matmul(const TsArgs args) {
  const MatMul& s = *reinterpret_cast<const MatMul*>(args.weights);
  float* const left = ts_shared();
  float* const right = left + TERMS * TILE;
  const int tid = threadIdx.x, row = blockIdx.y * TILE, column = blockIdx.x * TILE;
  const long long a_row = stride_of(s.a_row, args.in_stride[0]), a_term = stride_of(s.a_term, args.in_stride[0]);
  const long long b_term = stride_of(s.b_term, args.in_stride[1]), b_column = stride_of(s.b_column, args.in_stride[1]);
  for (int batch = blockIdx.z; batch < s.count; batch += 65535) {
    const float* const a = args.in[0] + offset_of(s.a, batch, args.in_stride[0]);
    const float* const b = args.in[1] + offset_of(s.b, batch, args.in_stride[1]);
    float sums[4][4] = {};
    for (int k = 0; k < s.k; k += TERMS) {
      __syncthreads();
      for (int e = tid; e < TERMS * TILE; e += THREADS) {
        // Neighbouring threads read neighbouring floats, whichever way a matrix lies.
        const int ai = a_term == 1 ? e / TERMS : e % TILE, at = a_term == 1 ? e % TERMS : e / TILE;
        left[at * TILE + ai] = row + ai < s.m && k + at < s.k ? a[(row + ai) * a_row + (k + at) * a_term] : 0;
        const int bi = b_term == 1 ? e / TERMS : e % TILE, bt = b_term == 1 ? e % TERMS : e / TILE;
        right[bt * TILE + bi] = column + bi < s.n && k + bt < s.k ? b[(k + bt) * b_term + (column + bi) * b_column] : 0;
      }
      __syncthreads();
#pragma unroll 4
      for (int t = 0; t < TERMS; ++t) {
        const float4 x = *reinterpret_cast<const float4*>(left + t * TILE + tid / 16 * 4);
        const float4 y = *reinterpret_cast<const float4*>(right + t * TILE + tid % 16 * 4);
        const float xs[4] = {x.x, x.y, x.z, x.w}, ys[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int j = 0; j < 4; ++j) sums[i][j] += xs[i] * ys[j];
      }
    }
    float* const out = args.out + offset_of(s.out, batch, args.out_stride);
    const long long out_row = stride_of(s.out_row, args.out_stride), out_column = stride_of(s.out_column, args.out_stride);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int y = row + tid / 16 * 4 + i, x = column + tid % 16 * 4 + j;
        if (y >= s.m || x >= s.n) continue;
        const float sum = sums[i][j] * __uint_as_float(s.factor) + (s.has_bias ? args.weights[MATMUL_INTS + x] : 0);
        out[y * out_row + x * out_column] = activate(sum);
      }
    }
  }
}

// Rows and columns between two of the input's, in any layout; both taps and the weight of the second stand behind
// these ints, those of the rows first.
struct Resize {
  int images, channels, padded, block, ih, iw, oh, ow, bytes;
};
struct Tap {
  int low, high;
  float weight;
};
__device__ __forceinline__ float between(float low, float high, float weight) {
  return weight == 0 ? low : (1 - weight) * low + weight * high;
}
extern "C" __global__ void __launch_bounds__(THREADS) resize(const TsArgs a) {
  const Resize& s = *reinterpret_cast<const Resize*>(a.weights);
  const Tap* const taps = reinterpret_cast<const Tap*>(a.weights + 9);
  const int image = s.padded * s.oh * s.ow, pixels = s.ih * s.iw;
  const int e = own_element();
  if (e >= s.images * image) return;
  const int n = e / image, at = e % image, lane = at % s.block, pixel = at / s.block % (s.oh * s.ow);
  const int plane = at / (s.block * s.oh * s.ow);
  const Tap y = taps[pixel / s.ow], x = taps[s.oh + pixel % s.ow];
  const long long first = n * a.in_stride[0] + plane * s.block * pixels + lane;
  const auto in = [&](int row, int column) {
    return ts_real_at(a.in[0], first + (row * s.iw + column) * s.block, s.bytes);
  };
  const float above = between(in(y.low, x.low), in(y.low, x.high), x.weight);
  const float below = between(in(y.high, x.low), in(y.high, x.high), x.weight);
  ts_store_at(a.out, n * a.out_stride + at, s.bytes,
              plane * s.block + lane < s.channels ? between(above, below, y.weight) : 0);
}
