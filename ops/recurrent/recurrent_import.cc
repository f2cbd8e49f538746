#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "ops/base/import_util.h"
#include "ops/base/node_writer.h"
#include "ops/recurrent/recurrent.h"

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

}  // namespace tilesmith
