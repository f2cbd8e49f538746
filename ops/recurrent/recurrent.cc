#include "ops/recurrent/recurrent.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "layouts/base/check.h"

namespace tilesmith {
namespace {

template <typename Real>
Real Apply(const GateFunction& function, Real x) {
  const Real alpha = function.alpha, beta = function.beta, zero = 0, one = 1;
  switch (function.kind) {
    case GateKind::kRelu:
      return std::max(x, zero);
    case GateKind::kTanh:
      return std::tanh(x);
    case GateKind::kSigmoid:
      return one / (one + std::exp(-x));
    case GateKind::kAffine:
      return alpha * x + beta;
    case GateKind::kLeakyRelu:
      return x >= zero ? x : alpha * x;
    case GateKind::kThresholdedRelu:
      return x <= alpha ? zero : x;
    case GateKind::kScaledTanh:
      return alpha * std::tanh(beta * x);
    case GateKind::kHardSigmoid:
      return std::min(std::max(alpha * x + beta, zero), one);
    case GateKind::kElu:
      return x >= zero ? x : alpha * std::expm1(x);
    case GateKind::kSoftsign:
      return x / (one + std::abs(x));
    case GateKind::kSoftplus:
      return std::max(x, zero) + std::log1p(std::exp(-std::abs(x)));
  }
  return x;
}

std::string ToString(const GateFunction& function) {
  const NamedGate& named = *std::ranges::find(kGates, function.kind, &NamedGate::kind);
  std::string text(named.name);
  if (named.has_alpha) text += fmt::format(":{:.9g}", function.alpha);
  if (named.has_beta) text += fmt::format(":{:.9g}", function.beta);
  return text;
}

[[noreturn]] void RefuseInput(const RecurrentParams& params, std::string_view what, const Shape& shape) {
  throw Error(ErrorCode::kBadModel,
              fmt::format("{} of {} directions and {} units: {} of shape {}", RecurrentOp(params).Type(),
                          params.directions(), params.hidden, what, ShapeToString(shape)));
}

// One row of a batch in one direction.
template <typename Real>
class Cell {
 public:
  using Vector = std::vector<Real>;

  // `weights`: R of the direction; peepholes and bias may be null.
  Cell(const RecurrentParams& params, int64_t direction, const float* weights, const float* peepholes,
       const float* bias)
      : params_(params),
        functions_(params.functions[static_cast<size_t>(direction)]),
        units_(params.hidden),
        weights_(weights),
        peepholes_(peepholes),
        bias_(bias) {}

  void Step(const float* x, Vector& h, Vector& c) const {
    switch (params_.cell) {
      case CellKind::kLstm:
        return Lstm(x, h, c);
      case CellKind::kGru:
        return Gru(x, h);
      case CellKind::kRnn:
        return Rnn(x, h);
    }
  }

 private:
  Vector Product(int64_t gate, const Vector& h) const {
    Vector sums(static_cast<size_t>(units_));
    for (int64_t unit = 0; unit < units_; ++unit) {
      const float* const row = weights_ + (gate * units_ + unit) * units_;
      Real sum = 0;
      for (int64_t k = 0; k < units_; ++k) sum += h[k] * static_cast<Real>(row[k]);
      sums[unit] = sum;
    }
    return sums;
  }
  Real Call(const GateFunction& function, Real x) const {
    const Real clip = functions_.clip;
    return Apply(function, std::min(std::max(x, -clip), clip));  // a NaN stays
  }
  void Lstm(const float* x, Vector& h, Vector& c) const {
    const Vector i = Product(0, h), o = Product(1, h), f = Product(2, h), z = Product(3, h);
    for (int64_t unit = 0; unit < units_; ++unit) {
      const auto peephole = [&](int64_t gate) {
        return peepholes_ != nullptr ? peepholes_[gate * units_ + unit] * c[unit] : Real(0);
      };
      const auto in = [&](int64_t gate) { return static_cast<Real>(x[gate * units_ + unit]); };
      const Real input = Call(functions_.f, in(0) + i[unit] + peephole(0));
      const Real forget =
          functions_.input_forget ? 1 - input : Call(functions_.f, in(2) + f[unit] + peephole(2));
      c[unit] = forget * c[unit] + input * Call(functions_.g, in(3) + z[unit]);
      h[unit] = Call(functions_.f, in(1) + o[unit] + peephole(1)) * Apply(functions_.h, c[unit]);
    }
  }
  void Gru(const float* x, Vector& h) const {
    const Vector of_z = Product(0, h), of_r = Product(1, h);
    Vector z(h.size()), r(h.size()), reset(h.size());
    for (int64_t unit = 0; unit < units_; ++unit) {
      z[unit] = Call(functions_.f, x[unit] + of_z[unit]);
      r[unit] = Call(functions_.f, x[units_ + unit] + of_r[unit]);
      reset[unit] = r[unit] * h[unit];
    }
    const Vector of_h = Product(2, params_.reset_behind ? h : reset);
    for (int64_t unit = 0; unit < units_; ++unit) {
      Real sum = of_h[unit];
      if (params_.reset_behind) sum = r[unit] * (sum + (bias_ != nullptr ? bias_[unit] : 0));
      const Real hidden = Call(functions_.g, x[2 * units_ + unit] + sum);
      h[unit] = (1 - z[unit]) * hidden + z[unit] * h[unit];
    }
  }
  void Rnn(const float* x, Vector& h) const {
    const Vector sums = Product(0, h);
    for (int64_t unit = 0; unit < units_; ++unit) h[unit] = Call(functions_.f, x[unit] + sums[unit]);
  }

  const RecurrentParams& params_;
  const CellFunctions& functions_;
  const int64_t units_;
  const float *weights_, *peepholes_, *bias_;
};

const Tensor* At(std::span<const Tensor* const> inputs, int slot) {
  return slot < 0 ? nullptr : inputs[static_cast<size_t>(slot)];
}

// A row of a plain tensor.
template <typename T>
auto* RowOf(T& tensor, const RecurrentPlaces::Row& row) {
  const int64_t images = std::max<int64_t>(tensor.shape()[0], 1);
  return tensor.floats() + row.image * (tensor.size() / images) + row.offset;
}

}  // namespace

RecurrentSlots::RecurrentSlots(const RecurrentParams& params) {
  int next = 1;
  const auto take = [&](bool present, int& slot) {
    if (present) slot = next++;
  };
  take(params.has_lengths, lengths);
  take(params.has_state, state);
  take(params.has_cell, cell);
  take(params.has_peepholes, peepholes);
  take(params.has_bias, bias);
  take(params.weights == nullptr, weights);
}

RecurrentPlaces::RecurrentPlaces(const RecurrentParams& params, const Shape& input)
    : batch_first(params.batch_first),
      steps(input[batch_first ? 1 : 0]),
      batch(input[batch_first ? 0 : 1]),
      directions(params.directions()),
      hidden(params.hidden),
      gates(params.gates()),
      state_row(params.all_states ? steps : 0),
      cell_row(state_row + (params.last_state ? 1 : 0)) {}

void CheckLength(int64_t length, int64_t steps) {
  if (length >= 0 && length <= steps) return;
  throw Error(ErrorCode::kBadModel, fmt::format("a sequence of length {} in {} steps", length, steps));
}

RecurrentOp::RecurrentOp(RecurrentParams params) : params_(std::move(params)) {
  TILESMITH_CHECK(params_.functions.size() == params_.reversed.size() && !params_.reversed.empty());
  TILESMITH_CHECK(params_.all_states || params_.last_state || params_.last_cell);
}

std::string_view RecurrentOp::Type() const {
  return params_.cell == CellKind::kLstm ? "LSTM" : params_.cell == CellKind::kGru ? "GRU" : "RNN";
}

std::string RecurrentOp::Signature() const {
  const RecurrentParams& p = params_;
  std::string text = fmt::format("{} {}", Type(), p.hidden);
  for (size_t i = 0; i < p.reversed.size(); ++i) {
    const CellFunctions& functions = p.functions[i];
    text += fmt::format(" {} {},{},{}", p.reversed[i] ? "reverse" : "forward", ToString(functions.f),
                        ToString(functions.g), ToString(functions.h));
    if (std::isfinite(functions.clip)) text += fmt::format(" clip:{:.9g}", functions.clip);
    if (functions.input_forget) text += " input_forget";
  }
  const auto add = [&](bool present, std::string_view what) {
    if (present) text.append(" ").append(what);
  };
  add(p.batch_first, "batch_first");
  add(p.reset_behind, "reset_behind");
  add(p.has_lengths, "lengths");
  add(p.has_state, "h");
  add(p.has_cell, "c");
  add(p.has_peepholes, "peepholes");
  add(p.has_bias, "bias");
  add(p.weights == nullptr, "weights");
  add(p.all_states, ">Y");
  add(p.last_state, ">Y_h");
  add(p.last_cell, ">Y_c");
  return text;
}

Shape RecurrentOp::InferShape(std::span<const Shape> inputs) const {
  const RecurrentParams& p = params_;
  const int64_t rows = (Checked(p.gates()) * p.hidden).value();
  if (inputs[0].size() != 3 || inputs[0][2] != (Checked(rows) * p.directions()).value())
    RefuseInput(p, "an input", inputs[0]);
  const RecurrentPlaces places(p, inputs[0]);
  const RecurrentSlots slots(p);
  const auto need = [&](int slot, const Shape& shape, std::string_view what) {
    if (slot >= 0 && inputs[static_cast<size_t>(slot)] != shape) RefuseInput(p, what, inputs[slot]);
  };
  const Shape state = p.batch_first ? Shape{places.batch, places.directions, p.hidden}
                                    : Shape{places.directions, places.batch, p.hidden};
  need(slots.lengths, {places.batch}, "lengths");
  need(slots.state, state, "a first h");
  need(slots.cell, state, "a first c");
  need(slots.peepholes, {places.directions, (Checked(3) * p.hidden).value()}, "peepholes");
  need(slots.bias, {places.directions, p.hidden}, "a bias");
  const Shape weights = {places.directions, rows, p.hidden};
  need(slots.weights, weights, "weights");
  if (p.weights != nullptr && p.weights->shape() != weights) RefuseInput(p, "weights", p.weights->shape());
  const int64_t steps = (Checked(places.cell_row) + (p.last_cell ? 1 : 0)).value();
  if (p.batch_first) return {places.batch, steps, places.directions, p.hidden};
  return {steps, places.directions, places.batch, p.hidden};
}

DataType RecurrentOp::OutputType(std::span<const DataType> inputs) const {
  const int lengths = RecurrentSlots(params_).lengths;
  for (int slot = 0; slot < std::ssize(inputs); ++slot) {
    if (inputs[slot] == (slot == lengths ? DataType::kI32 : DataType::kF32)) continue;
    throw Error(ErrorCode::kBadModel, slot == lengths ? "lengths of sequences must be of 32-bit integers"
                                                      : "only float inputs are supported");
  }
  return DataType::kF32;
}

template <typename Real>
Tensor RecurrentOp::Evaluate(std::span<const Tensor* const> inputs) const {
  std::vector<Shape> shapes;
  for (const Tensor* input : inputs) shapes.push_back(input->shape());
  Tensor output(InferShape(shapes));
  const RecurrentPlaces places(params_, shapes[0]);
  const RecurrentSlots slots(params_);
  const Tensor *const lengths = At(inputs, slots.lengths), *const first = At(inputs, slots.state),
                      *const first_cell = At(inputs, slots.cell);
  const Tensor* const weights = params_.weights != nullptr ? params_.weights.get() : inputs[slots.weights];
  const int64_t hidden = params_.hidden;
  const auto slice = [&](int slot, int64_t direction, int64_t rows) {
    const Tensor* const tensor = At(inputs, slot);
    return tensor == nullptr ? nullptr : tensor->floats() + direction * rows * hidden;
  };
  const auto store = [&](const std::vector<Real>& values, float* to) {
    std::ranges::transform(values, to, [](Real value) { return static_cast<float>(value); });
  };
  for (int64_t d = 0; d < places.directions; ++d) {
    const Cell<Real> cell(params_, d, weights->floats() + d * places.gates * hidden * hidden,
                          slice(slots.peepholes, d, 3), slice(slots.bias, d, 1));
    for (int64_t row = 0; row < places.batch; ++row) {
      const int64_t length = lengths == nullptr ? places.steps : lengths->data<int32_t>()[row];
      CheckLength(length, places.steps);
      std::vector<Real> h(static_cast<size_t>(hidden)), c(h.size());
      const auto load = [&](const Tensor* from, std::vector<Real>& to) {
        if (from != nullptr) std::copy_n(RowOf(*from, places.State(row, d)), hidden, to.begin());
      };
      load(first, h);
      load(first_cell, c);
      for (int64_t s = 0; s < length; ++s) {
        const int64_t step = params_.reversed[static_cast<size_t>(d)] ? length - 1 - s : s;
        cell.Step(RowOf(*inputs[0], places.Input(step, row, d)), h, c);
        if (params_.all_states) store(h, RowOf(output, places.Output(step, row, d)));
      }
      if (params_.last_state) store(h, RowOf(output, places.Output(places.state_row, row, d)));
      if (params_.last_cell) store(c, RowOf(output, places.Output(places.cell_row, row, d)));
    }
  }
  return output;
}

Tensor RecurrentOp::Reference(std::span<const Tensor* const> inputs) const {
  return Evaluate<double>(inputs);
}

Tensor RecurrentOp::ReferenceInFloats(std::span<const Tensor* const> inputs) const {
  return Evaluate<float>(inputs);
}

double RecurrentOp::Flops(std::span<const Shape> inputs) const {
  return 2.0 * static_cast<double>(ElementCount(inputs[0])) * static_cast<double>(params_.hidden);
}

std::unique_ptr<Kernel> RecurrentOp::MakeKernel(const KernelRequest& request) const {
  return MakeRecurrentKernel(request, params_);
}

}  // namespace tilesmith
