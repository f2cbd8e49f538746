// Windows over one or three axes in terms of windows over two.
#pragma once

#include "ops/base/import_util.h"
#include "ops/base/node_writer.h"

namespace tilesmith {

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
