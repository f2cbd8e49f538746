// An Op says what one node of a network computes: its shapes, its meaning, and how it may be laid out. Ops
// are immutable and own their parameters (weights, scales), so that edges of a graph carry only activations.
//
// A new op is a file in the folder of its family that defines a subclass and its importers, and the family's
// name in op_list.cc.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "layouts/base/kernel.h"
#include "layouts/base/row_window.h"
#include "layouts/base/target.h"
#include "layouts/kernel_parts.h"
#include "layouts/tensor.h"
#include "ops/base/activation.h"

namespace tilesmith {

struct KernelRequest {
  std::vector<Shape> inputs;
  Shape output;
  Layout layout;  // of the output; inputs have the same, with their own types
  Target cpu;
  std::vector<DataType> input_types = {};  // empty: all are the output's
  KernelParts* parts = nullptr;            // the kernel's, where they are shared or kept

  DataType InputType(size_t slot) const { return input_types.empty() ? layout.type() : input_types[slot]; }
};

// How the input and the output of a view lie.
struct ViewLayouts {
  Layout in = Layout::Nchw(), out = Layout::Nchw();
  friend bool operator==(const ViewLayouts&, const ViewLayouts&) = default;
};

// What an op makes of plain tensors: its Reference gives `output` for `inputs`.
struct OpRun {
  std::span<const Tensor* const> inputs;
  const Tensor& output;
};

class ScaleShiftOp;

class Op;
using OpPtr = std::shared_ptr<const Op>;

class Op {
 public:
  virtual ~Op() = default;

  // ONNX's name for it: "MaxPool".
  virtual std::string_view Type() const = 0;
  // Type and attributes in one canonical line; equal signatures compute the same function of their inputs
  // (weights apart). Key of measured costs and part of the network's hash.
  virtual std::string Signature() const = 0;
  // Throws Error(kBadModel) when the inputs do not fit.
  virtual Shape InferShape(std::span<const Shape> inputs) const = 0;
  // Throws Error(kBadModel) when the types do not fit. The default takes floats only and gives floats.
  virtual DataType OutputType(std::span<const DataType> inputs) const;

  // The meaning: plain layout in and out, accumulating in double. Slow; the oracle for everything else.
  virtual Tensor Reference(std::span<const Tensor* const> inputs) const = 0;
  // How far each element of a kernel's result may be from the Reference's when nothing but rounding in f32 is
  // to blame; ops/base/rounding.h has what bounds are made of. Precondition: run.output is of f32.
  virtual Tensor RoundingBound(const OpRun& run) const = 0;

  // Multiplications and additions, for reports.
  virtual double Flops(std::span<const Shape> inputs) const {
    (void)inputs;
    return 0;
  }

  // Whether MakeKernel works with all inputs and the output in `layout` (NCHW of f32 always does).
  virtual bool RunsIn(const Layout& layout, std::span<const Shape> inputs) const {
    (void)inputs;
    return layout.is_nchw();
  }
  // Whether what RunsIn says of other layouts than NCHW holds for all types that KernelTakes, not for floats
  // only.
  virtual bool AnyTypeInAnyLayout() const { return false; }
  // The layout to run in where nothing has been measured; nullopt for that of its input.
  virtual std::optional<Layout> DefaultLayout() const { return std::nullopt; }
  // A kernel for all tensors in request.layout; it may refer to this op, which must outlive it. The default
  // is MakeReferenceKernel. Precondition: KernelTakes the inputs' types.
  virtual std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const;
  // Whether MakeKernel works for inputs of these types; the default takes floats only. For others the wrapped
  // Reference runs (MakeOpKernel).
  virtual bool KernelTakes(std::span<const DataType> inputs) const;
  // Whether more than the wrapped Reference runs it, at least for ordinary shapes and for types that
  // KernelTakes: what MakeKernel returns, or a template.
  virtual bool HasFastKernel() const { return false; }
  // Whether what that deals to threads are parts of the first input, not of the output.
  virtual bool DealsByInput(const Layout& /*layout*/) const { return false; }

  // The output is the first input's bytes under another shape, with the layouts that LayoutsOfView says:
  // Reshape, Flatten, Squeeze, ... in NCHW, and a Transpose that only moves the channels.
  virtual bool IsView() const { return false; }
  virtual ViewLayouts LayoutsOfView() const { return {}; }
  // Elementwise in input `slot`: the kernel may write its output over that input.
  virtual bool InPlaceOk(int slot) const {
    (void)slot;
    return false;
  }

  // Of an input that is read for an image: the rows that some rows of the output depend on; nullopt where
  // that may be any. The default knows those of elementwise ops.
  virtual std::optional<RowWindows> RowsReadOf(size_t slot, std::span<const Shape> inputs,
                                               const Shape& output) const;

  // The op as a convolution's kernel computes it of its input; nullopt where none can.
  virtual std::optional<InputOps> AsInputOps() const { return std::nullopt; }
  // This op with something computed behind it, in its own kernel; null where it has no place for that, a
  // second activation say: an activation, which is fusable;
  virtual OpPtr WithActivation(const Activation& /*activation*/) const { return nullptr; }
  // a residual, an input behind the others that is added in front of the activation;
  virtual OpPtr WithResidual() const { return nullptr; }
  // scale and shift and a fusable activation, of this op's output, which has that shape.
  virtual OpPtr WithScaleShift(const ScaleShiftOp& /*op*/, const Shape& /*output*/) const { return nullptr; }
};

// The rows that an op reads of an input which it takes element by element: those of the output where that has
// the input's shape, of an image.
std::optional<RowWindows> SameRows(size_t slot, std::span<const Shape> inputs, const Shape& output);

// The bound of ops that round each element of their result once or twice: of few operations, of what is only
// moved, of what the Reference computes in double. Nothing is rounded where an input is not of f32.
Tensor RoundedTwice(const OpRun& run);

// The type that all inputs share, for ops that move elements without looking at them. Throws Error(kBadModel)
// when they differ.
DataType SharedType(std::span<const DataType> inputs);

// All f32 or all bf16: what kernels take that compute in f32 whatever is stored.
bool AreFloatsOrBf16(std::span<const DataType> types);

// The wrapped Reference, in NCHW: one task, and it allocates. `op` must outlive it.
std::unique_ptr<Kernel> MakeReferenceKernel(const Op& op, const KernelRequest& request);
// What runs an op: its own kernel where that takes the inputs' types, and none of them is without elements;
// else its Reference. So no kernel meets a size of 0.
std::unique_ptr<Kernel> MakeOpKernel(const Op& op, const KernelRequest& request);

// A view of a plain tensor that is a plain tensor.
inline bool IsPlainView(const Op& op) { return op.IsView() && op.LayoutsOfView() == ViewLayouts(); }

class InputOp : public Op {
 public:
  explicit InputOp(Shape shape, DataType type = DataType::kF32) : shape_(std::move(shape)), type_(type) {}
  std::string_view Type() const override { return "Input"; }
  std::string Signature() const override { return "Input " + ShapeToString(shape_); }
  Shape InferShape(std::span<const Shape>) const override { return shape_; }
  DataType OutputType(std::span<const DataType>) const override { return type_; }
  Tensor Reference(std::span<const Tensor* const> inputs) const override;  // a bug to call
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }

 private:
  Shape shape_;
  DataType type_;
};

class ConstantOp : public Op {
 public:
  explicit ConstantOp(std::shared_ptr<const Tensor> value) : value_(std::move(value)) {}
  const std::shared_ptr<const Tensor>& value() const { return value_; }
  std::string_view Type() const override { return "Constant"; }
  std::string Signature() const override { return "Constant " + ShapeToString(value_->shape()); }
  Shape InferShape(std::span<const Shape>) const override { return value_->shape(); }
  DataType OutputType(std::span<const DataType>) const override { return value_->type(); }
  Tensor Reference(std::span<const Tensor* const>) const override { return *value_; }
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }

 private:
  std::shared_ptr<const Tensor> value_;
};

struct OpMachine {
  Target cpu;
  int threads = 1;
};

// What the op makes of plain tensors, by its kernel (MakeOpKernel). Throws as InferShape and OutputType do.
// Thread-safe; the calling thread is not in a parallel region.
Tensor RunOnce(const Op& op, std::span<const Tensor* const> inputs, const OpMachine& machine);

}  // namespace tilesmith
