#include "templates/cuda_device/cudnn_library.h"

#include <fmt/format.h>

#include "layouts/base/error.h"
#include "layouts/base/shared_library.h"

namespace tilesmith::cuda {
namespace {

constexpr const char* kLibrary = "libcudnn.so.9";

CudnnFunctions LoadFunctions() {
  void* const library = OpenLibrary(kLibrary);
  if (library == nullptr)
    throw Error(ErrorCode::kEnvironment, fmt::format("cuDNN 9 is not installed (looked for {})", kLibrary));
  CudnnFunctions f;
  const auto find = [&](const char* name, auto& function) {
    if (FindFunction(library, name, function)) return;
    throw Error(ErrorCode::kEnvironment, fmt::format("the installed {} lacks {}", kLibrary, name));
  };
  find("cudnnGetVersion", f.version);
  find("cudnnGetErrorString", f.error_string);
  find("cudnnCreate", f.create);
  find("cudnnSetStream", f.set_stream);
  find("cudnnCreateTensorDescriptor", f.create_tensor);
  find("cudnnDestroyTensorDescriptor", f.destroy_tensor);
  find("cudnnSetTensor4dDescriptorEx", f.set_tensor);
  find("cudnnCreateFilterDescriptor", f.create_filter);
  find("cudnnDestroyFilterDescriptor", f.destroy_filter);
  find("cudnnSetFilter4dDescriptor", f.set_filter);
  find("cudnnCreateConvolutionDescriptor", f.create_convolution);
  find("cudnnDestroyConvolutionDescriptor", f.destroy_convolution);
  find("cudnnSetConvolution2dDescriptor", f.set_convolution);
  find("cudnnSetConvolutionGroupCount", f.set_groups);
  find("cudnnSetConvolutionMathType", f.set_math);
  find("cudnnCreateActivationDescriptor", f.create_activation);
  find("cudnnDestroyActivationDescriptor", f.destroy_activation);
  find("cudnnSetActivationDescriptor", f.set_activation);
  find("cudnnGetConvolutionForwardWorkspaceSize", f.workspace);
  find("cudnnConvolutionForward", f.convolve);
  find("cudnnConvolutionBiasActivationForward", f.convolve_fused);
  find("cudnnAddTensor", f.add);
  find("cudnnActivationForward", f.activate);
  return f;
}

}  // namespace

Cudnn::Cudnn(const ContextPtr& context) : functions_(LoadFunctions()) {
  context->MakeCurrent();
  if (const int status = functions_.create(&handle_); status != kSuccess)
    throw Error(ErrorCode::kEnvironment, fmt::format("starting cuDNN: {}", functions_.error_string(status)));
}

void Cudnn::Check(int status, const std::string& doing) const {
  if (status == kSuccess) return;
  throw Error(ErrorCode::kNoCandidate, fmt::format("{}: {}", doing, functions_.error_string(status)));
}

const Cudnn& LoadedCudnn() {
  static const auto* const cudnn = new Cudnn(OpenContext());  // the driver may be gone before statics are
  return *cudnn;
}

std::string CudnnVersion() {
  const size_t version = LoadedCudnn().functions().version();
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace tilesmith::cuda
