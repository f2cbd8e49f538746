// cuDNN's functions that compute convolutions, loaded when a baseline is asked for. Types and values as in
// NVIDIA's documentation of its graph-less API, of cuDNN 9.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "templates/cuda_device/context.h"
#include "templates/cudnn/config.h"

namespace tilesmith::cuda {

struct CudnnFunctions {
  size_t (*version)() = nullptr;
  const char* (*error_string)(int status) = nullptr;
  int (*create)(void** handle) = nullptr;
  int (*set_stream)(void* handle, StreamHandle stream) = nullptr;
  int (*create_tensor)(void** descriptor) = nullptr;
  int (*destroy_tensor)(void* descriptor) = nullptr;
  int (*set_tensor)(void* descriptor, int type, int n, int c, int h, int w, int n_stride, int c_stride,
                    int h_stride, int w_stride) = nullptr;
  int (*create_filter)(void** descriptor) = nullptr;
  int (*destroy_filter)(void* descriptor) = nullptr;
  int (*set_filter)(void* descriptor, int type, int format, int k, int c, int h, int w) = nullptr;
  int (*create_convolution)(void** descriptor) = nullptr;
  int (*destroy_convolution)(void* descriptor) = nullptr;
  int (*set_convolution)(void* descriptor, int pad_h, int pad_w, int stride_h, int stride_w, int dilation_h,
                         int dilation_w, int mode, int type) = nullptr;
  int (*set_groups)(void* descriptor, int groups) = nullptr;
  int (*set_math)(void* descriptor, int math) = nullptr;
  int (*create_activation)(void** descriptor) = nullptr;
  int (*destroy_activation)(void* descriptor) = nullptr;
  int (*set_activation)(void* descriptor, int mode, int nan, double coefficient) = nullptr;
  int (*workspace)(void* handle, void* in, void* filter, void* convolution, void* out, int algorithm,
                   size_t* bytes) = nullptr;
  int (*convolve)(void* handle, const void* alpha, void* in, const void* in_data, void* filter,
                  const void* filter_data, void* convolution, int algorithm, void* workspace, size_t bytes,
                  const void* beta, void* out, void* out_data) = nullptr;
  int (*convolve_fused)(void* handle, const void* alpha, void* in, const void* in_data, void* filter,
                        const void* filter_data, void* convolution, int algorithm, void* workspace,
                        size_t bytes, const void* residual_factor, void* residual, const void* residual_data,
                        void* bias, const void* bias_data, void* activation, void* out,
                        void* out_data) = nullptr;
  int (*add)(void* handle, const void* alpha, void* in, const void* in_data, const void* beta, void* out,
             void* out_data) = nullptr;
  int (*activate)(void* handle, void* activation, const void* alpha, void* in, const void* in_data,
                  const void* beta, void* out, void* out_data) = nullptr;
};

// On one GPU, for as long as the process lives.
class Cudnn {
 public:
  // Throws Error(kEnvironment) in one line where the library is missing or older.
  explicit Cudnn(const ContextPtr& context);
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  const CudnnFunctions& functions() const { return functions_; }
  // Throws Error(kNoCandidate) naming what was asked for and what cuDNN says of it.
  void Check(int status, const std::string& doing) const;
  // Calls `work(handle)`, whose work is queued there. One thread at a time.
  template <typename Work>
  void On(const Queue& queue, const Work& work) const {
    const std::lock_guard lock(mutex_);
    queue.context().MakeCurrent();
    if (queue.handle() != stream_) Check(functions_.set_stream(handle_, queue.handle()), "cuDNN's stream");
    stream_ = queue.handle();
    work(handle_);
  }
  // A workspace's size asks for the handle only.
  void* handle() const { return handle_; }

 private:
  CudnnFunctions functions_;
  void* handle_ = nullptr;
  mutable std::mutex mutex_;
  mutable StreamHandle stream_ = nullptr;
};

// The first GPU's. Throws as Cudnn. Thread-safe.
const Cudnn& LoadedCudnn();

// "9.10.2". Throws Error(kEnvironment) where there is no cuDNN, or no GPU.
std::string CudnnVersion();

// Convolutions by cuDNN as kernels of the device: what ours are set beside, alone and in whole networks.
//
// `name` is for people. Throws Error(kNoCandidate) where cuDNN has not this algorithm for the workload, and
// Error(kEnvironment) where there is no cuDNN.
std::unique_ptr<ConvKernel> LoadCudnnConv(const ContextPtr& context, std::unique_ptr<CudnnConv> built,
                                          std::string name);

}  // namespace tilesmith::cuda
