// Workloads: the shape of one convolution, all that a template needs to know. A workload is the key of tasks,
// records and plans.
//
// Text form, benchdnn's: `mb1ic64ih56oc64oh56kh3ph1+bias+sum+relu`. Fields: g mb ic ih iw oc oh ow kh kw sh
// sw ph pw dh dw and n"name". Deducible parts are optional: iw, ow, kw, sw, pw, dw default to their height
// twins (and the other way round), strides to 1, pads and dilation to 0, mb and g to 1; oh is computed from
// the rest when absent, and when both oh and ph are given the padding at the bottom and right is what makes
// the output fit. dh = 0 means no dilation. After `+`: bias, sum (a residual input is added), and at most one
// activation (activation.h). Order of computation: conv, bias, sum, activation.
//
// A convolution of bytes says their types after a colon, input, weights and output:
// `mb1ic64ih56oc64oh56kh3ph1+bias:u8:i8:u8`. Input u8 or i8; output the same or f32. Weights are i8 where,
// their zero point subtracted, they are from -128 to 127, and u8 where they reach farther; the residual has
// the output's type. Scales, zero points and limits are no part of it (ops/quantize/quantized_conv.h).
//
// A fused workload computes something in front of the conv as well, written before a `>`: another conv whose
// output is this conv's input, `g32mb1ic32ih56oc32kh3ph1+relu>mb1ic32ih56oc64kh1+bias`, or input ops, a scale
// and shift per channel and an activation: `scale_shift+relu>mb1ic64ih56oc64kh1`. The fields of a
// ConvWorkload are those of the last conv, the main one; post-ops too, so a residual belongs to it.
//
// A product of matrices that the network computes both of (ops/dense/matmul.h) is a 1x1 conv whose weights
// are an input, others for each image: `mb12m197n197k64tb1` are 12 products of 197x64 and 64x197, the right
// side stored transposed. Fields: mb m n k ta tb; mb defaults to 1, ta and tb to 0. What is computed behind
// the sums is no part of it: it costs the same whatever the schedule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layouts/layout.h"
#include "ops/base/activation.h"

namespace tilesmith {

struct PostOps {
  bool bias = false;
  bool sum = false;
  Activation activation;
  bool operator==(const PostOps&) const = default;
};

struct ByteTypes {
  DataType in = DataType::kU8, weights = DataType::kI8, out = DataType::kU8;
  bool operator==(const ByteTypes&) const = default;
};

// Whether the sides of a product are stored the other way round, the terms of a left side's row apart and
// those of a right side's column adjacent.
struct ProductForm {
  bool left_transposed = false, right_transposed = false;
  bool operator==(const ProductForm&) const = default;
};

struct ConvWorkload {
  int64_t mb = 1;  // batch
  int64_t g = 1;   // groups; ic and oc count all groups
  int64_t ic = 0, ih = 0, iw = 0;
  int64_t oc = 0, oh = 0, ow = 0;
  int64_t kh = 1, kw = 1;
  int64_t sh = 1, sw = 1;
  int64_t ph = 0, pw = 0;  // padding at the top and left; bottom and right follow from oh, ow
  int64_t dh = 0, dw = 0;  // extra distance between kernel taps; 0 is dense
  PostOps post;
  InputOps pre;                      // at most one of pre and before is there
  std::vector<ConvWorkload> before;  // none, or one plain conv without sum that gives main_input_shape()
  std::optional<ByteTypes> bytes;    // of a quantised one, which has nothing in front and no activation
  // There: mb products of oh x ic and ic x oc matrices, g, sizes of kernels and ow are 1, no post-ops.
  std::optional<ProductForm> product;

  bool operator==(const ConvWorkload&) const = default;

  bool fused() const { return pre.any() || !before.empty(); }
  // The main conv without what is fused in front of it.
  ConvWorkload main_conv() const {
    ConvWorkload main = *this;
    main.pre = {};
    main.before.clear();
    return main;
  }

  // What a kernel is given: the first conv's input where there are two.
  Shape input_shape() const { return before.empty() ? main_input_shape() : before[0].input_shape(); }
  // What the main conv itself reads; in between, where a conv is fused in front of it.
  Shape main_input_shape() const {
    return product ? MatrixShape(oh, ic, product->left_transposed) : Shape{mb, ic, ih, iw};
  }
  Shape output_shape() const { return product ? Shape{mb, 1, oh, oc} : Shape{mb, oc, oh, ow}; }
  DataType input_type() const { return bytes ? bytes->in : DataType::kF32; }
  DataType output_type() const { return bytes ? bytes->out : DataType::kF32; }
  // OIHW, of the main conv; of a product its right side, the second input.
  Shape weights_shape() const {
    return product ? MatrixShape(ic, oc, product->right_transposed) : Shape{oc, ic / g, kh, kw};
  }
  // Rows read past the input's last one by the last output row; negative when some input rows go unread.
  int64_t pad_bottom() const { return (oh - 1) * sh + (kh - 1) * (dh + 1) + 1 - ih - ph; }
  int64_t pad_right() const { return (ow - 1) * sw + (kw - 1) * (dw + 1) + 1 - iw - pw; }
  // Multiplications and additions of the conv (of both, where two are fused) without input and post-ops,
  // padding taps counted, as benchdnn counts them.
  double flops() const {
    const int64_t channels_per_group = ic / g;
    const double main = 2.0 * mb * oc * oh * ow * channels_per_group * kh * kw;
    return before.empty() ? main : main + before[0].flops();
  }

 private:
  Shape MatrixShape(int64_t rows, int64_t columns, bool transposed) const {
    return transposed ? Shape{mb, 1, columns, rows} : Shape{mb, 1, rows, columns};
  }
};

// `count` products of rows x terms and terms x columns.
struct ProductDims {
  int64_t count = 1, rows = 1, columns = 1, terms = 1;
};
ConvWorkload ProductWorkload(const ProductDims& sizes, const ProductForm& form);

// The canonical form: fields in the order g mb ic ih iw oc oh ow kh kw sh sw ph pw dh dw; g and mb only when
// not 1 and 1 (mb always printed), width twins only when they differ from the height, strides, pads and
// dilation only when not default, oh (ow) always; scale_shift before the activation of input ops; types last.
std::string WorkloadToString(const ConvWorkload& workload);
// Throws Error(kUsage) naming the text, the position and what was expected. The result satisfies Validate.
ConvWorkload ParseWorkload(std::string_view text);
// Throws Error(kUsage) when sizes are not positive, groups do not divide channels, the output does not fit,
// fused convs do not fit each other...
void ValidateWorkload(const ConvWorkload& workload);

// The m of Winograd's F(m x m, 3 x 3) that the conv is computed by where outputs have to be reproducible
// (order.md), whatever its batch; 0: its products are added plainly. Of a fused workload, the main conv's.
int64_t OrderTile(const ConvWorkload& workload);

class Tensor;

// Plain tensors: input and weights (of a product its right side) always, the others null where the workload
// has none. scale and shift are the input ops', the last two belong to the conv fused in front.
struct ConvTensors {
  const Tensor* input = nullptr;    // workload.input_shape()
  const Tensor* weights = nullptr;  // the elements of workload.weights_shape()
  const Tensor* bias = nullptr;
  const Tensor* residual = nullptr;
  const Tensor* scale = nullptr;
  const Tensor* shift = nullptr;
  const Tensor* before_weights = nullptr;
  const Tensor* before_bias = nullptr;
};

}  // namespace tilesmith
