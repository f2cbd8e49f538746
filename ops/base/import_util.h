// What importers share: refusals that name the node, constants as integers, and window padding.
#pragma once

#include "ops/base/node_writer.h"
#include "ops/base/op_registry.h"

namespace tilesmith {

// Throws Error(kBadModel): `node "name" (Type): reason`.
[[noreturn]] void Refuse(const NodeSpec& spec, const std::string& reason);
// Refuses unless the node has between `least` and `most` inputs listed, and the first `least` are present.
void NeedInputs(const NodeSpec& spec, size_t least, size_t most);
// The shape of input `index`; refuses unless its rank is `rank`.
const Shape& ShapeOfRank(const NodeSpec& spec, size_t index, size_t rank);

// Whether input `index` is absent or constant: known when the network is loaded.
bool IsKnown(const NodeSpec& spec, size_t index);
// Refuses an input that is none known at load time; `what` it is, for the message. For inputs that no size
// depends on: nodes whose output's size depends on one are left to the network's tail.
void NeedKnown(const NodeSpec& spec, size_t index, std::string_view what);

// The elements of a constant input as integers or floats, whichever type it has.
std::vector<int64_t> ConstantInts(const NodeSpec& spec, size_t index);
std::vector<float> ConstantFloats(const NodeSpec& spec, size_t index);
// Attribute `name` of old opsets, or the constant input `index` of new ones; nullopt when neither is there.
std::optional<std::vector<int64_t>> IntsFromAttributeOrInput(const NodeSpec& spec, std::string_view name,
                                                             size_t index);

// `axis` with negative values counted from the end; refuses when it is outside [-rank, rank).
int64_t NormalAxis(const NodeSpec& spec, int64_t axis, size_t rank);
std::vector<int64_t> NormalAxes(const NodeSpec& spec, std::vector<int64_t> axes, size_t rank);

// Refuses a constant that importing would have to compute and that is larger than the limits allow.
void NeedFoldable(const NodeSpec& spec, const Shape& shape);

// The 2-D window of a conv or pooling node, with auto_pad resolved for an ih x iw input.
struct Window {
  int64_t kh = 1, kw = 1, sh = 1, sw = 1;
  int64_t dh = 1, dw = 1;  // ONNX's dilations: 1 is dense
  int64_t top = 0, left = 0, bottom = 0, right = 0;
};
// `kernel` is {kh, kw}. Refuses negative pads, sizes that are not positive, any above kMaxWindow, unknown
// auto_pad.
Window ImportWindow(const NodeSpec& spec, const std::vector<int64_t>& kernel, int64_t ih, int64_t iw);

// A BuiltOp whose edges are inputs 0..count-1.
BuiltOp BuiltWithInputs(OpPtr op, int count);

// The same operator over images of height 1, in the place of one over sequences {N, C, W}: every list of
// sizes, strides and pads gets a value for the height. The second input are weights where `weights`.
BuiltOp OverImages(const NodeSpec& spec, bool weights);

// A window over the axes behind the second, auto_pad resolved, by axis.
struct AxisWindow {
  int64_t kernel = 1, stride = 1, dilation = 1, begin = 0, end = 0;
  // How many windows there are along an axis of `size`; with ceil_mode also the last that begins within the
  // input or the padding before it. Never negative.
  int64_t Count(int64_t size, bool ceil_mode = false) const;
};
// Refuses as ImportWindow.
std::vector<AxisWindow> ImportAxisWindows(const NodeSpec& spec, const std::vector<int64_t>& kernel,
                                          const Shape& input);

}  // namespace tilesmith
