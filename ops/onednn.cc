#include "ops/onednn.h"

#include <omp.h>

#include <dnnl.hpp>
#include <optional>
#include <vector>

#include "layouts/base/check.h"

namespace tilesmith {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using Dims = memory::dims;

constexpr auto kInference = dnnl::prop_kind::forward_inference;
constexpr auto kFloat = memory::data_type::f32;

const dnnl::engine& Engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// Batch normalization with statistics given, not computed.
dnnl::normalization_flags BatchNormFlags() {
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
auto DescribeEltwise(const dnnl::primitive_attr& attr, algorithm kind, const memory::desc& data, float alpha,
                     float beta) {
  return Describe<dnnl::eltwise_forward>(attr, kInference, kind, data, data, alpha, beta);
}
auto DescribeBatchNorm(const dnnl::primitive_attr& attr, const memory::desc& data) {
  return Describe<dnnl::batch_normalization_forward>(attr, kInference, data, data, 0.f, BatchNormFlags());
}
dnnl::sum::primitive_desc DescribeSum(const memory::desc& out, const std::vector<memory::desc>& inputs) {
  return {Engine(), out, std::vector<float>(inputs.size(), 1.f), inputs};
}
dnnl::concat::primitive_desc DescribeConcat(const memory::desc& out,
                                            const std::vector<memory::desc>& inputs) {
  return {Engine(), out, 1, inputs};
}
void AppendEltwise(dnnl::post_ops& post, algorithm kind, float alpha, float beta) {
  post.append_eltwise(kind, alpha, beta);
}
#else
using PoolingForward = dnnl::pooling_v2_forward;
using SoftmaxForward = dnnl::softmax_v2_forward;

template <typename Primitive, typename... Args>
auto Describe(const dnnl::primitive_attr& attr, const Args&... args) {
  return typename Primitive::primitive_desc(typename Primitive::desc(args...), attr, Engine());
}
auto DescribeEltwise(const dnnl::primitive_attr& attr, algorithm kind, const memory::desc& data, float alpha,
                     float beta) {
  return Describe<dnnl::eltwise_forward>(attr, kInference, kind, data, alpha, beta);
}
auto DescribeBatchNorm(const dnnl::primitive_attr& attr, const memory::desc& data) {
  return Describe<dnnl::batch_normalization_forward>(attr, kInference, data, 0.f, BatchNormFlags());
}
dnnl::sum::primitive_desc DescribeSum(const memory::desc& out, const std::vector<memory::desc>& inputs) {
  return {out, std::vector<float>(inputs.size(), 1.f), inputs, Engine()};
}
dnnl::concat::primitive_desc DescribeConcat(const memory::desc& out,
                                            const std::vector<memory::desc>& inputs) {
  return {out, 1, inputs, Engine()};
}
void AppendEltwise(dnnl::post_ops& post, algorithm kind, float alpha, float beta) {
  post.append_eltwise(1.f, kind, alpha, beta);
}
#endif

memory::desc PlainDesc(const Dims& dims) {
  constexpr memory::format_tag kTags[] = {memory::format_tag::a, memory::format_tag::ab,
                                          memory::format_tag::abc, memory::format_tag::abcd,
                                          memory::format_tag::abcde};
  TILESMITH_CHECK(!dims.empty() && dims.size() <= 5, "rank {}", dims.size());
  return {dims, kFloat, kTags[dims.size() - 1]};
}

memory::desc AnyDesc(const Dims& dims) { return {dims, kFloat, memory::format_tag::any}; }

struct NamedTag {
  const char* name;
  memory::format_tag tag;
};
constexpr NamedTag kActivationTags[] = {{"NCHW", memory::format_tag::nchw},
                                        {"NHWC", memory::format_tag::nhwc},
                                        {"NCHW4c", memory::format_tag::nChw4c},
                                        {"NCHW8c", memory::format_tag::nChw8c},
                                        {"NCHW16c", memory::format_tag::nChw16c}};

// Thrown for what oneDNN cannot do before it is even asked; ends as a refusal like its own errors.
struct Refusal {
  std::string reason;
};

memory::desc LayoutDesc(const Shape& shape, const Layout& layout) {
  if (layout.is_nchw()) return PlainDesc(shape);
  TILESMITH_CHECK(shape.size() == 4, "shape {}", ShapeToString(shape));
  const std::string name = layout.ToString();
  for (const NamedTag& known : kActivationTags) {
    if (name == known.name) return {shape, kFloat, known.tag};
  }
  throw Refusal{fmt::format("oneDNN has no layout {}", name)};
}

// Two layouts can coincide in memory (one channel, one pixel); the first name that fits is given.
std::string LayoutName(const memory::desc& desc, const Dims& dims) {
  if (dims.size() != 4) return desc == PlainDesc(dims) ? "plain" : "other";
  for (const NamedTag& known : kActivationTags) {
    if (desc == memory::desc(dims, kFloat, known.tag)) return known.name;
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

void Reorder(memory from, memory to) {
  dnnl::stream stream(Engine());
  dnnl::reorder(from, to).execute(stream, from, to);
  stream.wait();
}

memory PlainView(const Dims& dims, const float* data) {
  return memory(PlainDesc(dims), Engine(), const_cast<float*>(data));
}

struct Eltwise {
  algorithm kind;
  float alpha, beta;
};

// The activation as a chain of oneDNN's eltwise operations.
std::vector<Eltwise> EltwiseSteps(const Activation& activation) {
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
  }
  TILESMITH_CHECK(false, "activation {}", static_cast<int>(activation.kind));
}

dnnl::primitive_attr FusedSteps(std::span<const Eltwise> steps, bool sum = false) {
  dnnl::post_ops post;
  if (sum) post.append_sum();
  for (const Eltwise& step : steps) AppendEltwise(post, step.kind, step.alpha, step.beta);
  dnnl::primitive_attr attr;
  attr.set_post_ops(post);
  return attr;
}

dnnl::primitive_attr FusedActivation(const Activation& activation, bool sum = false) {
  return FusedSteps(EltwiseSteps(activation), sum);
}

}  // namespace

struct OneDnnPrimitive::Impl {
  struct Source {
    int arg;  // DNNL_ARG_...
    Buffer buffer;
  };
  struct Copy {
    dnnl::reorder reorder;
    memory from, to;
  };

  dnnl::primitive primitive;  // empty: the twin is a buffer
  std::string name;
  dnnl::stream stream{Engine()};
  std::vector<Source> sources;
  std::vector<Buffer> parameters;  // the weights first
  std::optional<Buffer> destination;
  bool has_weights = false;
  std::vector<Copy> copies;  // before the execution
  std::vector<dnnl_exec_arg_t> args;

  template <typename PrimitiveDesc>
  void SetPrimitive(const PrimitiveDesc& desc, dnnl::primitive made) {
    primitive = std::move(made);
    name = desc.impl_info_str();
  }
  void AddSource(int arg, const memory::desc& desc, const Dims& dims) {
    sources.push_back({arg, Buffer(desc, dims)});
    args.push_back({arg, sources.back().buffer.mem.get()});
  }
  void SetDestination(const memory::desc& desc, const Dims& dims) {
    destination.emplace(desc, dims);
    args.push_back({DNNL_ARG_DST, destination->mem.get()});
  }
  void AddParameter(int arg, const memory::desc& desc, const memory& given) {
    parameters.emplace_back(desc, Dims());
    Reorder(given, parameters.back().mem);
    args.push_back({arg, parameters.back().mem.get()});
  }
  void AddCopy(const Buffer& from, const Buffer& to) {
    copies.push_back({dnnl::reorder(from.mem, to.mem), from.mem, to.mem});
  }
  void Rebind(int arg, const Buffer& buffer) {
    for (dnnl_exec_arg_t& bound : args) {
      if (bound.arg == arg) bound.memory = buffer.mem.get();
    }
  }
};

namespace {

using Impl = OneDnnPrimitive::Impl;

// Calls make(), turning what oneDNN cannot do into null and its reason.
template <typename Make>
auto OrRefusal(std::string* refusal, const Make& make) -> decltype(make()) {
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

algorithm ConvAlgorithm(OneDnnAlgorithm algorithm) {
  switch (algorithm) {
    case OneDnnAlgorithm::kDirect:
      return dnnl::algorithm::convolution_direct;
    case OneDnnAlgorithm::kAuto:
      return dnnl::algorithm::convolution_auto;
    case OneDnnAlgorithm::kWinograd:
      return dnnl::algorithm::convolution_winograd;
  }
  TILESMITH_CHECK(false, "algorithm {}", static_cast<int>(algorithm));
}

std::unique_ptr<Impl> MakeConv(const ConvWorkload& w, OneDnnAlgorithm algorithm, const ConvParams& params) {
  TILESMITH_CHECK(w.post.bias == (params.bias != nullptr), "{}", WorkloadToString(w));
  const Dims source = w.input_shape(), destination = w.output_shape(), bias = {w.oc};
  const Dims weights = w.g > 1 ? Dims{w.g, w.oc / w.g, w.ic / w.g, w.kh, w.kw} : w.weights_shape();
  const auto desc = Describe<dnnl::convolution_forward>(
      FusedActivation(w.post.activation, w.post.sum), kInference, ConvAlgorithm(algorithm), AnyDesc(source),
      AnyDesc(weights), w.post.bias ? PlainDesc(bias) : memory::desc(), AnyDesc(destination),
      Dims{w.sh, w.sw}, Dims{w.dh, w.dw}, Dims{w.ph, w.pw}, Dims{w.pad_bottom(), w.pad_right()});
  auto impl = std::make_unique<Impl>();
  impl->SetPrimitive(desc, dnnl::convolution_forward(desc));
  if (algorithm == OneDnnAlgorithm::kWinograd && impl->name.find("wino") == std::string::npos) {
    throw Refusal{fmt::format("oneDNN offers {} instead of Winograd", impl->name)};
  }
  impl->AddSource(DNNL_ARG_SRC, desc.src_desc(), source);
  impl->AddParameter(DNNL_ARG_WEIGHTS, desc.weights_desc(), PlainView(weights, params.weights));
  if (w.post.bias) impl->AddParameter(DNNL_ARG_BIAS, desc.bias_desc(), PlainView(bias, params.bias));
  impl->SetDestination(desc.dst_desc(), destination);
  impl->has_weights = true;
  return impl;
}

}  // namespace

OneDnnPrimitive::OneDnnPrimitive(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OneDnnPrimitive::~OneDnnPrimitive() = default;

void OneDnnPrimitive::SetInput(int index, const Tensor& plain) {
  TILESMITH_CHECK(index >= 0 && index < static_cast<int>(impl_->sources.size()), "input {}", index);
  const Buffer& source = impl_->sources[index].buffer;
  TILESMITH_CHECK(plain.layout().is_nchw() && plain.shape() == source.dims, "{} for {}",
                  ShapeToString(plain.shape()), ShapeToString(source.dims));
  Reorder(PlainView(source.dims, plain.floats()), source.mem);
}

void OneDnnPrimitive::Connect(int index, const OneDnnPrimitive& producer) {
  TILESMITH_CHECK(index >= 0 && index < static_cast<int>(impl_->sources.size()), "input {}", index);
  Impl::Source& source = impl_->sources[index];
  Buffer produced = *producer.impl_->destination;
  if (produced.dims != source.buffer.dims) {
    TILESMITH_CHECK(produced.mem.get_desc() == PlainDesc(produced.dims) &&
                        ElementCount(produced.dims) == ElementCount(source.buffer.dims),
                    "{} for {}", ShapeToString(produced.dims), ShapeToString(source.buffer.dims));
    produced = Buffer(PlainDesc(source.buffer.dims), source.buffer.dims, produced.storage);
  }
  if (produced.mem.get_desc() != source.buffer.mem.get_desc()) {
    impl_->AddCopy(produced, source.buffer);
    return;
  }
  source.buffer = produced;
  impl_->Rebind(source.arg, produced);
  if (!impl_->primitive) impl_->destination = produced;
}

void OneDnnPrimitive::Run() {
  for (Impl::Copy& copy : impl_->copies) copy.reorder.execute(impl_->stream, copy.from, copy.to);
  if (!impl_->primitive) {
    impl_->stream.wait();
    return;
  }
  const dnnl_status_t status = dnnl_primitive_execute(
      impl_->primitive.get(), impl_->stream.get(), static_cast<int>(impl_->args.size()), impl_->args.data());
  TILESMITH_CHECK(status == dnnl_success, "{} of {}", static_cast<int>(status), impl_->name);
  impl_->stream.wait();
}

Tensor OneDnnPrimitive::GetOutput() {
  Tensor plain(impl_->destination->dims);
  Reorder(impl_->destination->mem, PlainView(plain.shape(), plain.floats()));
  return plain;
}

std::string OneDnnPrimitive::ImplName() const { return impl_->name; }

std::string OneDnnPrimitive::InputLayoutName() const {
  return LayoutName(impl_->sources[0].buffer.mem.get_desc(), impl_->sources[0].buffer.dims);
}

std::string OneDnnPrimitive::OutputLayoutName() const {
  return LayoutName(impl_->destination->mem.get_desc(), impl_->destination->dims);
}

std::span<const float> OneDnnPrimitive::PackedWeights() const {
  if (!impl_->has_weights) return {};
  const AlignedBuffer& storage = *impl_->parameters[0].storage;
  return {storage.floats(), storage.bytes() / sizeof(float)};
}

std::string_view OneDnnAlgorithmName(OneDnnAlgorithm algorithm) {
  switch (algorithm) {
    case OneDnnAlgorithm::kDirect:
      return "direct";
    case OneDnnAlgorithm::kAuto:
      return "auto";
    case OneDnnAlgorithm::kWinograd:
      return "winograd";
  }
  TILESMITH_CHECK(false, "algorithm {}", static_cast<int>(algorithm));
}

std::unique_ptr<OneDnnConv> OneDnnConv::Create(const ConvWorkload& workload, OneDnnAlgorithm algorithm,
                                               const ConvParams& params, std::string* refusal) {
  return OrRefusal(refusal, [&] {
    return std::unique_ptr<OneDnnConv>(new OneDnnConv(MakeConv(workload, algorithm, params)));
  });
}

void OneDnnConv::SetResidual(const Tensor& plain) {
  const Buffer& destination = *impl_->destination;
  TILESMITH_CHECK(plain.layout().is_nchw() && plain.shape() == destination.dims, "{} for {}",
                  ShapeToString(plain.shape()), ShapeToString(destination.dims));
  Reorder(PlainView(destination.dims, plain.floats()), destination.mem);
}

void OneDnnConv::ConnectResidual(const OneDnnPrimitive& producer, bool overwrite) {
  const Buffer& residual = *ImplOf(producer).destination;
  Buffer& destination = *impl_->destination;
  TILESMITH_CHECK(residual.dims == destination.dims);
  if (!overwrite || residual.mem.get_desc() != destination.mem.get_desc()) {
    impl_->AddCopy(residual, destination);
    return;
  }
  destination = residual;
  impl_->Rebind(DNNL_ARG_DST, destination);
}

std::unique_ptr<OneDnnPrimitive> MakeOneDnnBuffer(const Shape& shape) {
  auto impl = std::make_unique<Impl>();
  impl->name = "buffer";
  impl->AddSource(DNNL_ARG_SRC, PlainDesc(shape), shape);
  impl->destination = impl->sources[0].buffer;
  return std::make_unique<OneDnnPrimitive>(std::move(impl));
}

std::unique_ptr<OneDnnPrimitive> MakeOneDnnPool(const OneDnnPool& p, const Layout& layout,
                                                std::string* refusal) {
  return Make(refusal, [&](Impl& impl) {
    const auto kind = p.max                 ? algorithm::pooling_max
                      : p.count_include_pad ? algorithm::pooling_avg_include_padding
                                            : algorithm::pooling_avg_exclude_padding;
    const auto tail = [](int64_t out, int64_t stride, int64_t kernel, int64_t dilation, int64_t covered) {
      return (out - 1) * stride + (kernel - 1) * (dilation + 1) + 1 - covered;
    };
    const int64_t pad_bottom = tail(p.output[2], p.sh, p.kh, p.dh, p.input[2] + p.ph);
    const int64_t pad_right = tail(p.output[3], p.sw, p.kw, p.dw, p.input[3] + p.pw);
    const auto desc = Describe<PoolingForward>(
        dnnl::primitive_attr(), kInference, kind, LayoutDesc(p.input, layout), LayoutDesc(p.output, layout),
        Dims{p.sh, p.sw}, Dims{p.kh, p.kw}, Dims{p.dh, p.dw}, Dims{p.ph, p.pw}, Dims{pad_bottom, pad_right});
    impl.SetPrimitive(desc, PoolingForward(desc));
    impl.AddSource(DNNL_ARG_SRC, desc.src_desc(), p.input);
    impl.SetDestination(desc.dst_desc(), p.output);
  });
}

std::unique_ptr<OneDnnPrimitive> MakeOneDnnSum(const Shape& shape, int count, const Activation& activation,
                                               const Layout& layout, std::string* refusal) {
  return Make(refusal, [&](Impl& impl) {
    const memory::desc data = LayoutDesc(shape, layout);
    if (count == 2) {
      // oneDNN 2.6.3 then writes past its buffers.
      if (activation.kind != ActivationKind::kNone &&
          PaddedElementCount(shape, layout) != ElementCount(shape)) {
        throw Refusal{fmt::format("oneDNN does not fuse an activation into a sum of {} channels in {}",
                                  shape[1], layout.ToString())};
      }
      const auto desc =
          Describe<dnnl::binary>(FusedActivation(activation), algorithm::binary_add, data, data, data);
      impl.SetPrimitive(desc, dnnl::binary(desc));
      impl.AddSource(DNNL_ARG_SRC_0, data, shape);
      impl.AddSource(DNNL_ARG_SRC_1, data, shape);
    } else {
      if (activation.kind != ActivationKind::kNone) {
        throw Refusal{fmt::format("oneDNN does not fuse an activation into a sum of {}", count)};
      }
      const auto desc = DescribeSum(data, std::vector<memory::desc>(count, data));
      impl.SetPrimitive(desc, dnnl::sum(desc));
      for (int i = 0; i < count; ++i) impl.AddSource(DNNL_ARG_MULTIPLE_SRC + i, data, shape);
    }
    impl.SetDestination(data, shape);
  });
}

std::unique_ptr<OneDnnPrimitive> MakeOneDnnConcat(std::span<const Shape> inputs, const Layout& layout,
                                                  std::string* refusal) {
  return Make(refusal, [&](Impl& impl) {
    TILESMITH_CHECK(!inputs.empty());
    Shape output = inputs[0];
    output[1] = 0;
    std::vector<memory::desc> sources;
    for (const Shape& input : inputs) {
      sources.push_back(LayoutDesc(input, layout));
      output[1] += input[1];
    }
    const auto desc = DescribeConcat(LayoutDesc(output, layout), sources);
    impl.SetPrimitive(desc, dnnl::concat(desc));
    for (size_t i = 0; i < inputs.size(); ++i) {
      impl.AddSource(DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), sources[i], inputs[i]);
    }
    impl.SetDestination(desc.dst_desc(), output);
  });
}

std::unique_ptr<OneDnnPrimitive> MakeOneDnnActivation(const Shape& shape, const Activation& activation,
                                                      const Layout& layout, std::string* refusal) {
  return Make(refusal, [&](Impl& impl) {
    const std::vector<Eltwise> steps = EltwiseSteps(activation);
    TILESMITH_CHECK(!steps.empty());
    const memory::desc data = LayoutDesc(shape, layout);
    const auto desc = DescribeEltwise(FusedSteps(std::span(steps).subspan(1)), steps[0].kind, data,
                                      steps[0].alpha, steps[0].beta);
    impl.SetPrimitive(desc, dnnl::eltwise_forward(desc));
    impl.AddSource(DNNL_ARG_SRC, data, shape);
    impl.SetDestination(data, shape);
  });
}

std::unique_ptr<OneDnnPrimitive> MakeOneDnnScaleShift(const Shape& shape, const OneDnnScaleShift& params,
                                                      const Layout& layout, std::string* refusal) {
  return Make(refusal, [&](Impl& impl) {
    const memory::desc data = LayoutDesc(shape, layout);
    const Dims channels = {shape[1]};
    const memory::desc per_channel = PlainDesc(channels);
    const auto desc = DescribeBatchNorm(FusedActivation(params.activation), data);
    impl.SetPrimitive(desc, dnnl::batch_normalization_forward(desc));
    impl.AddSource(DNNL_ARG_SRC, data, shape);
    const std::vector<float> zeros(shape[1], 0.f), ones(shape[1], 1.f);
    impl.AddParameter(DNNL_ARG_SCALE, per_channel, PlainView(channels, params.scale));
    impl.AddParameter(DNNL_ARG_SHIFT, per_channel, PlainView(channels, params.shift));
    impl.AddParameter(DNNL_ARG_MEAN, per_channel, PlainView(channels, zeros.data()));
    impl.AddParameter(DNNL_ARG_VARIANCE, per_channel, PlainView(channels, ones.data()));
    impl.SetDestination(data, shape);
  });
}

std::unique_ptr<OneDnnPrimitive> MakeOneDnnInnerProduct(const OneDnnInnerProduct& p, std::string* refusal) {
  return Make(refusal, [&](Impl& impl) {
    const Dims source = {p.rows, p.in}, weights = {p.out, p.in}, bias = {p.out},
               destination = {p.rows, p.out};
    const auto desc = Describe<dnnl::inner_product_forward>(
        FusedActivation(p.activation), kInference, PlainDesc(source), AnyDesc(weights),
        p.bias != nullptr ? PlainDesc(bias) : memory::desc(), PlainDesc(destination));
    impl.SetPrimitive(desc, dnnl::inner_product_forward(desc));
    impl.AddSource(DNNL_ARG_SRC, desc.src_desc(), source);
    const memory::desc in_by_out(weights, kFloat, memory::format_tag::ba);
    impl.AddParameter(DNNL_ARG_WEIGHTS, desc.weights_desc(),
                      memory(in_by_out, Engine(), const_cast<float*>(p.weights)));
    if (p.bias != nullptr) {
      impl.AddParameter(DNNL_ARG_BIAS, desc.bias_desc(), PlainView(bias, p.bias));
    }
    impl.SetDestination(desc.dst_desc(), destination);
    impl.has_weights = true;
  });
}

std::unique_ptr<OneDnnPrimitive> MakeOneDnnSoftmax(const Shape& shape, int axis, std::string* refusal) {
  return Make(refusal, [&](Impl& impl) {
    const memory::desc data = PlainDesc(shape);
    const auto desc = Describe<SoftmaxForward>(dnnl::primitive_attr(), kInference,
                                               algorithm::softmax_accurate, data, data, axis);
    impl.SetPrimitive(desc, SoftmaxForward(desc));
    impl.AddSource(DNNL_ARG_SRC, data, shape);
    impl.SetDestination(data, shape);
  });
}

void OneDnnCapIsa(Isa isa) {
  const auto cap = isa == Isa::kAvx512 ? dnnl::cpu_isa::all
                   : isa == Isa::kAvx2 ? dnnl::cpu_isa::avx2
                                       : dnnl::cpu_isa::sse41;
  if (dnnl::set_max_cpu_isa(cap) != dnnl::status::success) {
    throw Error(
        ErrorCode::kInternal,
        fmt::format("oneDNN refuses to be capped at {}: it has already made a primitive", IsaName(isa)));
  }
}

void OneDnnSetThreads(int threads) { omp_set_num_threads(threads); }

std::string OneDnnVersion() {
  const dnnl::version_t& version = *dnnl::version();
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

}  // namespace tilesmith
