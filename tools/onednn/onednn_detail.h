// What the twins are made of. Only this folder includes it; nobody else sees oneDNN.
#pragma once

#include "tools/onednn/dnnl_functions.h"
// Behind the names above.
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "layouts/base/check.h"
#include "tools/onednn/onednn.h"

namespace tilesmith {
namespace onednn {

using dnnl::algorithm;
using dnnl::memory;
using Dims = memory::dims;

inline constexpr auto kInference = dnnl::prop_kind::forward_inference;
inline constexpr auto kFloat = memory::data_type::f32;

// Before the first twin, and before each, since threads are a thread's own: oneDNN is loaded, capped and
// given the calling thread's number of threads. Throws Error(kEnvironment) where it is not installed.
void Prepare();
// Of the calling thread's twins.
int TwinThreads();

inline const dnnl::engine& Engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// Nothing beside the variances of 1 that it is added to; but oneDNN normalizes a block's padding as well,
// whose variances are 0, and Winograd would multiply the NaN that this made with its padded weights.
constexpr float kEpsilon = 1e-30f;

// Batch normalization with statistics given, not computed.
inline dnnl::normalization_flags BatchNormFlags() {
  using Flags = dnnl::normalization_flags;
  return Flags::use_global_stats | Flags::use_scale | Flags::use_shift;
}

// What oneDNN 3 spells differently from oneDNN 2.
#if DNNL_VERSION_MAJOR >= 3
using PoolingForward = dnnl::pooling_forward;
using SoftmaxForward = dnnl::softmax_forward;

template <typename Primitive, typename... Args>
auto Describe(const dnnl::primitive_attr& attr, const Args&... args) {
  return typename Primitive::primitive_desc(Engine(), args..., attr);
}
inline auto DescribeEltwise(const dnnl::primitive_attr& attr, algorithm kind, const memory::desc& data,
                            float alpha, float beta) {
  return Describe<dnnl::eltwise_forward>(attr, kInference, kind, data, data, alpha, beta);
}
inline auto DescribeBatchNorm(const dnnl::primitive_attr& attr, const memory::desc& data) {
  return Describe<dnnl::batch_normalization_forward>(attr, kInference, data, data, kEpsilon,
                                                     BatchNormFlags());
}
inline dnnl::sum::primitive_desc DescribeSum(const memory::desc& out,
                                             const std::vector<memory::desc>& inputs) {
  return {Engine(), out, std::vector<float>(inputs.size(), 1.f), inputs};
}
inline dnnl::concat::primitive_desc DescribeConcat(const memory::desc& out,
                                                   const std::vector<memory::desc>& inputs) {
  return {Engine(), out, 1, inputs};
}
inline void AppendEltwise(dnnl::post_ops& post, algorithm kind, float alpha, float beta) {
  post.append_eltwise(kind, alpha, beta);
}
#else
using PoolingForward = dnnl::pooling_v2_forward;
using SoftmaxForward = dnnl::softmax_v2_forward;

template <typename Primitive, typename... Args>
auto Describe(const dnnl::primitive_attr& attr, const Args&... args) {
  return typename Primitive::primitive_desc(typename Primitive::desc(args...), attr, Engine());
}
inline auto DescribeEltwise(const dnnl::primitive_attr& attr, algorithm kind, const memory::desc& data,
                            float alpha, float beta) {
  return Describe<dnnl::eltwise_forward>(attr, kInference, kind, data, alpha, beta);
}
inline auto DescribeBatchNorm(const dnnl::primitive_attr& attr, const memory::desc& data) {
  return Describe<dnnl::batch_normalization_forward>(attr, kInference, data, kEpsilon, BatchNormFlags());
}
inline dnnl::sum::primitive_desc DescribeSum(const memory::desc& out,
                                             const std::vector<memory::desc>& inputs) {
  return {out, std::vector<float>(inputs.size(), 1.f), inputs, Engine()};
}
inline dnnl::concat::primitive_desc DescribeConcat(const memory::desc& out,
                                                   const std::vector<memory::desc>& inputs) {
  return {out, 1, inputs, Engine()};
}
inline void AppendEltwise(dnnl::post_ops& post, algorithm kind, float alpha, float beta) {
  post.append_eltwise(1.f, kind, alpha, beta);
}
#endif

inline memory::data_type TypeOf(DataType type) {
  switch (type) {
    case DataType::kF32:
      return kFloat;
    case DataType::kU8:
      return memory::data_type::u8;
    case DataType::kI8:
      return memory::data_type::s8;
    case DataType::kI32:
      return memory::data_type::s32;
    case DataType::kBf16:
      return memory::data_type::bf16;
    case DataType::kF16:
      return memory::data_type::f16;
    default:
      TILESMITH_CHECK(false, "{}", DataTypeName(type));
  }
}

inline memory::desc PlainDesc(const Dims& dims, memory::data_type type = kFloat) {
  TILESMITH_CHECK(!dims.empty() && dims.size() <= DNNL_MAX_NDIMS, "rank {}", dims.size());
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * std::max<int64_t>(dims[i], 1);
  return {dims, type, strides};
}

inline memory::desc AnyDesc(const Dims& dims, memory::data_type type = kFloat) {
  return {dims, type, memory::format_tag::any};
}

struct NamedTag {
  const char* name;
  memory::format_tag tag;
};
inline constexpr NamedTag kActivationTags[] = {{"NCHW", memory::format_tag::nchw},
                                               {"NHWC", memory::format_tag::nhwc},
                                               {"NCHW4c", memory::format_tag::nChw4c},
                                               {"NCHW8c", memory::format_tag::nChw8c},
                                               {"NCHW16c", memory::format_tag::nChw16c}};

// Thrown for what oneDNN cannot do before it is even asked; ends as a refusal like its own errors.
struct Refusal {
  std::string reason;
};

inline memory::desc LayoutDesc(const Shape& shape, const Layout& layout) {
  const memory::data_type type = TypeOf(layout.type());
  if (layout.is_nchw()) return PlainDesc(shape, type);
  TILESMITH_CHECK(shape.size() == 4, "shape {}", ShapeToString(shape));
  const std::string name = layout.WithType(DataType::kF32).ToString();
  for (const NamedTag& known : kActivationTags) {
    if (name == known.name) return {shape, type, known.tag};
  }
  throw Refusal{fmt::format("oneDNN has no layout {}", name)};
}

// Two layouts can coincide in memory (one channel, one pixel); the first name that fits is given.
inline std::string LayoutName(const memory::desc& desc, const Dims& dims) {
  const memory::data_type type = desc.data_type();
  if (dims.size() != 4) return desc == PlainDesc(dims, type) ? "plain" : "other";
  for (const NamedTag& known : kActivationTags) {
    if (desc == memory::desc(dims, type, known.tag)) return known.name;
  }
  return "other";
}

// oneDNN's view of memory allocated our way (huge pages for large tensors), so that neither side of a
// comparison has the better pages. Copies share the memory.
struct Buffer {
  Buffer(const memory::desc& desc, Dims dims)
      : Buffer(desc, std::move(dims), std::make_shared<AlignedBuffer>(desc.get_size())) {}
  Buffer(const memory::desc& desc, Dims dims, std::shared_ptr<AlignedBuffer> shared)
      : storage(std::move(shared)), mem(desc, Engine(), storage->data()), dims(std::move(dims)) {}

  std::shared_ptr<AlignedBuffer> storage;
  memory mem;
  Dims dims;  // logical
};

inline void Reorder(memory from, memory to) {
  dnnl::stream stream(Engine());
  dnnl::reorder(from, to).execute(stream, from, to);
  stream.wait();
}

inline memory PlainView(const Dims& dims, const float* data) {
  return memory(PlainDesc(dims), Engine(), const_cast<float*>(data));
}

inline memory PlainView(const Tensor& plain) {
  return memory(PlainDesc(plain.shape(), TypeOf(plain.type())), Engine(),
                const_cast<std::byte*>(plain.raw()));
}

struct Eltwise {
  algorithm kind;
  float alpha, beta;
};

// The activation as a chain of oneDNN's eltwise operations.
inline std::vector<Eltwise> EltwiseSteps(const Activation& activation) {
  const float alpha = activation.alpha, beta = activation.beta;
  switch (activation.kind) {
    case ActivationKind::kNone:
      return {};
    case ActivationKind::kRelu:
      return {{algorithm::eltwise_relu, 0, 0}};
    case ActivationKind::kClip:
      return {{algorithm::eltwise_clip, alpha, beta}};
    case ActivationKind::kLeakyRelu:
      return {{algorithm::eltwise_relu, alpha, 0}};
    case ActivationKind::kHardSigmoid:
      return {{algorithm::eltwise_linear, alpha, beta}, {algorithm::eltwise_clip, 0, 1}};
    case ActivationKind::kHardSwish:
      return {{algorithm::eltwise_hardswish, 1.f / 6, 0.5f}};
    case ActivationKind::kSigmoid:
      return {{algorithm::eltwise_logistic, 0, 0}};
    case ActivationKind::kTanh:
      return {{algorithm::eltwise_tanh, 0, 0}};
    case ActivationKind::kSilu:
      return {{algorithm::eltwise_swish, 1, 0}};
  }
  TILESMITH_CHECK(false, "activation {}", static_cast<int>(activation.kind));
}

inline dnnl::primitive_attr FusedSteps(std::span<const Eltwise> steps, bool sum = false) {
  dnnl::post_ops post;
  if (sum) post.append_sum();
  for (const Eltwise& step : steps) AppendEltwise(post, step.kind, step.alpha, step.beta);
  dnnl::primitive_attr attr;
  attr.set_post_ops(post);
  return attr;
}

inline dnnl::primitive_attr FusedActivation(const Activation& activation, bool sum = false) {
  return FusedSteps(EltwiseSteps(activation), sum);
}

}  // namespace onednn

struct OneDnnPrimitive::Impl {
  struct Source {
    int arg;  // DNNL_ARG_...
    onednn::Buffer buffer;
  };
  struct Copy {
    dnnl::reorder reorder;
    dnnl::memory from, to;
  };

  // A kernel that runs instead of a primitive.
  struct Guest {
    std::unique_ptr<Kernel> kernel;
    int threads = 1;
    std::vector<InputView> inputs;
    OutputView output;
    AlignedBuffer scratch;
  };

  dnnl::primitive primitive;  // empty: the twin is a buffer or a guest
  std::optional<Guest> guest;
  std::string name;
  dnnl::stream stream{onednn::Engine()};
  std::vector<Source> sources;
  std::vector<onednn::Buffer> parameters;  // the weights first
  std::optional<onednn::Buffer> destination;
  bool has_weights = false;
  std::vector<Copy> copies;  // before the execution
  std::vector<dnnl_exec_arg_t> args;

  template <typename PrimitiveDesc>
  void SetPrimitive(const PrimitiveDesc& desc, dnnl::primitive made) {
    primitive = std::move(made);
    name = desc.impl_info_str();
  }
  void AddSource(int arg, const dnnl::memory::desc& desc, const onednn::Dims& dims) {
    sources.push_back({arg, onednn::Buffer(desc, dims)});
    args.push_back({arg, sources.back().buffer.mem.get()});
  }
  void SetDestination(const dnnl::memory::desc& desc, const onednn::Dims& dims) {
    destination.emplace(desc, dims);
    args.push_back({DNNL_ARG_DST, destination->mem.get()});
  }
  void AddParameter(int arg, const dnnl::memory::desc& desc, const dnnl::memory& given) {
    parameters.emplace_back(desc, onednn::Dims());
    onednn::Reorder(given, parameters.back().mem);
    args.push_back({arg, parameters.back().mem.get()});
  }
  void AddCopy(const onednn::Buffer& from, const onednn::Buffer& to) {
    copies.push_back({dnnl::reorder(from.mem, to.mem), from.mem, to.mem});
  }
  void Rebind(int arg, const onednn::Buffer& buffer) {
    for (dnnl_exec_arg_t& bound : args) {
      if (bound.arg == arg) bound.memory = buffer.mem.get();
    }
  }
};

namespace onednn {

using Impl = OneDnnPrimitive::Impl;

// Calls make(), turning what oneDNN cannot do into null and its reason.
template <typename Make>
auto OrRefusal(std::string* refusal, const Make& make) -> decltype(make()) {
  Prepare();
  std::string reason;
  try {
    return make();
  } catch (const dnnl::error& error) {
    reason = fmt::format("oneDNN: {}{}", error.what(),
                         error.status == dnnl_unimplemented ? " (unimplemented)" : "");
  } catch (const Refusal& error) {
    reason = error.reason;
  }
  if (refusal != nullptr) *refusal = reason;
  return nullptr;
}

template <typename Fill>
std::unique_ptr<OneDnnPrimitive> Make(std::string* refusal, const Fill& fill) {
  return OrRefusal(refusal, [&] {
    auto impl = std::make_unique<Impl>();
    fill(*impl);
    return std::make_unique<OneDnnPrimitive>(std::move(impl));
  });
}

}  // namespace onednn
}  // namespace tilesmith
