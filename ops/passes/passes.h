// Passes: each maps a network to one that computes the same with less. Names and order of the graph's inputs
// and outputs are kept; where several nodes become one, it has the name of the first of them, or the
// output's.
//
// passes.cc lists them in the order in which they run.
#pragma once

#include <string_view>
#include <vector>

#include "ops/graph/graph.h"

namespace tilesmith {

struct Pass {
  std::string_view name;
  Graph (*run)(const Graph&);
  // Where it says no to every op of a network, the pass would change nothing, and does not run.
  bool (*looks_at)(const Op&);
};

// What OptimizeGraph runs, in order.
const std::vector<Pass>& Passes();

// All passes. The result equals the input's up to rounding: weights are scaled in double and rounded once.
Graph OptimizeGraph(Graph graph);

// What DequantizeLinear and QuantizeLinear of bytes enclose, each with one scale, is computed on the bytes:
// Conv, where its weights and bias are quantised too, Add and Mul, batch normalizations, with a Relu or Clip
// behind them; and where the scale stays what it is, MaxPool, Concat, Slice, Transpose and views.
Graph FuseQuantized(const Graph& graph);

// What is left of batch normalizations in front of a QuantizeLinear of bytes is computed with it.
Graph FuseQuantizers(const Graph& graph);

// Nodes whose inputs are all constants become constants.
Graph FoldConstants(const Graph& graph);

// Special cases in their simpler form: a PRelu with one slope is a LeakyRelu, a Transpose that moves only
// axes of size 1 is a Reshape.
Graph Canonicalize(const Graph& graph);

// Drops nodes that return their input: Identity, Dropout, reshapes to the same shape, transposes in order,
// pads of nothing, scales by one, single-input Concat and Sum. One stays where it connects an output directly
// to an input or to another output.
Graph RemoveIdentities(const Graph& graph);

// A concat of strided slices of one image, a pixel apart from each other (YOLO's "focus" layer), goes into
// the convs behind it, which then read the image itself with a larger kernel and stride; as much arithmetic,
// and nothing is moved.
Graph FoldSpaceToDepth(const Graph& graph);

// A Pad with zeros around H and W becomes padding of the Conv or AveragePool behind it. An average pool must
// count its padding, or have none of its own and round sizes down; max pools skip padding, so theirs stays.
Graph FoldPad(const Graph& graph);

// Formulas written out, in the orders that exporters have, become one op: x (1 + erf(x / sqrt(2))) / 2 and
// its approximation by tanh a Gelu, x tanh(softplus(x)) a Mish, (x - mean) / sqrt(variance + epsilon) over
// the last axes a LayerNormalization, with the product and sum behind it where those are with constants, and
// x / max(norm of x, epsilon) over the last axes an LpNormalization.
Graph RecognizeFunctions(const Graph& graph);

// Products of a tensor with its own sigmoid become a Silu, those with its own hard sigmoid, however exporters
// spell that (x * clip(x + 3, 0, 6) / 6), a HardSwish.
Graph RecognizeGates(const Graph& graph);

// x + x * g becomes x * (g + 1) where g has one value per channel and image: one pass over x instead of two.
Graph MergeGatedSums(const Graph& graph);

// Adding a constant row to the rows that a Gemm gives, or multiplying them by one, goes into its weights and
// bias.
Graph FoldRowConstants(const Graph& graph);

// A ScaleShift behind a Conv or ConvTranspose (one without groups) that has no residual and no activation
// yet, or behind such a Gemm, goes into the weights and bias. What differs from channel to channel must do so
// along a Gemm's last axis: its rank is 2.
Graph FoldScaleShift(const Graph& graph);

// ScaleShift behind ScaleShift becomes one.
Graph MergeScaleShifts(const Graph& graph);

// A ScaleShift without activation goes into the weights and bias of the Convs behind it, where none of them
// has padding (which stays zero) and nothing else reads it.
Graph PushScaleShift(const Graph& graph);

// A fusable activation behind a Conv, ConvTranspose, Gemm or ScaleShift that has none goes into it.
Graph FuseActivation(const Graph& graph);

// Add of a Conv's or Gemm's output, used nowhere else, and a tensor of the same shape becomes its residual
// input. When both operands qualify, the later one takes the earlier.
Graph FuseResidual(const Graph& graph);

// A ConvTranspose becomes a Conv that computes every output pixel of a stride x stride square as channels of
// its own (kernel ceil(k / stride), stride 1), and the DepthToSpace that puts them in place: Shi et al., "Is
// the deconvolution layer the same as a convolutional layer?" (2016). Dilated ones stay, and those with an
// output far larger than what the input reaches.
Graph LowerConvTranspose(const Graph& graph);

// Reshapes, transposes and multiplications by a number in front of a MatMul go into it, and so do a number, a
// constant row added, an activation or a transpose of anything but the columns behind it.
Graph FuseMatMul(const Graph& graph);

// softmax(q * k + mask) * v, over the last axis and with nothing else reading what is between, becomes an
// Attention.
Graph RecognizeAttention(const Graph& graph);

// A Gemm becomes a 1x1 Conv over an image whose pixels are the rows, between views that move nothing: M rows
// of K values lie in memory as [1, K, 1, M] does in NHWC. One row is [1, K, 1, 1] in any layout. Gemms
// without rows, or of sizes that no workload can state, stay.
Graph LowerDense(const Graph& graph);

// Concat along channels that starts with all inputs of an earlier one takes that one's output instead: the
// concat-of-everything of a dense block becomes a chain in which each tensor is appended once.
Graph ChainConcats(const Graph& graph);

}  // namespace tilesmith
