// Inner loops of recurrent cells, one build per instruction set: what follows the products of a step.
#pragma once

#include <cstdint>

#include "layouts/base/isa_dispatch.h"

namespace tilesmith {

// Functions that ONNX lets gates have.
enum class GateKind {
  kRelu,
  kTanh,
  kSigmoid,
  kAffine,           // alpha x + beta
  kLeakyRelu,        // x >= 0 ? x : alpha x
  kThresholdedRelu,  // x > alpha ? x : 0
  kScaledTanh,       // alpha tanh(beta x)
  kHardSigmoid,      // min(max(alpha x + beta, 0), 1)
  kElu,              // x >= 0 ? x : alpha (e^x - 1)
  kSoftsign,         // x / (1 + |x|)
  kSoftplus,         // log(1 + e^x)
};

struct GateFunction {
  GateKind kind = GateKind::kTanh;
  float alpha = 0, beta = 0;

  bool operator==(const GateFunction&) const = default;
};

// What all units of one direction of a cell share: ONNX's f, g and h, of which a GRU has two and an RNN one.
struct CellFunctions {
  GateFunction f, g, h;
  float clip = __builtin_inff();  // of what f and g are applied to
  bool input_forget = false;      // an LSTM's forget gate is 1 - its input gate
};

// Adjacent units of one row at one step. Gate g's share of the input is at inputs + g * gate_step; of the
// recurrent product at sums + g * sums_step, where whole vectors may be read.
struct CellUnits {
  const float* inputs;
  int64_t gate_step;
  const float* sums;
  int64_t sums_step;
  const float* before;     // the state so far
  float* after;            // the state, or what a stage of the cell passes on
  float* cell;             // an LSTM's cell state, a GRU's update gate between its stages
  const float* peepholes;  // an LSTM's, of its gates i, o and f, gate_step apart; or null
  const float* bias;       // of the recurrent product of a GRU's hidden gate, or null
  float* output;           // the state once more, or null
  int64_t units;
};

// Gates i, o, f, z: cell = f * cell + i * z, after = o * h(cell).
TILESMITH_DECLARE_ISA(void LstmUnits(const CellUnits& u, const CellFunctions& functions))
// Gates z, r, h with the reset gate behind the product: after = (1 - z) * h + z * before.
TILESMITH_DECLARE_ISA(void GruUnits(const CellUnits& u, const CellFunctions& functions))
// With the reset gate in front of it, in two stages: first cell = z and after = r * before ...
TILESMITH_DECLARE_ISA(void GruGates(const CellUnits& u, const CellFunctions& functions))
// ... then, of the product of that, after = (1 - cell) * h + cell * before. `inputs` are the hidden gate's.
TILESMITH_DECLARE_ISA(void GruHidden(const CellUnits& u, const CellFunctions& functions))
// after = f(inputs + sums).
TILESMITH_DECLARE_ISA(void RnnUnits(const CellUnits& u, const CellFunctions& functions))

}  // namespace tilesmith
