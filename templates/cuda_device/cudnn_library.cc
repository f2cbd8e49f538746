#include "templates/cuda_device/cudnn_library.h"

#include <fmt/format.h>

#include <limits>

#include "layouts/base/check.h"
#include "layouts/base/error.h"
#include "layouts/base/shared_library.h"
#include "layouts/tensor.h"
#include "templates/cuda/limits.h"
#include "templates/cuda_device/kernels.h"

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

namespace {

// Values of the library's enumerations.
constexpr int kFloat = 0, kBfloat16 = 9, kNchw = 0, kNhwc = 1, kCrossCorrelation = 1, kNanPropagates = 1;
constexpr int kTensorOps = 1, kFmaOnly = 3;
constexpr int kRelu = 1, kClippedRelu = 3, kIdentity = 5;

constexpr float kOne = 1, kZero = 0;

int ModeOf(const Activation& activation) {
  switch (activation.kind) {
    case ActivationKind::kRelu:
      return kRelu;
    case ActivationKind::kClip:
      return kClippedRelu;
    default:
      return kIdentity;
  }
}

// A descriptor of the library's.
using Descriptor = std::unique_ptr<void, int (*)(void*)>;

int Narrow(int64_t value) {
  if (value > std::numeric_limits<int>::max())
    throw Error(ErrorCode::kNoCandidate, fmt::format("cuDNN's sizes are ints, asked for {}", value));
  return static_cast<int>(value);
}

class DeviceCudnnConv final : public ConvKernel, public Queued {
 public:
  DeviceCudnnConv(const ContextPtr& context, std::unique_ptr<CudnnConv> built, std::string name)
      : built_(std::move(built)),
        name_(std::move(name)),
        cudnn_(LoadedCudnn()),
        f_(cudnn_.functions()),
        in_(Made(f_.create_tensor, f_.destroy_tensor)),
        out_(Made(f_.create_tensor, f_.destroy_tensor)),
        residual_(Made(f_.create_tensor, f_.destroy_tensor)),
        bias_(Made(f_.create_tensor, f_.destroy_tensor)),
        filter_(Made(f_.create_filter, f_.destroy_filter)),
        convolution_(Made(f_.create_convolution, f_.destroy_convolution)),
        activation_(Made(f_.create_activation, f_.destroy_activation)) {
    const ConvWorkload& w = call().workload;
    const auto filters = Narrow(w.oc), channels = Narrow(w.ic / w.g);
    Check(f_.set_filter(filter_.get(), type(), call().nhwc ? kNhwc : kNchw, filters, channels, Narrow(w.kh),
                        Narrow(w.kw)));
    Check(f_.set_convolution(convolution_.get(), Narrow(w.ph), Narrow(w.pw), Narrow(w.sh), Narrow(w.sw),
                             Narrow(w.dh + 1), Narrow(w.dw + 1), kCrossCorrelation, kFloat));
    Check(f_.set_groups(convolution_.get(), Narrow(w.g)));
    // The default would round floats to TF32 where it likes.
    const bool on_tensor_cores = call().tf32 || call().type == DataType::kBf16;
    Check(f_.set_math(convolution_.get(), on_tensor_cores ? kTensorOps : kFmaOnly));
    const Activation& activation = w.post.activation;
    Check(f_.set_activation(activation_.get(), ModeOf(activation), kNanPropagates,
                            static_cast<double>(activation.beta)));
    Check(f_.set_tensor(bias_.get(), type(), 1, filters, 1, 1, filters, 1, filters, filters));
    SetTensor(in_, w.input_shape(), w.ic * w.ih * w.iw);
    SetTensor(out_, w.output_shape(), w.oc * w.oh * w.ow);
    Check(f_.workspace(cudnn_.handle(), in_.get(), filter_.get(), convolution_.get(), out_.get(),
                       call().algorithm, &workspace_bytes_));
    if (workspace_bytes_ > static_cast<size_t>(kMaxScratch))
      throw Error(ErrorCode::kNoCandidate,
                  fmt::format("{}: {} bytes of scratch (allowed: {})", name_, workspace_bytes_, kMaxScratch));
    weights_ = AllocateWeights(context, built_->weights(), name_);
  }

  int64_t Tasks(int) const override { return 1; }
  void Run(const KernelArgs&, int, TaskRange) const override {
    TILESMITH_CHECK(false, "{} runs on a CUDA device only", name_);
  }
  int64_t ScratchBytes(int) const override { return static_cast<int64_t>(workspace_bytes_); }
  std::span<const std::byte> PackedWeights() const override { return built_->PackedWeights(); }
  const std::string& name() const override { return name_; }

  void Enqueue(const KernelArgs& args, const Queue& queue) const override {
    cudnn_.On(queue, [&](void* handle) { EnqueueOn(handle, args); });
  }

 private:
  const cudnn::Call& call() const { return built_->call(); }
  int type() const { return call().type == DataType::kBf16 ? kBfloat16 : kFloat; }
  void Check(int status) const { cudnn_.Check(status, name_); }
  Descriptor Made(int (*create)(void**), int (*destroy)(void*)) const {
    void* made = nullptr;
    Check(create(&made));
    return {made, destroy};
  }

  // Images lie `image` elements apart.
  void SetTensor(const Descriptor& descriptor, const Shape& shape, int64_t image) const {
    const int64_t c = shape[1], h = shape[2], w = shape[3];
    const int64_t channel = call().nhwc ? 1 : h * w, pixel = call().nhwc ? c : 1;
    Check(f_.set_tensor(descriptor.get(), type(), Narrow(shape[0]), Narrow(c), Narrow(h), Narrow(w),
                        Narrow(image), Narrow(channel), Narrow(w * pixel), Narrow(pixel)));
  }

  void EnqueueOn(void* handle, const KernelArgs& args) const {
    const ConvWorkload& w = call().workload;
    const int64_t element = ElementBytes(call().type);
    SetTensor(in_, w.input_shape(), args.inputs[0].batch_stride / element);
    SetTensor(out_, w.output_shape(), args.output.batch_stride / element);
    const void* residual = args.output.data;  // where there is none, what is not read
    if (w.post.sum) {
      SetTensor(residual_, w.output_shape(), args.inputs[1].batch_stride / element);
      residual = args.inputs[1].data;
    } else {
      SetTensor(residual_, w.output_shape(), args.output.batch_stride / element);
    }
    const auto* const filters = static_cast<const std::byte*>(weights_.data.get());
    const std::byte* const bias = filters + w.oc * (w.ic / w.g) * w.kh * w.kw * element;
    if (call().fused) {
      Check(f_.convolve_fused(handle, &kOne, in_.get(), args.inputs[0].data, filter_.get(), filters,
                              convolution_.get(), call().algorithm, args.scratch, workspace_bytes_,
                              w.post.sum ? &kOne : &kZero, residual_.get(), residual, bias_.get(), bias,
                              activation_.get(), out_.get(), args.output.data));
      return;
    }
    const bool in_place = w.post.sum && residual == args.output.data;
    Check(f_.convolve(handle, &kOne, in_.get(), args.inputs[0].data, filter_.get(), filters,
                      convolution_.get(), call().algorithm, args.scratch, workspace_bytes_,
                      in_place ? &kOne : &kZero, out_.get(), args.output.data));
    if (w.post.sum && !in_place)
      Check(f_.add(handle, &kOne, residual_.get(), residual, &kOne, out_.get(), args.output.data));
    if (w.post.bias) Check(f_.add(handle, &kOne, bias_.get(), bias, &kOne, out_.get(), args.output.data));
    if (w.post.activation.kind != ActivationKind::kNone)
      Check(f_.activate(handle, activation_.get(), &kOne, out_.get(), args.output.data, &kZero, out_.get(),
                        args.output.data));
  }

  const std::unique_ptr<CudnnConv> built_;
  const std::string name_;
  const Cudnn& cudnn_;
  const CudnnFunctions& f_;
  const Descriptor in_, out_, residual_, bias_, filter_, convolution_, activation_;
  size_t workspace_bytes_ = 0;
  DeviceMemory weights_;
};

}  // namespace

std::unique_ptr<ConvKernel> LoadCudnnConv(const ContextPtr& context, std::unique_ptr<CudnnConv> built,
                                          std::string name) {
  return std::make_unique<DeviceCudnnConv>(context, std::move(built), std::move(name));
}

}  // namespace tilesmith::cuda
