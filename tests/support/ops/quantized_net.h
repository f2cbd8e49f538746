// Networks as quantising tools write them: bytes, between what quantises and dequantises them.
#pragma once

#include "ops/base/op.h"
#include "ops/conv/conv.h"
#include "ops/dense/gemm.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/binary.h"
#include "ops/graph/graph.h"
#include "ops/pool/pool.h"
#include "ops/quantize/quantize.h"
#include "tests/support/random.h"

namespace tilesmith {

// A graph under construction. Scales are such that results use most of the range.
struct QuantizedNet {
  using Id = Graph::NodeId;
  Graph graph{"quantized"};
  uint64_t seed = 1;
  Quantization activations{DataType::kU8, 0, {0.02f}, {119}};
  int32_t largest_weight = 127;

  Id Input(const Shape& shape) { return graph.Add("input", std::make_shared<InputOp>(shape), {}); }
  // x through the integers of `q` and back.
  Id Stored(Id x, const Quantization& q) {
    const Id bytes = graph.Add("q" + std::to_string(seed), std::make_shared<QuantizeLinearOp>(q), {x});
    return graph.Add("d" + std::to_string(seed++), std::make_shared<DequantizeLinearOp>(q), {bytes});
  }
  Id Stored(Id x) { return Stored(x, activations); }
  // Weights and bias of bytes; `input` is how x is quantised.
  Id Conv(Id x, int64_t channels, int64_t kernel, const Quantization& input, int64_t groups = 1) {
    const Shape& in = graph.node(x).shape;
    ConvWorkload w;
    w.g = groups, w.mb = in[0], w.ic = in[1], w.ih = in[2], w.iw = in[3], w.oc = channels;
    w.kh = w.kw = kernel, w.ph = w.pw = kernel / 2, w.oh = w.ih, w.ow = w.iw, w.post.bias = true;
    TestRandom random(seed++);
    QuantizedTensor weights{nullptr, {DataType::kI8, 0, {}, {}}}, bias{nullptr, {DataType::kI32, 0, {}, {}}};
    for (int64_t o = 0; o < channels; ++o) {
      weights.quantization.scales.push_back(random.Uniform(0.002f, 0.01f));
      bias.quantization.scales.push_back(weights.quantization.scales.back() * input.scales[0]);
    }
    weights.quantization.zero_points = bias.quantization.zero_points =
        std::vector<int32_t>(static_cast<size_t>(channels), 0);
    weights.stored = Random<int8_t>(w.weights_shape(), largest_weight, random);
    bias.stored = Random<int32_t>({channels}, 3000, random);
    const auto reals = [](const QuantizedTensor& tensor) {
      return std::make_shared<const Tensor>(Dequantized(*tensor.stored, tensor.quantization));
    };
    return graph.Add("conv" + std::to_string(seed),
                     std::make_shared<ConvOp>(w, reals(weights), reals(bias),
                                              StoredWeights{std::make_shared<QuantizedTensor>(weights),
                                                            std::make_shared<QuantizedTensor>(bias)}),
                     {x});
  }
  Id Conv(Id x, int64_t channels, int64_t kernel) { return Conv(x, channels, kernel, activations); }
  // The same as a matrix.
  Id Dense(Id x, int64_t columns) {
    TestRandom random(seed++);
    const int64_t terms = graph.node(x).shape.back();
    QuantizedTensor weights{Random<int8_t>({columns, terms}, largest_weight, random),
                            {DataType::kI8, 0, {}, {}}};
    QuantizedTensor bias{Random<int32_t>({columns}, 3000, random), {DataType::kI32, 0, {}, {}}};
    for (int64_t o = 0; o < columns; ++o) {
      weights.quantization.scales.push_back(random.Uniform(0.002f, 0.01f));
      bias.quantization.scales.push_back(weights.quantization.scales.back() * activations.scales[0]);
    }
    weights.quantization.zero_points = bias.quantization.zero_points =
        std::vector<int32_t>(static_cast<size_t>(columns), 0);
    const auto reals = [](const QuantizedTensor& tensor) {
      return std::make_shared<const Tensor>(Dequantized(*tensor.stored, tensor.quantization));
    };
    return graph.Add("dense" + std::to_string(seed),
                     std::make_shared<GemmOp>(reals(weights), reals(bias), Activation(), false,
                                              StoredWeights{std::make_shared<QuantizedTensor>(weights),
                                                            std::make_shared<QuantizedTensor>(bias)}),
                     {x});
  }
  Id Relu(Id x) {
    return graph.Add("relu" + std::to_string(seed++),
                     std::make_shared<ActivationOp>(Activation{ActivationKind::kRelu}), {x});
  }
  Id Add(Id a, Id b) {
    return graph.Add("add" + std::to_string(seed++), std::make_shared<BinaryOp>(BinaryKind::kAdd), {a, b});
  }
  Id MaxPool(Id x) {
    return graph.Add("pool" + std::to_string(seed++),
                     std::make_shared<PoolOp>(PoolWindow{PoolKind::kMax, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1}), {x});
  }
  Id AveragePool(Id x) {
    return graph.Add("mean" + std::to_string(seed++),
                     std::make_shared<PoolOp>(PoolWindow{PoolKind::kAverage, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1}),
                     {x});
  }
  Id GlobalAveragePool(Id x) {
    return graph.Add("means" + std::to_string(seed++), std::make_shared<GlobalPoolOp>(PoolKind::kAverage),
                     {x});
  }

 private:
  template <typename T>
  static std::shared_ptr<const Tensor> Random(const Shape& shape, int32_t largest, TestRandom& random) {
    auto tensor = std::make_shared<Tensor>(shape, Layout::Nchw(kDataTypeOf<T>));
    for (int64_t i = 0; i < tensor->size(); ++i)
      tensor->template data<T>()[i] = static_cast<T>(random.Integer(-largest, largest));
    return tensor;
  }
};

// A residual block with everything that becomes one op on bytes.
inline Graph QuantizedBlock(int64_t channels) {
  QuantizedNet net;
  QuantizedNet::Id x = net.Stored(net.Input({2, channels, 9, 7}));
  x = net.Stored(net.Relu(net.Conv(x, channels, 3)));
  x = net.Stored(net.MaxPool(x));
  const QuantizedNet::Id left = net.Stored(net.Conv(x, channels, 1));
  const QuantizedNet::Id right = net.Stored(net.Conv(x, channels, 3, net.activations, channels));
  net.graph.MarkOutput(net.Stored(net.Relu(net.Add(left, right))));
  return std::move(net.graph);
}

}  // namespace tilesmith
