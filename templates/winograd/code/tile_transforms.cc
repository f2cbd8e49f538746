#include "templates/winograd/code/tile_transforms.h"

#include <algorithm>
#include <cmath>

#include "templates/base/image_strides.h"

namespace tilesmith::winograd {

using code::General;
using code::Label;
using code::Reg;
using code::Vec;

void AddConstant(std::vector<double>& constants, double value) {
  const double magnitude = std::abs(value);
  if (magnitude == 0 || magnitude == 1) return;
  if (std::find(constants.begin(), constants.end(), magnitude) != constants.end()) return;
  constants.push_back(magnitude);
}

void LinearCode::HoldFactors(const std::vector<double>& values, int first, int count) {
  held_.clear();
  for (size_t i = 0; i < values.size() && static_cast<int>(i) < count; ++i) {
    const int index = first + static_cast<int>(i);
    Load(Vector(index), Splat(static_cast<float>(values[i])));
    held_[values[i]] = index;
  }
}

void LinearCode::Sum(int to, std::vector<Term> terms, int scratch) {
  std::erase_if(terms, [](const Term& term) { return term.coefficient == 0; });
  if (terms.empty()) return Zero(Vector(to));
  // Begin with what needs no multiplication, registers last so that they can be operands of an addition.
  const auto rank = [](const Term& term) {
    return term.coefficient == 1 ? (term.index < 0 ? 0 : 1) : term.coefficient > 0 ? 2 : 3;
  };
  std::stable_sort(terms.begin(), terms.end(),
                   [&](const Term& a, const Term& b) { return rank(a) < rank(b); });
  size_t next = 1;
  const bool both_plain =
      terms.size() > 1 && terms[0].coefficient == 1 && std::abs(terms[1].coefficient) == 1;
  if (both_plain && terms[0].index >= 0) {
    const Vec a = Vector(terms[0].index), b = Vector(terms[1].index < 0 ? to : terms[1].index);
    if (terms[1].index < 0) Load(b, *terms[1].address);
    terms[1].coefficient > 0 ? Add(Vector(to), a, b) : Subtract(Vector(to), a, b);
    next = 2;
  } else {
    Start(to, terms[0]);
  }
  for (; next < terms.size(); ++next) AddTerm(to, terms[next], scratch);
}

void LinearCode::Start(int to, const Term& term) {
  const Vec result = Vector(to);
  if (term.coefficient == 1) {
    term.index < 0 ? Load(result, *term.address) : Copy(result, Vector(term.index));
    return;
  }
  const auto found = held_.find(term.coefficient);
  if (found != held_.end()) {
    const Vec constant = Vector(found->second);
    term.index < 0 ? Multiply(result, constant, *term.address)
                   : Multiply(result, constant, Vector(term.index));
    return;
  }
  const code::Address constant = Splat(static_cast<float>(term.coefficient));
  if (term.index < 0) {
    Load(result, *term.address);
    Multiply(result, result, constant);
  } else {
    Multiply(result, Vector(term.index), constant);
  }
}

void LinearCode::AddTerm(int to, const Term& term, int scratch) {
  const Vec result = Vector(to);
  const bool negative = term.coefficient < 0;
  const double magnitude = std::abs(term.coefficient);
  const auto emit = [&](const Vec& a, const code::Operand& b) {
    negative ? MultiplySubtract(result, a, b) : MultiplyAdd(result, a, b);
  };
  const auto plain = [&](const code::Operand& value) {
    negative ? Subtract(result, result, value) : Add(result, result, value);
  };
  if (magnitude == 1) {
    term.index < 0 ? plain(*term.address) : plain(Vector(term.index));
    return;
  }
  const auto found = held_.find(magnitude);
  if (term.index >= 0) {
    found != held_.end() ? emit(Vector(term.index), Vector(found->second))
                         : emit(Vector(term.index), Splat(static_cast<float>(magnitude)));
    return;
  }
  const Vec constant = Vector(found != held_.end() ? found->second : scratch);
  if (found == held_.end()) Load(constant, Splat(static_cast<float>(magnitude)));
  emit(constant, *term.address);
}

namespace {

const Reg kSource = General(0);
const Reg kTarget = General(1);
const Reg kWindowsLeft = General(2);

constexpr int kInputTemporaries = 4;

int FirstTemporary(int window, int registers) {
  return 2 * window + kInputTemporaries <= registers ? 2 * window : window;
}

}  // namespace

InputGenerator::InputGenerator(const Schedule& schedule, const Target& cpu, size_t buffer_bytes)
    : LinearCode(cpu, buffer_bytes),
      schedule_(schedule),
      transforms_(schedule.transforms()),
      window_(transforms_.window),
      widens_(schedule.in.type() != DataType::kF32),
      pairs_fit_(FirstTemporary(window_, registers()) > window_),
      even_(FirstTemporary(window_, registers())),
      odd_(even_ + 1),
      result_(even_ + 2),
      scratch_(even_ + 3) {}

int64_t InputGenerator::KernelBytes(int window) {
  constexpr int64_t kInstruction = 11, kFixed = 512, kWidening = 3;
  return kFixed + kInstruction * ((4L * window + kWidening) * window * window);
}

code::Address InputGenerator::WindowAt(int row, int column) const {
  const int64_t pixel = row * schedule_.workload.iw + column;
  return At(kSource, pixel * schedule_.in_pixel_bytes());
}

LinearCode::Term InputGenerator::WindowTerm(double coefficient, int row, int column) const {
  if (!widens_) return {coefficient, -1, WindowAt(row, column)};
  return {coefficient, -1, At(Stack(), (row * window_ + column) * vector_bytes())};
}

void InputGenerator::EmitWidening() {
  for (int row = rows_.first; row < rows_.last; ++row) {
    for (int column = columns_.first; column < columns_.last; ++column) {
      const auto widened = Vector(column % window_);
      LoadStored(schedule_.in.type(), widened, WindowAt(row, column), false, widened);
      Store(*WindowTerm(1, row, column).address, widened);
    }
  }
}

double InputGenerator::Even(int pair, int k) const {
  return (transforms_.input(1 + 2 * pair, k) + transforms_.input(2 + 2 * pair, k)) / 2;
}

double InputGenerator::Odd(int pair, int k) const {
  return (transforms_.input(1 + 2 * pair, k) - transforms_.input(2 + 2 * pair, k)) / 2;
}

size_t InputGenerator::Emit(const Span& rows, const Span& columns) {
  rows_ = rows;
  columns_ = columns;
  const size_t start = Begin();
  std::vector<double> constants;
  const int pairs = static_cast<int>(transforms_.pairs.size());
  for (int k = 0; k < window_; ++k) {
    for (int q = 0; q < pairs; ++q) {
      AddConstant(constants, Even(q, k));
      AddConstant(constants, Odd(q, k));
    }
    for (int row : transforms_.unpaired()) AddConstant(constants, transforms_.input(row, k));
  }
  HoldFactors(constants, scratch_ + 1, registers() - scratch_ - 1);
  if (widens_) ReserveStack(schedule_.elements() * vector_bytes());
  Label next;
  Align(32);
  Bind(next);
  if (widens_) EmitWidening();
  for (int q = 0; q < pairs; ++q) {
    const int row = 1 + 2 * q;
    if (pairs_fit_) {
      EmitColumns(row, true);
      EmitRow(row, 0);
      EmitRow(row + 1, window_);
      continue;
    }
    for (int i : {row, row + 1}) {
      EmitColumns(i, false);
      EmitRow(i, 0);
    }
  }
  for (int row : transforms_.unpaired()) {
    EmitColumns(row, false);
    EmitRow(row, 0);
  }
  Add(kSource, schedule_.input_step() * schedule_.in_pixel_bytes());
  Add(kTarget, schedule_.v_vector_bytes());
  CountDown(kWindowsLeft, next);
  if (widens_) ReleaseStack();
  End();
  return start;
}

void InputGenerator::EmitColumns(int row, bool pair) {
  for (int column = columns_.first; column < columns_.last; ++column) {
    std::vector<Term> all, even, odd;
    for (int k = rows_.first; k < rows_.last; ++k) {
      if (pair) {
        even.push_back(WindowTerm(Even(row / 2, k), k, column));
        odd.push_back(WindowTerm(Odd(row / 2, k), k, column));
      } else {
        all.push_back(WindowTerm(transforms_.input(row, k), k, column));
      }
    }
    if (!pair) {
      Sum(column, all, scratch_);
      continue;
    }
    Sum(even_, even, scratch_);
    Sum(odd_, odd, scratch_);
    Add(Vector(column), Vector(even_), Vector(odd_));
    Subtract(Vector(window_ + column), Vector(even_), Vector(odd_));
  }
}

void InputGenerator::EmitRow(int row, int first_register) {
  const auto terms = [&](const auto& coefficient) {
    std::vector<Term> list;
    for (int k = columns_.first; k < columns_.last; ++k) {
      list.push_back({coefficient(k), first_register + k, {}});
    }
    return list;
  };
  const int element = row * window_;
  for (int q = 0; q < static_cast<int>(transforms_.pairs.size()); ++q) {
    Sum(even_, terms([&](int k) { return Even(q, k); }), scratch_);
    Sum(odd_, terms([&](int k) { return Odd(q, k); }), scratch_);
    Add(Vector(result_), Vector(even_), Vector(odd_));
    Subtract(Vector(even_), Vector(even_), Vector(odd_));
    StoreElement(element + 1 + 2 * q, result_);
    StoreElement(element + 2 + 2 * q, even_);
  }
  for (int column : transforms_.unpaired()) {
    Sum(result_, terms([&](int k) { return transforms_.input(column, k); }), scratch_);
    StoreElement(element + column, result_);
  }
}

void InputGenerator::StoreElement(int element, int index) {
  const DataType type = schedule_.v_type();
  const int64_t place = schedule_.PlaceOf(element) * schedule_.in_element * ElementBytes(type);
  StoreAs(type, At(kTarget, place), Vector(index), false, Vector(scratch_), Vector(scratch_));
}

namespace {

const Reg kProducts = General(0);
const Reg kOutput = General(1);
const Reg kResidual = General(2);
const Reg kBias = General(3);
const Reg kTilesLeft = General(4);

constexpr int kOutputTemporaries = 3;  // result, scratch, bias

int RowsAtOnce(const Transforms& t, int registers) {
  const auto pairs = static_cast<int>(t.pairs.size());
  return std::clamp((registers - pairs - kOutputTemporaries) / t.window, 1, std::max(pairs, 1));
}

}  // namespace

OutputGenerator::OutputGenerator(const Schedule& schedule, const Target& cpu, size_t buffer_bytes)
    : LinearCode(cpu, buffer_bytes),
      schedule_(schedule),
      transforms_(schedule.output_transforms()),
      window_(transforms_.window),
      pairs_(static_cast<int>(transforms_.pairs.size())),
      rows_at_once_(RowsAtOnce(transforms_, registers())),
      sum_(rows_at_once_ * window_),
      result_(sum_ + pairs_),
      scratch_(result_ + 1),
      bias_(result_ + 2) {}

int64_t OutputGenerator::KernelBytes(int window) {
  constexpr int64_t kInstruction = 11, kFixed = 512, kPostOps = 10;
  return kFixed + kInstruction * (3L * window * window * window + kPostOps * window * window);
}

LinearCode::Term OutputGenerator::ProductTerm(int row, int column) const {
  const int64_t element = row * window_ + column;
  return {1, -1, At(kProducts, element * schedule_.out_element * kFloatBytes)};
}

size_t OutputGenerator::Emit(const Variant& variant) {
  variant_ = variant;
  const size_t start = Begin();
  std::vector<double> constants;
  for (int k = 0; k < transforms_.tile; ++k) {
    for (int q = 0; q < pairs_; ++q) AddConstant(constants, transforms_.output(k, 1 + 2 * q));
    for (int element : transforms_.unpaired()) AddConstant(constants, transforms_.output(k, element));
  }
  HoldFactors(constants, bias_ + 1, registers() - bias_ - 1);
  if (schedule_.workload.post.bias) Load(Vector(bias_), At(kBias));
  Label next;
  Align(32);
  Bind(next);
  for (int parity : {0, 1}) {
    std::vector<int> some;
    for (int row = parity; row < variant.rows; row += 2) {
      some.push_back(row);
      if (row + 2 < variant.rows && static_cast<int>(some.size()) < rows_at_once_) continue;
      EmitColumns(some);
      for (size_t i = 0; i < some.size(); ++i) EmitRow(some[i], static_cast<int>(i) * window_);
      some.clear();
    }
  }
  Add(kProducts, vector_bytes());
  const int64_t step = schedule_.config.tile * schedule_.out_pixel_bytes();
  Add(kOutput, step);
  if (schedule_.workload.post.sum) Add(kResidual, step);
  CountDown(kTilesLeft, next);
  End();
  return start;
}

void OutputGenerator::EmitColumns(const std::vector<int>& rows) {
  const bool odd = rows.front() % 2 == 1;
  for (int column = 0; column < window_; ++column) {
    for (int q = 0; q < pairs_; ++q) {
      Term plus = ProductTerm(1 + 2 * q, column), minus = ProductTerm(2 + 2 * q, column);
      if (odd) minus.coefficient = -1;
      Sum(sum_ + q, {plus, minus}, scratch_);
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      std::vector<Term> terms;
      terms.reserve(pairs_ + 2);
      for (int q = 0; q < pairs_; ++q)
        terms.push_back({transforms_.output(rows[i], 1 + 2 * q), sum_ + q, {}});
      for (int element : transforms_.unpaired()) {
        terms.push_back(ProductTerm(element, column));
        terms.back().coefficient = transforms_.output(rows[i], element);
      }
      Sum(static_cast<int>(i) * window_ + column, terms, scratch_);
    }
  }
}

void OutputGenerator::EmitRow(int row, int first_register) {
  for (int q = 0; q < pairs_; ++q) {
    const auto plus = Vector(first_register + 1 + 2 * q), minus = Vector(first_register + 2 + 2 * q);
    Add(Vector(sum_ + q), plus, minus);
    Subtract(minus, plus, minus);
  }
  for (int k = 0; k < variant_.columns; ++k) {
    std::vector<Term> terms;
    terms.reserve(pairs_ + 2);
    for (int q = 0; q < pairs_; ++q) {
      terms.push_back(
          {transforms_.output(k, 1 + 2 * q), k % 2 == 0 ? sum_ + q : first_register + 2 + 2 * q, {}});
    }
    for (int element : transforms_.unpaired())
      terms.push_back({transforms_.output(k, element), first_register + element, {}});
    Sum(result_, terms, scratch_);
    EmitOutput((row * schedule_.workload.ow + k) * schedule_.out_pixel_bytes());
  }
}

void OutputGenerator::EmitOutput(int64_t offset) {
  const PostOps& post = schedule_.workload.post;
  const auto result = Vector(result_), scratch = Vector(scratch_);
  const DataType type = schedule_.out.type();
  if (post.bias) Add(result, result, Vector(bias_));
  if (post.sum) {
    const auto residual = At(kResidual, offset);
    if (type != DataType::kF32) LoadStored(type, scratch, residual, false, scratch);
    type == DataType::kF32 ? Add(result, result, residual) : Add(result, result, scratch);
  }
  Apply(post.activation, result, scratch);
  // Whatever the activation is of 0, a NaN or infinity has met padding's zero weights there.
  if (variant_.lanes < vector_floats()) ClearLanesFrom(variant_.lanes, result);
  const auto output = At(kOutput, offset);
  variant_.stream ? StoreStreaming(output, result) : StoreAs(type, output, result, false, scratch, scratch);
}

namespace {

constexpr size_t kFixedBytes = 8192;  // constants

}  // namespace

TileTransforms::TileTransforms(const Schedule& schedule, const Target& cpu, const ConvWeights& weights)
    : g_(schedule),
      bias_(FloatsPart(weights.parts, weights.bias, schedule.workload.oc,
                       schedule.out_vectors * schedule.vector_floats)) {
  input_code_ =
      NextCode(weights.parts, [&](std::vector<size_t>& starts) { return EmitInputKernels(cpu, starts); });
  output_code_ =
      NextCode(weights.parts, [&](std::vector<size_t>& starts) { return EmitOutputKernels(cpu, starts); });
  for (size_t i = 0; i < InputKernels(); ++i) inputs_.push_back(input_code_.Get<InputKernel>(i));
  for (size_t i = 0; i < OutputKernels(); ++i) outputs_.push_back(output_code_.Get<OutputKernel>(i));
}

std::unique_ptr<InputGenerator> TileTransforms::EmitInputKernels(const Target& cpu,
                                                                 std::vector<size_t>& starts) const {
  auto code = std::make_unique<InputGenerator>(
      g_, cpu, kFixedBytes + InputKernels() * InputGenerator::KernelBytes(g_.window()));
  for (const Span& rows : g_.in_rows.kinds) {
    for (const Span& columns : g_.in_columns.kinds) starts.push_back(code->Emit(rows, columns));
  }
  code->Finish();
  return code;
}

std::vector<int> TileTransforms::OutputLanes() const {
  const auto partial = static_cast<int>(g_.workload.oc % g_.vector_floats);
  return partial > 0 ? std::vector{g_.vector_floats, partial} : std::vector{g_.vector_floats};
}

size_t TileTransforms::OutputKernels() const {
  return g_.out_rows.kinds.size() * g_.out_columns.kinds.size() * OutputLanes().size() *
         (g_.config.stream ? 2 : 1);
}

// All kinds for a full vector, then, where the last one is not full, all for that; and once more all of
// them streaming.
std::unique_ptr<OutputGenerator> TileTransforms::EmitOutputKernels(const Target& cpu,
                                                                   std::vector<size_t>& starts) const {
  auto code = std::make_unique<OutputGenerator>(
      g_, cpu, kFixedBytes + OutputKernels() * OutputGenerator::KernelBytes(g_.window()));
  for (int stream = 0; stream <= static_cast<int>(g_.config.stream); ++stream) {
    for (const int real : OutputLanes()) {
      for (const Span& rows : g_.out_rows.kinds) {
        for (const Span& columns : g_.out_columns.kinds)
          starts.push_back(code->Emit({rows.last, columns.last, real, stream == 1}));
      }
    }
  }
  code->Finish();
  return code;
}

void TileTransforms::TransformInput(const KernelArgs& args, int64_t vector, const RowPart& part,
                                    std::byte* v) const {
  const ConvWorkload& w = g_.workload;
  const InputView& view = args.inputs[0];
  const std::byte* plane = view.image<std::byte>(part.image) + g_.InVectorOffset(vector, view.block_shift);
  const int64_t top = part.row * g_.input_step() - w.ph;
  const InputKernel* kernels = &inputs_[g_.in_rows.of_tile[part.row] * g_.in_columns.kinds.size()];
  for (int64_t x = part.column; x < part.end;) {
    const int64_t end = std::min<int64_t>(part.end, g_.in_columns.run_end[x]);
    const int64_t pixel = top * w.iw + x * g_.input_step() - w.pw;
    kernels[g_.in_columns.of_tile[x]](plane + pixel * g_.in_pixel_bytes(), v, end - x);
    v += (end - x) * g_.v_vector_bytes();
    x = end;
  }
}

void TileTransforms::TransformOutput(const KernelArgs& args, int64_t vector, const RowPart& part,
                                     const float* m) const {
  const ConvWorkload& w = g_.workload;
  std::byte* plane =
      args.output.image<std::byte>(part.image) + g_.OutVectorOffset(vector, args.output.block_shift);
  const std::byte* residual = plane;
  if (w.post.sum) {
    const InputView& view = args.inputs[1];
    residual = view.image<std::byte>(part.image) + g_.OutVectorOffset(vector, view.block_shift);
  }
  const bool partial = (vector + 1) * g_.vector_floats > w.oc;
  const size_t columns = g_.out_columns.kinds.size();
  size_t first_kernel = (partial ? g_.out_rows.kinds.size() : 0) + g_.out_rows.of_tile[part.row];
  if (Streams(args)) first_kernel += outputs_.size() / 2 / columns;
  for (int64_t x = part.column; x < part.end;) {
    const int64_t end = std::min<int64_t>(part.end, g_.out_columns.run_end[x]);
    const int64_t offset = (part.row * w.ow + x) * g_.config.tile * g_.out_pixel_bytes();
    outputs_[first_kernel * columns + g_.out_columns.of_tile[x]](
        m, plane + offset, residual + offset, bias_.floats() + vector * g_.vector_floats, end - x);
    m += (end - x) * g_.vector_floats;
    x = end;
  }
  if (g_.zero_vectors > 0 && vector + 1 == g_.out_vectors) ClearPadding(args, part);
}

// Streaming stores must be aligned, which a slice of a concat need not be.
bool TileTransforms::Streams(const KernelArgs& args) const {
  const int64_t vector_bytes = g_.vector_floats * kFloatBytes;
  return g_.config.stream && reinterpret_cast<intptr_t>(args.output.data) % vector_bytes == 0 &&
         args.output.batch_stride % vector_bytes == 0;
}

// The whole vectors of padding in the output's last block.
void TileTransforms::ClearPadding(const KernelArgs& args, const RowPart& part) const {
  const ConvWorkload& w = g_.workload;
  const int64_t tile = g_.config.tile;
  std::byte* plane =
      args.output.image<std::byte>(part.image) + g_.OutVectorOffset(g_.out_vectors, args.output.block_shift);
  const int64_t bytes = g_.zero_vectors * g_.vector_floats * g_.out.element_bytes();
  for (int64_t y = part.row * tile; y < std::min(w.oh, (part.row + 1) * tile); ++y) {
    for (int64_t x = part.column * tile; x < std::min(w.ow, part.end * tile); ++x) {
      std::fill_n(plane + (y * w.ow + x) * g_.out_pixel_bytes(), bytes, std::byte{0});
    }
  }
}

}  // namespace tilesmith::winograd
