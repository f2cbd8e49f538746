// The twins of everything but convolutions.
#include <algorithm>

#include "tools/onednn/onednn_detail.h"

namespace tilesmith {

using namespace onednn;

std::unique_ptr<OneDnnPrimitive> MakeOneDnnBuffer(const Shape& shape, const Layout& layout) {
  return MakeOneDnnView(shape, layout, shape, layout);
}

std::unique_ptr<OneDnnPrimitive> MakeOneDnnView(const Shape& in, const Layout& in_layout, const Shape& out,
                                                const Layout& out_layout) {
  Prepare();
  auto impl = std::make_unique<Impl>();
  impl->name = "buffer";
  impl->AddSource(DNNL_ARG_SRC, LayoutDesc(in, in_layout), in);
  const Buffer& source = impl->sources[0].buffer;
  impl->destination.emplace(LayoutDesc(out, out_layout), out, source.storage);
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

std::unique_ptr<OneDnnPrimitive> MakeOneDnnInnerProduct(const OneDnnInnerProduct& p, std::string* refusal,
                                                        DataType stored) {
  return Make(refusal, [&](Impl& impl) {
    const memory::data_type type = TypeOf(stored);
    const Dims source = {p.rows, p.in, 1, 1}, weights = {p.out, p.in, 1, 1}, bias = {p.out},
               destination = {p.rows, p.out};
    const auto desc = Describe<dnnl::inner_product_forward>(
        FusedActivation(p.activation), kInference, PlainDesc(source, type), AnyDesc(weights, type),
        p.bias != nullptr ? PlainDesc(bias) : memory::desc(), PlainDesc(destination, type));
    impl.SetPrimitive(desc, dnnl::inner_product_forward(desc));
    impl.AddSource(DNNL_ARG_SRC, desc.src_desc(), source);
    impl.AddParameter(DNNL_ARG_WEIGHTS, desc.weights_desc(), PlainView(weights, p.weights));
    if (p.bias != nullptr) {
      impl.AddParameter(DNNL_ARG_BIAS, desc.bias_desc(), PlainView(bias, p.bias));
    }
    impl.SetDestination(desc.dst_desc(), destination);
    // The primitive keeps its own view of what its consumers see as images of a pixel.
    const Dims pixel = {p.rows, p.out, 1, 1};
    impl.parameters.push_back(*impl.destination);
    impl.destination = Buffer(PlainDesc(pixel, type), pixel, impl.destination->storage);
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

std::unique_ptr<OneDnnPrimitive> MakeOneDnnGate(const Shape& shape, int gate_slot, const Layout& layout,
                                                std::string* refusal) {
  return Make(refusal, [&](Impl& impl) {
    const Shape gate_shape = {shape[0], shape[1], 1, 1};
    const memory::desc data = LayoutDesc(shape, layout), gate = LayoutDesc(gate_shape, layout);
    const auto desc = Describe<dnnl::binary>(dnnl::primitive_attr(), algorithm::binary_mul, data, gate, data);
    impl.SetPrimitive(desc, dnnl::binary(desc));
    const auto add_data = [&] { impl.AddSource(DNNL_ARG_SRC_0, data, shape); };
    if (gate_slot != 0) add_data();
    impl.AddSource(DNNL_ARG_SRC_1, gate, gate_shape);
    if (gate_slot == 0) add_data();
    impl.SetDestination(data, shape);
  });
}

std::unique_ptr<OneDnnPrimitive> MakeGuest(std::unique_ptr<Kernel> kernel, const KernelRequest& request,
                                           std::string* refusal) {
  return Make(refusal, [&](Impl& impl) {
    const Layout& layout = request.layout;
    const auto fits = [&](const Shape& shape) {
      return layout.is_nchw() ? !shape.empty() && shape.size() <= 5 : shape.size() == 4;
    };
    if (!fits(request.output) || !std::ranges::all_of(request.inputs, fits))
      throw Refusal{fmt::format("{} in {}", ShapeToString(request.output), layout.ToString())};
    impl.name = "ours";
    Impl::Guest& guest = impl.guest.emplace(Impl::Guest{});
    for (size_t slot = 0; slot < request.inputs.size(); ++slot) {
      const Shape& input = request.inputs[slot];
      const Layout stored = layout.WithType(request.InputType(slot));
      impl.AddSource(DNNL_ARG_MULTIPLE_SRC + static_cast<int>(slot), LayoutDesc(input, stored), input);
      guest.inputs.push_back({nullptr, BatchBytes(input, stored)});
    }
    impl.SetDestination(LayoutDesc(request.output, layout), request.output);
    guest.output.batch_stride = BatchBytes(request.output, layout);
    guest.threads = TwinThreads();
    guest.scratch = AlignedBuffer(kernel->ScratchBytes(guest.threads));
    guest.kernel = std::move(kernel);
  });
}

}  // namespace tilesmith
