// Recurrent cells over a sequence: LSTM, GRU and RNN of ONNX, in one direction or both.
//
// With a_g = x_g + h R_g^T, where x_g is the input's share of gate g (input times W_g, and the biases):
//   LSTM  i = f(a_i + P_i c), f = f(a_f + P_f c), c' = f c + i g(a_c), o = f(a_o + P_o c'), h' = o h(c')
//   GRU   z = f(a_z), r = f(a_r), h' = (1 - z) g(x_h + (r h) R_h^T) + z h, or, with the reset gate behind the
//         product, (1 - z) g(x_h + r (h R_h^T + b_h)) + z h
//   RNN   h' = f(a)
// What f and g are applied to is clipped before, in ONNX Runtime as well. Sources: Hochreiter and
// Schmidhuber, "Long short-term memory" (1997), Gers and Schmidhuber, "Recurrent nets that time and count"
// (2000) for P, Cho et al., "Learning phrase representations using RNN encoder-decoder" (2014); ONNX's
// operators.
//
// The importer writes the products of the input as a dense layer, of all steps and both directions at once;
// this op is what depends on the step before.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "ops/base/op.h"
#include "ops/recurrent/recurrent_loops.h"

namespace tilesmith {

enum class CellKind { kLstm, kGru, kRnn };

// A function as ONNX calls it, its parameters and their defaults.
struct NamedGate {
  GateKind kind;
  std::string_view name;
  bool has_alpha = false, has_beta = false;
  float alpha = 0, beta = 0;
};
inline constexpr NamedGate kGates[] = {
    {GateKind::kRelu, "Relu"},
    {GateKind::kTanh, "Tanh"},
    {GateKind::kSigmoid, "Sigmoid"},
    {GateKind::kAffine, "Affine", true, true, 1, 0},
    {GateKind::kLeakyRelu, "LeakyRelu", true, false, 0.01f},
    {GateKind::kThresholdedRelu, "ThresholdedRelu", true, false, 1},
    {GateKind::kScaledTanh, "ScaledTanh", true, true, 1, 1},
    {GateKind::kHardSigmoid, "HardSigmoid", true, true, 0.2f, 0.5f},
    {GateKind::kElu, "Elu", true, false, 1},
    {GateKind::kSoftsign, "Softsign"},
    {GateKind::kSoftplus, "Softplus"},
};

struct RecurrentParams {
  CellKind cell = CellKind::kLstm;
  int64_t hidden = 1;
  bool batch_first = false;                   // ONNX's layout 1
  std::vector<bool> reversed = {};            // each direction, one or two of them
  std::vector<CellFunctions> functions = {};  // of each
  bool reset_behind = false;                  // a GRU's linear_before_reset
  bool has_lengths = false, has_state = false, has_cell = false, has_peepholes = false, has_bias = false;
  std::shared_ptr<const Tensor> weights = nullptr;                // R; null: an input
  bool all_states = true, last_state = false, last_cell = false;  // what the output holds

  int64_t directions() const { return static_cast<int64_t>(reversed.size()); }
  int64_t gates() const { return cell == CellKind::kLstm ? 4 : cell == CellKind::kGru ? 3 : 1; }
};

// Inputs, those behind the first only where the parameters say so: the input's share of all gates {steps,
// batch, directions * gates * hidden}, gates in ONNX's order; lengths of the sequences {batch}, of i32; the
// first h and c {directions, batch, hidden}; P {directions, 3 * hidden}; the bias b_h {directions, hidden};
// R {directions, gates * hidden, hidden}. With batch_first batch stands in front of steps, and of directions.
//
// Output {steps', directions, batch, hidden}, with batch_first {batch, steps', directions, hidden}: h of
// every step, zeros behind a sequence's end, then the last h, and the last c, of these what the parameters
// say. Plain layout.
class RecurrentOp : public Op {
 public:
  explicit RecurrentOp(RecurrentParams params);
  const RecurrentParams& params() const { return params_; }

  std::string_view Type() const override;
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override;
  // The same in floats: by how much it differs from Reference says what rounding may do.
  Tensor ReferenceInFloats(std::span<const Tensor* const> inputs) const;
  double Flops(std::span<const Shape> inputs) const override;
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool KernelTakes(std::span<const DataType>) const override { return true; }
  bool HasFastKernel() const override { return true; }
  auto Parameters() const { return std::tie(params_); }

 private:
  template <typename Real>
  Tensor Evaluate(std::span<const Tensor* const> inputs) const;

  RecurrentParams params_;
};

// Where inputs are, by name; -1 for those that are absent.
struct RecurrentSlots {
  int lengths = -1, state = -1, cell = -1, peepholes = -1, bias = -1, weights = -1;
  explicit RecurrentSlots(const RecurrentParams& params);
};

// Where rows of the tensors lie, in floats from an image's start, images being steps or, with batch_first,
// rows of the batch.
struct RecurrentPlaces {
  bool batch_first = false;
  int64_t steps = 0, batch = 0, directions = 1, hidden = 1, gates = 1;
  int64_t state_row = 0, cell_row = 0;  // the output's step that holds the last h, the last c

  RecurrentPlaces(const RecurrentParams& params, const Shape& input);
  struct Row {
    int64_t image, offset;
  };
  Row Input(int64_t step, int64_t row, int64_t direction) const {
    const int64_t inner = batch_first ? step : row;
    return {batch_first ? row : step, (inner * directions + direction) * gates * hidden};
  }
  Row Output(int64_t step, int64_t row, int64_t direction) const {
    if (batch_first) return {row, (step * directions + direction) * hidden};
    return {step, (direction * batch + row) * hidden};
  }
  // Of the first h and c.
  Row State(int64_t row, int64_t direction) const {
    return batch_first ? Row{row, direction * hidden} : Row{direction, row * hidden};
  }
};

// Throws Error(kBadModel) for a length that is outside [0, steps].
void CheckLength(int64_t length, int64_t steps);

std::unique_ptr<Kernel> MakeRecurrentKernel(const KernelRequest& request, const RecurrentParams& params);

}  // namespace tilesmith
