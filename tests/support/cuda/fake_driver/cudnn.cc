// cuDNN without a GPU: the functions that templates/cuda_device uses, as loops on the fake driver's memory,
// queued on its streams. Some algorithms it has for some convolutions only, as the real one: WINOGRAD for 3x3
// of stride 1 in NCHW; GEMM in NCHW; none of the FFT and DIRECT ones. FAKE_CUDNN_MATH, where set, names a
// file to which every convolution appends the math type it was asked for.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <list>
#include <mutex>
#include <vector>

#include "layouts/data_type.h"

extern "C" int cuLaunchHostFunc(void* stream, void (*function)(void*), void* data);

namespace {

constexpr int kSuccess = 0, kBadParameter = 2000, kNotSupported = 3000;
constexpr int kFloat = 0, kBfloat16 = 9;

bool Knows(int type) { return type == kFloat || type == kBfloat16; }

// Elements of a type, as floats.
float Get(const void* data, int type, int64_t at) {
  if (type == kFloat) return static_cast<const float*>(data)[at];
  return tilesmith::FromBf16Bits(static_cast<const uint16_t*>(data)[at]);
}
void Put(void* data, int type, int64_t at, float value) {
  if (type == kFloat) {
    static_cast<float*>(data)[at] = value;
  } else {
    static_cast<uint16_t*>(data)[at] = tilesmith::Bf16Bits(value);
  }
}

struct Tensor {
  int type = kFloat, n = 0, c = 0, h = 0, w = 0;
  int64_t strides[4] = {};
  int64_t At(int i, int j, int y, int x) const {
    return i * strides[0] + j * strides[1] + y * strides[2] + x * strides[3];
  }
  template <typename Body>
  void ForEach(const Body& body) const {
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < c; ++j)
        for (int y = 0; y < h; ++y)
          for (int x = 0; x < w; ++x) body(i, j, y, x);
  }
};
struct Filter {
  int type = kFloat;
  bool nhwc = false;
  int k = 0, c = 0, h = 0, w = 0;
  int64_t At(int f, int j, int y, int x) const {
    return nhwc ? ((int64_t{f} * h + y) * w + x) * c + j : ((int64_t{f} * c + j) * h + y) * w + x;
  }
};
struct Convolution {
  int pad_h = 0, pad_w = 0, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1, groups = 1, math = 0;
};
struct Activation {
  int mode = 5;
  double coefficient = 0;
  float Of(float x) const {
    switch (mode) {
      case 0:
        return 1 / (1 + std::exp(-x));
      case 1:
        return x < 0 ? 0 : x;
      case 2:
        return std::tanh(x);
      case 3:
        return std::min(std::max(x, 0.0f), static_cast<float>(coefficient));
      default:
        return x;
    }
  }
};
struct Handle {
  void* stream = nullptr;
};

template <typename T>
const T& As(const void* descriptor) {
  return *static_cast<const T*>(descriptor);
}

int Queue(void* handle, std::function<void()> work) {
  // Graphs may run it again: kept as long as the library.
  static std::mutex mutex;
  static std::list<std::function<void()>> queued;
  const std::lock_guard lock(mutex);
  return cuLaunchHostFunc(
      static_cast<Handle*>(handle)->stream,
      [](void* data) { (*static_cast<std::function<void()>*>(data))(); },
      &queued.emplace_back(std::move(work)));
}

bool Has(const Tensor& in, const Filter& filter, const Convolution& conv, int algorithm) {
  switch (algorithm) {
    case 0:
    case 1:
      return true;
    case 2:
      return !filter.nhwc && in.strides[1] != 1;
    case 6:
      return !filter.nhwc && filter.h == 3 && filter.w == 3 && conv.stride_h == 1 && conv.stride_w == 1 &&
             conv.dilation_h == 1 && conv.groups == 1;
    default:
      return false;
  }
}

float Rounded(float x, int math) {
  if (math == 3) return x;
  uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof(bits));
  bits = (bits + 0x1000) & ~0x1fffU;
  std::memcpy(&x, &bits, sizeof(bits));
  return x;
}

float SumOf(const Tensor& in, const void* data, const Filter& filter, const void* weights,
            const Convolution& conv, const int (&at)[4]) {
  const int first = at[1] / (filter.k / conv.groups) * filter.c;
  float sum = 0;
  for (int j = 0; j < filter.c; ++j) {
    for (int r = 0; r < filter.h; ++r) {
      for (int s = 0; s < filter.w; ++s) {
        const int y = at[2] * conv.stride_h - conv.pad_h + r * conv.dilation_h;
        const int x = at[3] * conv.stride_w - conv.pad_w + s * conv.dilation_w;
        if (y < 0 || y >= in.h || x < 0 || x >= in.w) continue;
        sum += Rounded(Get(data, in.type, in.At(at[0], first + j, y, x)), conv.math) *
               Rounded(Get(weights, filter.type, filter.At(at[1], j, r, s)), conv.math);
      }
    }
  }
  return sum;
}

void Note(int math) {
  const char* const path = std::getenv("FAKE_CUDNN_MATH");
  std::FILE* const file = path == nullptr ? nullptr : std::fopen(path, "a");
  if (file == nullptr) return;
  std::fprintf(file, "%d\n", math);
  std::fclose(file);
}

constexpr size_t kWorkspace = 4096;

}  // namespace

#define FAKE_CUDNN extern "C" [[gnu::visibility("default")]] int

extern "C" [[gnu::visibility("default")]] size_t cudnnGetVersion() { return 90102; }
extern "C" [[gnu::visibility("default")]] const char* cudnnGetErrorString(int status) {
  return status == kNotSupported ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_BAD_PARAM";
}
FAKE_CUDNN cudnnCreate(void** handle) {
  *handle = new Handle;
  return kSuccess;
}
FAKE_CUDNN cudnnSetStream(void* handle, void* stream) {
  static_cast<Handle*>(handle)->stream = stream;
  return kSuccess;
}

#define FAKE_DESCRIPTOR(name, type)                             \
  FAKE_CUDNN cudnnCreate##name##Descriptor(void** descriptor) { \
    *descriptor = new type;                                     \
    return kSuccess;                                            \
  }                                                             \
  FAKE_CUDNN cudnnDestroy##name##Descriptor(void* descriptor) { \
    delete static_cast<type*>(descriptor);                      \
    return kSuccess;                                            \
  }
FAKE_DESCRIPTOR(Tensor, Tensor)
FAKE_DESCRIPTOR(Filter, Filter)
FAKE_DESCRIPTOR(Convolution, Convolution)
FAKE_DESCRIPTOR(Activation, Activation)

FAKE_CUDNN cudnnSetTensor4dDescriptorEx(void* descriptor, int type, int n, int c, int h, int w, int n_stride,
                                        int c_stride, int h_stride, int w_stride) {
  if (!Knows(type)) return kBadParameter;
  *static_cast<Tensor*>(descriptor) = {type, n, c, h, w, {n_stride, c_stride, h_stride, w_stride}};
  return kSuccess;
}
FAKE_CUDNN cudnnSetFilter4dDescriptor(void* descriptor, int type, int format, int k, int c, int h, int w) {
  if (!Knows(type)) return kBadParameter;
  *static_cast<Filter*>(descriptor) = {type, format == 1, k, c, h, w};
  return kSuccess;
}
FAKE_CUDNN cudnnSetConvolution2dDescriptor(void* descriptor, int pad_h, int pad_w, int stride_h, int stride_w,
                                           int dilation_h, int dilation_w, int mode, int type) {
  if (mode != 1 || type != 0) return kBadParameter;
  *static_cast<Convolution*>(descriptor) = {pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w};
  return kSuccess;
}
FAKE_CUDNN cudnnSetConvolutionGroupCount(void* descriptor, int groups) {
  static_cast<Convolution*>(descriptor)->groups = groups;
  return kSuccess;
}
FAKE_CUDNN cudnnSetConvolutionMathType(void* descriptor, int math) {
  static_cast<Convolution*>(descriptor)->math = math;
  return kSuccess;
}
FAKE_CUDNN cudnnSetActivationDescriptor(void* descriptor, int mode, int, double coefficient) {
  *static_cast<Activation*>(descriptor) = {mode, coefficient};
  return kSuccess;
}

FAKE_CUDNN cudnnGetConvolutionForwardWorkspaceSize(void*, void* in, void* filter, void* conv, void*,
                                                   int algorithm, size_t* bytes) {
  *bytes = algorithm == 1 ? kWorkspace : 0;
  return Has(As<Tensor>(in), As<Filter>(filter), As<Convolution>(conv), algorithm) ? kSuccess : kNotSupported;
}

FAKE_CUDNN cudnnConvolutionForward(void* handle, const float* alpha, void* in, const void* data, void* filter,
                                   const void* weights, void* conv, int algorithm, void* workspace,
                                   size_t bytes, const float* beta, void* out, void* result) {
  const Tensor x = As<Tensor>(in), y = As<Tensor>(out);
  const Filter w = As<Filter>(filter);
  const Convolution c = As<Convolution>(conv);
  if (!Has(x, w, c, algorithm) || *alpha != 1) return kNotSupported;
  if (algorithm == 1 && (workspace == nullptr || bytes < kWorkspace)) return kBadParameter;
  Note(c.math);
  return Queue(handle, [=, beta = *beta] {
    y.ForEach([&](int i, int j, int h, int v) {
      const int64_t at = y.At(i, j, h, v);
      const float before = beta == 0 ? 0 : beta * Get(result, y.type, at);
      Put(result, y.type, at, SumOf(x, data, w, weights, c, {i, j, h, v}) + before);
    });
  });
}
FAKE_CUDNN cudnnConvolutionBiasActivationForward(void* handle, const float* alpha, void* in, const void* data,
                                                 void* filter, const void* weights, void* conv, int algorithm,
                                                 void* workspace, size_t bytes, const float* factor,
                                                 void* residual, const void* residual_data, void* bias,
                                                 const void* bias_data, void* activation, void* out,
                                                 void* result) {
  const Tensor x = As<Tensor>(in), y = As<Tensor>(out), z = As<Tensor>(residual), b = As<Tensor>(bias);
  const Filter w = As<Filter>(filter);
  const Convolution c = As<Convolution>(conv);
  const Activation act = As<Activation>(activation);
  const bool allowed = act.mode == 1 || (act.mode == 5 && algorithm == 1);
  if (!Has(x, w, c, algorithm) || !allowed || *alpha != 1) return kNotSupported;
  if (algorithm == 1 && (workspace == nullptr || bytes < kWorkspace)) return kBadParameter;
  Note(c.math);
  return Queue(handle, [=, factor = *factor] {
    y.ForEach([&](int i, int j, int h, int v) {
      const float more = factor == 0 ? 0 : factor * Get(residual_data, z.type, z.At(i, j, h, v));
      const float sum = SumOf(x, data, w, weights, c, {i, j, h, v}) + more;
      Put(result, y.type, y.At(i, j, h, v), act.Of(sum + Get(bias_data, b.type, b.At(0, j, 0, 0))));
    });
  });
}
FAKE_CUDNN cudnnAddTensor(void* handle, const float* alpha, void* in, const void* data, const float* beta,
                          void* out, void* result) {
  const Tensor x = As<Tensor>(in), y = As<Tensor>(out);
  if (*alpha != 1 || *beta != 1) return kNotSupported;
  return Queue(handle, [=] {
    y.ForEach([&](int i, int j, int h, int v) {
      const int64_t at = y.At(i, j, h, v);
      const int64_t from = x.At(x.n == 1 ? 0 : i, j, x.h == 1 ? 0 : h, x.w == 1 ? 0 : v);
      Put(result, y.type, at, Get(result, y.type, at) + Get(data, x.type, from));
    });
  });
}
FAKE_CUDNN cudnnActivationForward(void* handle, void* activation, const float*, void* in, const void* data,
                                  const float*, void* out, void* result) {
  const Tensor x = As<Tensor>(in), y = As<Tensor>(out);
  const Activation act = As<Activation>(activation);
  return Queue(handle, [=] {
    y.ForEach([&](int i, int j, int h, int v) {
      Put(result, y.type, y.At(i, j, h, v), act.Of(Get(data, x.type, x.At(i, j, h, v))));
    });
  });
}
