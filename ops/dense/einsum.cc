// Einsum as what it consists of: sums over axes, transposes, and a MatMul for two operands.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "ops/base/import_util.h"
#include "ops/base/node_writer.h"

namespace tilesmith {
namespace {

// Axes are named by letters; those of "..." by numbers from the last axis on.
using Label = int32_t;
constexpr Label kEllipsis = -64;  // and above: up to 32 axes
using Labels = std::vector<Label>;

// A tensor and what its axes are called.
struct Operand {
  std::string tensor;
  Labels labels;
};

bool Contains(const Labels& labels, Label label) { return std::ranges::find(labels, label) != labels.end(); }

std::vector<std::string> SplitAt(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

class EinsumWriter {
 public:
  explicit EinsumWriter(const NodeSpec& spec) : spec_(spec), writer_(spec) {
    std::string equation = spec.String("equation", "");
    std::erase(equation, ' ');
    const size_t arrow = equation.find("->");
    const std::vector<std::string> terms = SplitAt(equation.substr(0, arrow), ',');
    if (terms.size() != spec.inputs.size()) {
      Refuse(spec, fmt::format("the equation \"{}\" of {} inputs", equation, spec.inputs.size()));
    }
    for (size_t i = 0; i < terms.size(); ++i) ReadTerm(i, terms[i]);
    if (arrow == std::string::npos) {
      ImplicitResult();
    } else {
      result_ = LabelsOf(equation.substr(arrow + 2), ellipsis_);
      for (size_t i = 0; i < result_.size(); ++i) {
        if (!sizes_.contains(result_[i]) || std::ranges::count(result_, result_[i]) > 1) {
          Refuse(spec, fmt::format("the equation \"{}\": its result", equation));
        }
      }
    }
  }

  BuiltOp Write() {
    for (size_t i = 0; i < operands_.size(); ++i) {
      TakeDiagonals(operands_[i]);
      SumAway(operands_[i], i);
    }
    while (operands_.size() > 1) {
      Operand product = Multiply(operands_[0], operands_[1]);
      operands_.erase(operands_.begin());
      operands_[0] = std::move(product);
    }
    Operand& last = operands_[0];
    // Axes of "..." that only the result's other operands had are there by now.
    Arrange(last, result_);
    writer_.Add("Identity", {last.tensor}, {}, writer_.Out(0));
    return writer_.Take();
  }

 private:
  Labels LabelsOf(const std::string& term, int64_t ellipsis) const {
    Labels labels;
    for (size_t i = 0; i < term.size(); ++i) {
      if (term.compare(i, 3, "...") == 0) {
        for (int64_t axis = ellipsis; axis-- > 0;) labels.push_back(kEllipsis + static_cast<Label>(axis));
        i += 2;
      } else if (std::isalpha(static_cast<unsigned char>(term[i]))) {
        labels.push_back(term[i]);
      } else {
        Refuse(spec_, fmt::format("\"{}\" in its equation", term));
      }
    }
    return labels;
  }

  void ReadTerm(size_t index, const std::string& term) {
    const Shape& shape = spec_.inputs[index].shape;
    const int64_t named = std::ranges::count_if(term, [](char c) { return c != '.'; });
    const int64_t rest = std::ssize(shape) - named;
    const bool open = term.find("...") != std::string::npos;
    if (rest < 0 || (rest > 0 && !open) || rest > kMaxRank) {
      Refuse(spec_, fmt::format("\"{}\" for input {} of shape {}", term, index, ShapeToString(shape)));
    }
    const Labels labels = LabelsOf(term, rest);
    if (labels.size() != shape.size()) Refuse(spec_, fmt::format("\"{}\" in its equation", term));
    ellipsis_ = std::max(ellipsis_, open ? rest : 0);
    for (size_t axis = 0; axis < labels.size(); ++axis) {
      int64_t& size = sizes_.try_emplace(labels[axis], shape[axis]).first->second;
      if (size == 1) size = shape[axis];
      if (shape[axis] != size && shape[axis] != 1) {
        Refuse(spec_, fmt::format("an axis of {} and one of {} have one name", size, shape[axis]));
      }
    }
    operands_.push_back({writer_.In(index), labels});
    terms_.push_back({shape, labels});
  }

  // The axes of "...", then all that occur once, in the order of the alphabet.
  void ImplicitResult() {
    std::map<Label, int> uses;
    for (const Operand& operand : operands_) {
      for (const Label label : operand.labels) ++uses[label];
    }
    result_ = LabelsOf("...", ellipsis_);
    for (const auto& [label, count] : uses) {
      if (label > 0 && count == 1) result_.push_back(label);
    }
  }

  bool Needed(Label label, size_t beside) const {
    if (Contains(result_, label)) return true;
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (i != beside && Contains(operands_[i].labels, label)) return true;
    }
    return false;
  }

  // An axis that is named twice is one: its elements are those of the diagonal.
  void TakeDiagonals(Operand& operand) {
    for (size_t i = 0; i < operand.labels.size(); ++i) {
      const auto again = std::find(operand.labels.begin() + i + 1, operand.labels.end(), operand.labels[i]);
      if (again == operand.labels.end()) continue;
      const auto second = again - operand.labels.begin();
      const int64_t size = sizes_.at(operand.labels[i]);
      NeedFoldable(spec_, {size, size});
      Shape mask_shape(operand.labels.size(), 1);
      mask_shape[i] = mask_shape[second] = size;
      Tensor mask(mask_shape, Layout::Nchw(spec_.inputs[0].type));
      VisitType(mask.type(), [&](auto tag) {
        using T = typename decltype(tag)::Type;
        for (int64_t k = 0; k < size; ++k) mask.data<T>()[k * size + k] = T(1);
      });
      operand.tensor = Sum(writer_.Add("Mul", {operand.tensor, writer_.Constant(std::move(mask))}), {second});
      operand.labels.erase(again);
      --i;
    }
  }

  std::string Sum(const std::string& x, const std::vector<int64_t>& axes) {
    if (axes.empty()) return x;
    return writer_.Add("ReduceSum", {x, writer_.Ints(axes)}, {{"keepdims", int64_t{0}}});
  }

  // Axes that nothing else has.
  void SumAway(Operand& operand, size_t index) {
    std::vector<int64_t> axes;
    Labels kept;
    for (size_t axis = 0; axis < operand.labels.size(); ++axis) {
      if (Needed(operand.labels[axis], index)) {
        kept.push_back(operand.labels[axis]);
      } else {
        axes.push_back(static_cast<int64_t>(axis));
      }
    }
    operand.tensor = Sum(operand.tensor, axes);
    operand.labels = kept;
  }

  // The operand with its axes in this order; those it lacks are of size 1.
  void Arrange(Operand& operand, const Labels& wanted) {
    std::vector<int64_t> perm, missing;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const auto found = std::ranges::find(operand.labels, wanted[i]);
      if (found == operand.labels.end()) {
        missing.push_back(static_cast<int64_t>(i));
      } else {
        perm.push_back(found - operand.labels.begin());
      }
    }
    if (!std::ranges::is_sorted(perm)) operand.tensor = writer_.Transpose(operand.tensor, perm);
    if (!missing.empty()) operand.tensor = writer_.Unsqueeze(operand.tensor, missing);
    operand.labels = wanted;
  }

  int64_t Size(const Labels& labels) const {
    Checked size = 1;
    for (const Label label : labels) size *= sizes_.at(label);
    return size.value();
  }

  // As a MatMul: axes of both that remain are the batch, those of one the rows or the columns, and those of
  // both that do not remain are summed.
  Operand Multiply(Operand a, Operand b) {
    Labels batch, rows, columns, summed;
    for (const Label label : a.labels) {
      const bool remains = RemainsBehindTwo(label);
      (Contains(b.labels, label) ? remains ? batch : summed : rows).push_back(label);
    }
    for (const Label label : b.labels) {
      if (!Contains(a.labels, label)) columns.push_back(label);
    }
    Labels all = batch;
    all.insert(all.end(), rows.begin(), rows.end());
    all.insert(all.end(), columns.begin(), columns.end());
    if (summed.empty() || HasBroadcast(a) || HasBroadcast(b)) {
      Labels wide = all;
      wide.insert(wide.end(), summed.begin(), summed.end());
      Arrange(a, wide);
      Arrange(b, wide);
      std::vector<int64_t> axes;
      for (size_t i = all.size(); i < wide.size(); ++i) axes.push_back(static_cast<int64_t>(i));
      return {Sum(writer_.Add("Mul", {a.tensor, b.tensor}), axes), all};
    }
    Labels left = batch, right = batch;
    left.insert(left.end(), rows.begin(), rows.end());
    left.insert(left.end(), summed.begin(), summed.end());
    right.insert(right.end(), summed.begin(), summed.end());
    right.insert(right.end(), columns.begin(), columns.end());
    Arrange(a, left);
    Arrange(b, right);
    Shape batch_shape;
    for (const Label label : batch) batch_shape.push_back(sizes_.at(label));
    const auto with = [&](int64_t m, int64_t n) {
      Shape shape = batch_shape;
      shape.insert(shape.end(), {m, n});
      return shape;
    };
    const int64_t k = Size(summed);
    const std::string product = writer_.Add("MatMul", {writer_.Reshape(a.tensor, with(Size(rows), k)),
                                                       writer_.Reshape(b.tensor, with(k, Size(columns)))});
    Shape result;
    for (const Label label : all) result.push_back(sizes_.at(label));
    return {writer_.Reshape(product, result), all};
  }

  // Whether anything beside the first two operands has the axis.
  bool RemainsBehindTwo(Label label) const {
    if (Contains(result_, label)) return true;
    for (size_t i = 2; i < operands_.size(); ++i) {
      if (Contains(operands_[i].labels, label)) return true;
    }
    return false;
  }

  // Whether an axis of size 1 stands for a longer one of its name.
  bool HasBroadcast(const Operand& operand) const {
    for (const auto& [shape, labels] : terms_) {
      for (const Label label : operand.labels) {
        const auto found = std::ranges::find(labels, label);
        if (found != labels.end() && shape[found - labels.begin()] != sizes_.at(label)) return true;
      }
    }
    return false;
  }

  const NodeSpec& spec_;
  NodeWriter writer_;
  std::vector<Operand> operands_;
  std::vector<std::pair<Shape, Labels>> terms_;  // as given
  std::map<Label, int64_t> sizes_;
  int64_t ellipsis_ = 0;
  Labels result_;
};

BuiltOp BuildEinsum(const NodeSpec& spec) {
  NeedInputs(spec, 1, 64);
  return EinsumWriter(spec).Write();
}

}  // namespace

// Einsum.
std::vector<OpImporter> EinsumImporters() { return {{"Einsum", BuildEinsum}}; }

}  // namespace tilesmith
