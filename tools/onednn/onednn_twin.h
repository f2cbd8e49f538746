// From an op of a network to its oneDNN twin.
#pragma once

#include "ops/base/op.h"
#include "tools/onednn/onednn.h"

namespace tilesmith {

// The twin of any op but a conv (see OneDnnConv, which has algorithms to choose from), for inputs of these
// shapes, all of them and the output in `layout`; dense layers and softmax ignore it and are plain. Null with
// the reason in *refusal when oneDNN has no such primitive, among them views, which cost nothing on either
// side.
std::unique_ptr<OneDnnPrimitive> MakeOneDnnTwin(const Op& op, std::span<const Shape> inputs,
                                                const Layout& layout, std::string* refusal = nullptr);

}  // namespace tilesmith
