#include "ops/quantize/integer_products.h"

#include <fmt/format.h>

#include <algorithm>

#include "layouts/base/error.h"
#include "ops/base/broadcast.h"
#include "ops/base/elements.h"
#include "ops/base/node_writer.h"
#include "ops/base/quantization.h"
#include "ops/base/saved_op.h"
#include "ops/quantize/integer_loops.h"

namespace tilesmith {
namespace {

[[noreturn]] void RefuseProduct(const std::string& reason) { throw Error(ErrorCode::kBadModel, reason); }

void NeedShortSums(int64_t terms) {
  if (terms <= IntegerProductOp::kMaxTerms) return;
  RefuseProduct(fmt::format("sums of {} products of bytes may overflow 32 bits, at most {} are supported",
                            terms, IntegerProductOp::kMaxTerms));
}

// Any zero point of a tensor that has one or as many as `count`.
int32_t ZeroPoint(const InputView& view, DataType type, int64_t size, int64_t index) {
  const int64_t at = size == 1 ? 0 : index;
  return type == DataType::kU8 ? view.image<uint8_t>(0)[at] : view.image<int8_t>(0)[at];
}

int32_t ByteAt(const void* data, DataType type, int64_t at) {
  return type == DataType::kU8 ? static_cast<const uint8_t*>(data)[at] : static_cast<const int8_t*>(data)[at];
}

void NeedZeroPoints(const Shape& zeros, int64_t count, const char* what) {
  const int64_t size = ElementCount(zeros);
  if (size == 1 || size == count) return;
  RefuseProduct(fmt::format("zero points of shape {} for {} {}", ShapeToString(zeros), count, what));
}

struct ProductSizes {
  Shape batch_a, batch_b, batch;
  int64_t m = 1, n = 1, k = 1;
};

ProductSizes SizesOf(std::span<const Shape> inputs) {
  const Shape &a = inputs[0], &b = inputs[1];
  ProductSizes sizes;
  const bool fit = a.size() >= 2 && b.size() >= 2 && a.back() == b[b.size() - 2];
  if (fit) {
    sizes.batch_a.assign(a.begin(), a.end() - 2);
    sizes.batch_b.assign(b.begin(), b.end() - 2);
  }
  const std::optional<Shape> batch = BroadcastShapes(sizes.batch_a, sizes.batch_b);
  if (!fit || !batch) {
    RefuseProduct(fmt::format("MatMulInteger cannot multiply {} by {}", ShapeToString(a), ShapeToString(b)));
  }
  sizes.batch = *batch;
  sizes.m = a[a.size() - 2], sizes.k = a.back(), sizes.n = b.back();
  NeedShortSums(sizes.k);
  NeedZeroPoints(inputs[2], sizes.m, "rows");
  NeedZeroPoints(inputs[3], sizes.n, "columns");
  return sizes;
}

// Rows of the result are tasks.
class MatMulIntegerKernel : public Kernel {
 public:
  explicit MatMulIntegerKernel(const KernelRequest& request)
      : request_(request),
        sizes_(SizesOf(request.inputs)),
        from_a_(BroadcastIndices(sizes_.batch_a, sizes_.batch)),
        from_b_(BroadcastIndices(sizes_.batch_b, sizes_.batch)),
        add_(request.InputType(1) == DataType::kU8 ? TILESMITH_DISPATCH(request.cpu.isa, AddScaledU8)
                                                   : TILESMITH_DISPATCH(request.cpu.isa, AddScaledI8)) {}

  int64_t Tasks(int) const override { return std::ssize(from_a_) * sizes_.m; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t batch = task / sizes_.m, row = task % sizes_.m;
      RunRow(args, from_a_[batch] * sizes_.m + row, from_b_[batch] * sizes_.k * sizes_.n, row,
             args.output.image<int32_t>(0) + task * sizes_.n);
    }
  }

 private:
  void RunRow(const KernelArgs& args, int64_t row_of_a, int64_t start_of_b, int64_t row, int32_t* out) const {
    const int32_t zero =
        ZeroPoint(args.inputs[2], request_.InputType(2), ElementCount(request_.inputs[2]), row);
    const std::byte* const b = args.inputs[1].image<std::byte>(0) + start_of_b;
    std::fill_n(out, sizes_.n, 0);
    int32_t sum = 0;
    for (int64_t k = 0; k < sizes_.k; ++k) {
      const int32_t a = ByteAt(args.inputs[0].data, request_.InputType(0), row_of_a * sizes_.k + k) - zero;
      sum += a;
      if (a != 0) add_({b + k * sizes_.n, 1, 0, a, sizes_.n}, out);
    }
    const int64_t zeros = ElementCount(request_.inputs[3]);
    for (int64_t n = 0; n < sizes_.n; ++n) {
      // Modulo 2^32, as without the zero point the sum may leave the range that the result stays in.
      const auto less = static_cast<uint32_t>(sum) *
                        static_cast<uint32_t>(ZeroPoint(args.inputs[3], request_.InputType(3), zeros, n));
      out[n] = static_cast<int32_t>(static_cast<uint32_t>(out[n]) - less);
    }
  }

  const KernelRequest request_;
  const ProductSizes sizes_;
  const std::vector<int64_t> from_a_, from_b_;
  void (*const add_)(const ScaledBytes&, int32_t*);
};

int64_t WindowCount(int64_t padded, int64_t extent, int64_t stride) {
  if (padded < extent) RefuseProduct(fmt::format("the kernel extends over {} of {} inputs", extent, padded));
  return (padded - extent) / stride + 1;
}

// Planes of the result are tasks.
class ConvIntegerKernel : public Kernel {
 public:
  ConvIntegerKernel(const KernelRequest& request, const Window& window, int64_t groups)
      : request_(request),
        window_(window),
        groups_(groups),
        add_(request.InputType(0) == DataType::kU8 ? TILESMITH_DISPATCH(request.cpu.isa, AddScaledU8)
                                                   : TILESMITH_DISPATCH(request.cpu.isa, AddScaledI8)) {}

  int64_t Tasks(int) const override { return request_.output[0] * request_.output[1]; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const Shape &x = request_.inputs[0], &w = request_.inputs[1], &y = request_.output;
    const int32_t zero_x = ZeroPoint(args.inputs[2], request_.InputType(2), 1, 0);
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t n = task / y[1], o = task % y[1], taps = w[2] * w[3];
      int32_t* const out = args.output.image<int32_t>(n) + o * y[2] * y[3];
      std::fill_n(out, y[2] * y[3], 0);
      const int32_t zero_w =
          ZeroPoint(args.inputs[3], request_.InputType(3), ElementCount(request_.inputs[3]), o);
      for (int64_t c = 0; c < w[1]; ++c) {
        const int64_t channel = o / (y[1] / groups_) * w[1] + c;
        const std::byte* const plane = args.inputs[0].image<std::byte>(n) + channel * x[2] * x[3];
        for (int64_t tap = 0; tap < taps; ++tap) {
          const int64_t at = (o * w[1] + c) * taps + tap;
          const int32_t factor = ByteAt(args.inputs[1].data, request_.InputType(1), at) - zero_w;
          if (factor != 0) AddTap(plane, factor, zero_x, tap / w[3], tap % w[3], out);
        }
      }
    }
  }

 private:
  // out[p] += factor * (x[p + tap] - zero) where that lies inside.
  void AddTap(const std::byte* plane, int32_t factor, int32_t zero, int64_t row, int64_t column,
              int32_t* out) const {
    const Shape &x = request_.inputs[0], &y = request_.output;
    const int64_t left = column * window_.dw - window_.left;
    const int64_t first = std::min(left < 0 ? CeilDiv(-left, window_.sw) : 0, y[3]);
    const int64_t last = left >= x[3] ? 0 : std::min((x[3] - 1 - left) / window_.sw + 1, y[3]);
    if (first >= last) return;
    for (int64_t oy = 0; oy < y[2]; ++oy) {
      const int64_t iy = oy * window_.sh + row * window_.dh - window_.top;
      if (iy < 0 || iy >= x[2]) continue;
      add_({plane + iy * x[3] + first * window_.sw + left, window_.sw, zero, factor, last - first},
           out + oy * y[3] + first);
    }
  }

  const KernelRequest request_;
  const Window window_;
  const int64_t groups_;
  void (*const add_)(const ScaledBytes&, int32_t*);
};

// The node's inputs, zero points that are absent being 0 of the type of what they belong to.
BuiltOp BuiltProduct(const NodeSpec& spec, OpPtr op) {
  NeedInputs(spec, 2, 4);
  if (spec.HasInput(2) && spec.HasInput(3)) return BuiltWithInputs(std::move(op), 4);
  NodeWriter writer(spec);
  std::vector<std::string> inputs = {writer.In(0), writer.In(1)};
  for (const size_t slot : {size_t{2}, size_t{3}}) {
    inputs.push_back(spec.HasInput(slot)
                         ? writer.In(slot)
                         : writer.Constant(Tensor(Shape{1}, Layout::Nchw(spec.inputs[slot - 2].type))));
  }
  writer.Add(spec.op_type, std::move(inputs), spec.attributes, writer.Out(0));
  return writer.Take();
}

BuiltOp BuildConvInteger(const NodeSpec& spec) {
  NeedInputs(spec, 2, 4);
  const Shape &x = ShapeOfRank(spec, 0, 4), &w = ShapeOfRank(spec, 1, 4);
  const std::vector<int64_t> kernel = spec.Ints("kernel_shape", {w[2], w[3]});
  if (kernel != std::vector<int64_t>{w[2], w[3]}) Refuse(spec, "kernel_shape contradicts the weights");
  return BuiltProduct(
      spec, std::make_shared<ConvIntegerOp>(ImportWindow(spec, kernel, x[2], x[3]), spec.Int("group", 1)));
}

}  // namespace

DataType IntegerProductOp::OutputType(std::span<const DataType> inputs) const {
  if (!IsByte(inputs[0]) || !IsByte(inputs[1])) RefuseProduct("only products of u8 and i8 are supported");
  if (inputs[2] != inputs[0] || inputs[3] != inputs[1]) {
    RefuseProduct("its zero points have other types than what they belong to");
  }
  return DataType::kI32;
}

Shape MatMulIntegerOp::InferShape(std::span<const Shape> inputs) const {
  const ProductSizes sizes = SizesOf(inputs);
  Shape shape = sizes.batch;
  shape.push_back(sizes.m);
  shape.push_back(sizes.n);
  return shape;
}

Tensor MatMulIntegerOp::Reference(std::span<const Tensor* const> inputs) const {
  std::vector<Shape> shapes;
  for (const Tensor* input : inputs) shapes.push_back(input->shape());
  const ProductSizes sizes = SizesOf(shapes);
  Tensor out(InferShape(shapes), Layout::Nchw(DataType::kI32));
  const auto a = ElementsAs<int64_t>(*inputs[0]), b = ElementsAs<int64_t>(*inputs[1]);
  const auto za = ElementsAs<int64_t>(*inputs[2]), zb = ElementsAs<int64_t>(*inputs[3]);
  const std::vector<int64_t> from_a = BroadcastIndices(sizes.batch_a, sizes.batch);
  const std::vector<int64_t> from_b = BroadcastIndices(sizes.batch_b, sizes.batch);
  for (int64_t i = 0; i < out.size(); ++i) {
    const int64_t batch = i / (sizes.m * sizes.n), m = i / sizes.n % sizes.m, n = i % sizes.n;
    int64_t sum = 0;
    for (int64_t k = 0; k < sizes.k; ++k) {
      sum += (a[(from_a[batch] * sizes.m + m) * sizes.k + k] - za[za.size() == 1 ? 0 : m]) *
             (b[(from_b[batch] * sizes.k + k) * sizes.n + n] - zb[zb.size() == 1 ? 0 : n]);
    }
    out.data<int32_t>()[i] = static_cast<int32_t>(sum);
  }
  return out;
}

double MatMulIntegerOp::Flops(std::span<const Shape> inputs) const {
  return 2.0 * ElementCount(InferShape(inputs)) * SizesOf(inputs).k;
}

std::unique_ptr<Kernel> MatMulIntegerOp::MakeKernel(const KernelRequest& request) const {
  return std::make_unique<MatMulIntegerKernel>(request);
}

std::string ConvIntegerOp::Signature() const {
  const Window& w = window_;
  return fmt::format("ConvInteger k{}x{} s{}x{} d{}x{} p{},{},{},{} g{}", w.kh, w.kw, w.sh, w.sw, w.dh, w.dw,
                     w.top, w.left, w.bottom, w.right, groups_);
}

Shape ConvIntegerOp::InferShape(std::span<const Shape> inputs) const {
  const Shape &x = inputs[0], &w = inputs[1];
  if (x.size() != 4 || w.size() != 4 || groups_ < 1 || x[1] % groups_ != 0 || w[0] % groups_ != 0 ||
      x[1] / groups_ != w[1] || w[2] != window_.kh || w[3] != window_.kw) {
    RefuseProduct(fmt::format("weights {} in {} groups do not fit the input {}", ShapeToString(w), groups_,
                              ShapeToString(x)));
  }
  NeedShortSums((Checked(w[1]) * w[2] * w[3]).value());
  NeedZeroPoints(inputs[2], 1, "input");
  NeedZeroPoints(inputs[3], w[0], "output channels");
  return {x[0], w[0],
          WindowCount(x[2] + window_.top + window_.bottom, (window_.kh - 1) * window_.dh + 1, window_.sh),
          WindowCount(x[3] + window_.left + window_.right, (window_.kw - 1) * window_.dw + 1, window_.sw)};
}

Tensor ConvIntegerOp::Reference(std::span<const Tensor* const> inputs) const {
  std::vector<Shape> shapes;
  for (const Tensor* input : inputs) shapes.push_back(input->shape());
  Tensor out(InferShape(shapes), Layout::Nchw(DataType::kI32));
  const auto x = ElementsAs<int64_t>(*inputs[0]), w = ElementsAs<int64_t>(*inputs[1]);
  const auto zx = ElementsAs<int64_t>(*inputs[2]), zw = ElementsAs<int64_t>(*inputs[3]);
  const Shape &in = shapes[0], &kernel = shapes[1], &y = out.shape();
  for (int64_t i = 0; i < out.size(); ++i) {
    const int64_t ox = i % y[3], oy = i / y[3] % y[2], o = i / (y[2] * y[3]) % y[1],
                  n = i / (y[1] * y[2] * y[3]);
    int64_t sum = 0;
    for (int64_t tap = 0; tap < kernel[1] * kernel[2] * kernel[3]; ++tap) {
      const int64_t c = o / (y[1] / groups_) * kernel[1] + tap / (kernel[2] * kernel[3]);
      const int64_t iy = oy * window_.sh + tap / kernel[3] % kernel[2] * window_.dh - window_.top;
      const int64_t ix = ox * window_.sw + tap % kernel[3] * window_.dw - window_.left;
      if (iy < 0 || iy >= in[2] || ix < 0 || ix >= in[3]) continue;
      sum += (x[((n * in[1] + c) * in[2] + iy) * in[3] + ix] - zx[0]) *
             (w[o * kernel[1] * kernel[2] * kernel[3] + tap] - zw[zw.size() == 1 ? 0 : o]);
    }
    out.data<int32_t>()[i] = static_cast<int32_t>(sum);
  }
  return out;
}

double ConvIntegerOp::Flops(std::span<const Shape> inputs) const {
  const Shape& w = inputs[1];
  return 2.0 * ElementCount(InferShape(inputs)) * static_cast<double>(w[1] * w[2] * w[3]);
}

std::unique_ptr<Kernel> ConvIntegerOp::MakeKernel(const KernelRequest& request) const {
  return std::make_unique<ConvIntegerKernel>(request, window_, groups_);
}

std::vector<OpImporter> IntegerProductImporters() {
  return {{"MatMulInteger",
           [](const NodeSpec& spec) { return BuiltProduct(spec, std::make_shared<MatMulIntegerOp>()); }},
          {"ConvInteger", BuildConvInteger}};
}

std::vector<SavedOp> IntegerProductOps() {
  return {Saved<MatMulIntegerOp>("MatMulInteger"), Saved<ConvIntegerOp>("ConvInteger")};
}

}  // namespace tilesmith
