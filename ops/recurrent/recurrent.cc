#include "ops/recurrent/recurrent.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "layouts/base/check.h"
#include "ops/base/elementary.h"
#include "ops/base/import_util.h"
#include "ops/base/node_writer.h"
#include "ops/base/rounding.h"
#include "ops/base/saved_op.h"

namespace tilesmith {
namespace {

// Slots of an LSTM's, GRU's and RNN's inputs; only an LSTM has the last two.
enum Slot : size_t { kX, kW, kR, kB, kLengths, kState, kCell, kPeepholes };

bool SameName(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

// Functions of each direction, whose parameters are taken in their order.
std::vector<CellFunctions> ImportFunctions(const NodeSpec& spec, CellKind cell, size_t directions) {
  const size_t each = cell == CellKind::kLstm ? 3 : cell == CellKind::kGru ? 2 : 1;
  std::vector<std::string> names = spec.Strings("activations", {});
  if (names.empty()) {
    for (size_t i = 0; i < directions; ++i) {
      if (cell != CellKind::kRnn) names.emplace_back("Sigmoid");
      for (size_t k = cell == CellKind::kRnn ? 0 : 1; k < each; ++k) names.emplace_back("Tanh");
    }
  }
  if (names.size() != each * directions) {
    Refuse(spec,
           fmt::format("{} activations for {} directions, each has {}", names.size(), directions, each));
  }
  const std::vector<float> alphas = spec.Floats("activation_alpha", {}),
                           betas = spec.Floats("activation_beta", {});
  size_t alpha = 0, beta = 0;
  std::vector<CellFunctions> functions(directions);
  for (size_t i = 0; i < names.size(); ++i) {
    const auto* const named =
        std::ranges::find_if(kGates, [&](const NamedGate& gate) { return SameName(gate.name, names[i]); });
    if (named == std::end(kGates)) Refuse(spec, fmt::format("the activation \"{}\" is unknown", names[i]));
    GateFunction function{named->kind, named->alpha, named->beta};
    if (named->has_alpha && alpha < alphas.size()) function.alpha = alphas[alpha++];
    if (named->has_beta && beta < betas.size()) function.beta = betas[beta++];
    CellFunctions& of = functions[i / each];
    (i % each == 0 ? of.f : i % each == 1 ? of.g : of.h) = function;
  }
  for (CellFunctions& of : functions) {
    // Older models say 0 where nothing is clipped.
    if (const float clip = spec.Float("clip", 0); clip > 0) of.clip = clip;
    of.input_forget = spec.Int("input_forget", 0) != 0;
  }
  return functions;
}

class RecurrentWriter {
 public:
  RecurrentWriter(const NodeSpec& spec, CellKind cell) : spec_(spec), writer_(spec) {
    NeedInputs(spec, 3, cell == CellKind::kLstm ? 8 : 6);
    params_.cell = cell;
    const std::string direction = spec.String("direction", "forward");
    if (SameName(direction, "bidirectional")) {
      params_.reversed = {false, true};
    } else if (SameName(direction, "forward") || SameName(direction, "reverse")) {
      params_.reversed = {SameName(direction, "reverse")};
    } else {
      Refuse(spec,
             fmt::format("direction is \"{}\", known are forward, reverse and bidirectional", direction));
    }
    const int64_t layout = spec.Int("layout", 0);
    if (layout != 0 && layout != 1) Refuse(spec, fmt::format("layout is {}, known are 0 and 1", layout));
    params_.batch_first = layout == 1;
    params_.functions = ImportFunctions(spec, cell, params_.reversed.size());
    params_.reset_behind = cell == CellKind::kGru && spec.Int("linear_before_reset", 0) != 0;
    params_.hidden = ShapeOfRank(spec, kR, 3)[2];
    if (const int64_t size = spec.Int("hidden_size", params_.hidden);
        size != params_.hidden || params_.hidden < 1)
      Refuse(spec, fmt::format("hidden_size is {}, R is of {}", size, params_.hidden));
    rows_ = (Checked(params_.gates()) * params_.hidden).value();
    const int64_t values = ShapeOfRank(spec, kX, 3)[2];
    NeedShape(kW, {params_.directions(), rows_, values});
    NeedShape(kR, {params_.directions(), rows_, params_.hidden});
    if (spec.HasInput(kB)) NeedShape(kB, {params_.directions(), (Checked(2) * rows_).value()});
  }

  BuiltOp Write() {
    std::vector<std::string> inputs = {WriteInputShare()};
    const auto take = [&](size_t slot, bool& has) {
      has = spec_.HasInput(slot);
      if (has) inputs.push_back(slot == kLengths ? writer_.In(slot) : Floats(slot));
    };
    take(kLengths, params_.has_lengths);
    take(kState, params_.has_state);
    take(kCell, params_.has_cell);
    take(kPeepholes, params_.has_peepholes);
    params_.has_bias = params_.reset_behind && spec_.HasInput(kB);
    if (params_.has_bias) inputs.push_back(WriteHiddenBias());
    if (spec_.inputs[kR].type == DataType::kF32) params_.weights = spec_.inputs[kR].constant;
    if (params_.weights == nullptr) inputs.push_back(Floats(kR));
    params_.all_states = Reads(0), params_.last_state = Reads(1), params_.last_cell = Reads(2);
    WriteOutputs(std::move(inputs));
    return writer_.Take();
  }

 private:
  void NeedShape(size_t slot, const Shape& shape) const {
    if (spec_.inputs[slot].shape == shape) return;
    Refuse(spec_, fmt::format("input {} has shape {}, its other inputs need {}", slot,
                              ShapeToString(spec_.inputs[slot].shape), ShapeToString(shape)));
  }
  bool Reads(size_t output) const {
    return output < spec_.output_names.size() && !spec_.output_names[output].empty();
  }
  bool InFloats() const { return spec_.inputs[kX].type == DataType::kF32; }
  std::string Floats(size_t slot) {
    if (spec_.inputs[slot].type == DataType::kF32) return writer_.In(slot);
    return writer_.Add("CastLike", {writer_.In(slot), writer_.Float(0)});
  }
  std::string Slice(const std::string& x, int64_t begin, int64_t end, int64_t axis) {
    return writer_.Add("Slice", {x, writer_.Ints({begin}), writer_.Ints({end}), writer_.Ints({axis})});
  }

  // All gates' biases that can be added to the input's share, of all directions in one row.
  std::string WriteBias() {
    const int64_t directions = params_.directions(), gates = params_.gates();
    const std::string b = writer_.Reshape(Floats(kB), {directions, 2, gates, params_.hidden});
    const auto sum = [&](const std::string& x) {
      return writer_.Add("ReduceSum", {x, writer_.Ints({1})}, {{"keepdims", int64_t{1}}});
    };
    const std::string all =
        !params_.reset_behind
            ? sum(b)
            : writer_.Add("Concat",
                          {sum(Slice(b, 0, gates - 1, 2)), Slice(Slice(b, 0, 1, 1), gates - 1, gates, 2)},
                          {{"axis", int64_t{2}}});
    return writer_.Reshape(all, {directions * rows_});
  }
  // What the reset gate multiplies with the product: the last gate's second bias.
  std::string WriteHiddenBias() {
    const std::string b =
        writer_.Reshape(Floats(kB), {params_.directions(), 2 * params_.gates(), params_.hidden});
    return writer_.Reshape(Slice(b, 2 * params_.gates() - 1, 2 * params_.gates(), 1),
                           {params_.directions(), params_.hidden});
  }
  std::string WriteInputShare() {
    const Shape& x = spec_.inputs[kX].shape;
    const int64_t columns = (Checked(params_.directions()) * rows_).value();
    std::vector<std::string> inputs = {writer_.Reshape(Floats(kX), {(Checked(x[0]) * x[1]).value(), x[2]}),
                                       writer_.Reshape(Floats(kW), {columns, x[2]})};
    if (spec_.HasInput(kB)) inputs.push_back(WriteBias());
    const std::string share = writer_.Add("Gemm", std::move(inputs), {{"transB", int64_t{1}}});
    return writer_.Reshape(share, {x[0], x[1], columns});
  }

  // The op, and the node's outputs as parts of its own.
  void WriteOutputs(std::vector<std::string> inputs) {
    const Shape& x = spec_.inputs[kX].shape;
    const int64_t axis = params_.batch_first ? 1 : 0, steps = x[axis];
    const bool whole = params_.all_states && !params_.last_state && !params_.last_cell && InFloats();
    const std::string states =
        writer_.Add(std::make_shared<RecurrentOp>(params_), std::move(inputs), whole ? writer_.Out(0) : "");
    if (whole) return;
    if (params_.all_states) Output(0, Slice(states, 0, steps, axis));
    const auto last = [&](size_t output, int64_t row) {
      if (Reads(output)) Output(output, writer_.Squeeze(Slice(states, row, row + 1, axis), {axis}));
    };
    const int64_t first = params_.all_states ? steps : 0;
    last(1, first);
    last(2, first + (params_.last_state ? 1 : 0));
  }
  // x as the node's output, of the type of its input.
  void Output(size_t output, const std::string& x) {
    writer_.Add(InFloats() ? "Identity" : "CastLike",
                InFloats() ? std::vector{x} : std::vector{x, writer_.In(kX)}, {}, writer_.Out(output));
  }

  const NodeSpec& spec_;
  NodeWriter writer_;
  RecurrentParams params_;
  int64_t rows_ = 0;
};

// An LSTM whose W and R, {directions, values, 4 * hidden} of bytes, are real numbers by a scale for each
// direction or for each of its columns. Inputs 8 to 11: scale and zero point of both.
BuiltOp BuildDynamicQuantizeLstm(const NodeSpec& spec) {
  NeedInputs(spec, 3, 12);
  NodeWriter writer(spec);
  const auto real = [&](size_t slot, size_t scale) {
    const Shape& stored = ShapeOfRank(spec, slot, 3);
    const auto spread = [&](size_t index) {
      const Shape& shape = spec.inputs[index].shape;
      if (shape == Shape{stored[0], stored[2]}) return writer.Unsqueeze(writer.In(index), {1});
      if (shape == Shape{stored[0]}) return writer.Unsqueeze(writer.In(index), {1, 2});
      Refuse(spec, fmt::format("input {} has shape {}, that it scales {}", index, ShapeToString(shape),
                               ShapeToString(stored)));
    };
    const auto floats = [&](const std::string& x) { return writer.Add("CastLike", {x, writer.Float(0)}); };
    if (!spec.HasInput(scale)) Refuse(spec, fmt::format("input {} is missing", scale));
    std::string x = floats(writer.In(slot));
    if (spec.HasInput(scale + 1)) x = writer.Add("Sub", {x, floats(spread(scale + 1))});
    return writer.Transpose(writer.Add("Mul", {x, spread(scale)}), {0, 2, 1});
  };
  ModelNode node{.name = spec.name, .op_type = "LSTM", .outputs = spec.output_names};
  node.inputs.assign(spec.input_names.begin(),
                     spec.input_names.begin() + std::min<std::ptrdiff_t>(8, std::ssize(spec.input_names)));
  node.inputs[kW] = real(kW, 8), node.inputs[kR] = real(kR, 10);
  node.attributes = spec.attributes;
  node.opset = 14;
  writer.Append(std::move(node));
  return writer.Take();
}

}  // namespace

// LSTM, GRU, RNN, and com.microsoft's DynamicQuantizeLSTM, whose weights become floats.
std::vector<OpImporter> RecurrentImporters() {
  const auto importer = [](std::string_view name, CellKind cell) {
    return OpImporter{name, [cell](const NodeSpec& spec) { return RecurrentWriter(spec, cell).Write(); },
                      true};
  };
  return {importer("LSTM", CellKind::kLstm),
          importer("GRU", CellKind::kGru),
          importer("RNN", CellKind::kRnn),
          {"com.microsoft.DynamicQuantizeLSTM", BuildDynamicQuantizeLstm, true}};
}

namespace {

template <typename Real>
Real Apply(const GateFunction& function, Real x) {
  const Real alpha = function.alpha, beta = function.beta, zero = 0, one = 1;
  switch (function.kind) {
    case GateKind::kRelu:
      return std::max(x, zero);
    case GateKind::kTanh:
      return static_cast<Real>(elementary::Tanh(x));
    case GateKind::kSigmoid:
      return one / (one + static_cast<Real>(elementary::Exp(-x)));
    case GateKind::kAffine:
      return alpha * x + beta;
    case GateKind::kLeakyRelu:
      return x >= zero ? x : alpha * x;
    case GateKind::kThresholdedRelu:
      return x <= alpha ? zero : x;
    case GateKind::kScaledTanh:
      return alpha * static_cast<Real>(elementary::Tanh(beta * x));
    case GateKind::kHardSigmoid:
      return std::min(std::max(alpha * x + beta, zero), one);
    case GateKind::kElu:
      return x >= zero ? x : alpha * static_cast<Real>(elementary::Expm1(x));
    case GateKind::kSoftsign:
      return x / (one + std::abs(x));
    case GateKind::kSoftplus:
      return std::max(x, zero) + static_cast<Real>(elementary::Log1p(elementary::Exp(-std::abs(x))));
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

// A step's rounding is every later step's error, more or less of it as R has it: how far the same sums in
// floats, one term after the other, come from the exact ones says how far any kernel may.
Tensor RecurrentOp::RoundingBound(const OpRun& run) const {
  const Tensor in_floats = ReferenceInFloats(run.inputs);
  constexpr float kOfFunctions = 16, kSafety = 16;
  float largest = kOfFunctions * static_cast<float>(kRoundingEps) * (1 + LargestFinite(run.output));
  for (int64_t i = 0; i < run.output.size(); ++i) {
    const float difference = std::abs(run.output.floats()[i] - in_floats.floats()[i]);
    if (std::isfinite(difference)) largest = std::max(largest, difference);
  }
  Tensor bounds(run.output.shape());
  std::fill_n(bounds.floats(), bounds.size(), kSafety * largest);
  return bounds;
}

std::vector<SavedOp> RecurrentOps() { return {Saved<RecurrentOp>("Recurrent")}; }

}  // namespace tilesmith
