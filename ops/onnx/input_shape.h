// The static shape of a graph input: what the file says, completed by the options; and its type.
#pragma once

#include <onnx/onnx_pb.h>

#include "ops/onnx/onnx_import.h"

namespace tilesmith {

// Whether one size may be its whole shape.
bool MayHaveRankOne(const onnx::ValueInfoProto& input);
// -1 for what neither file nor options say. Throws Error(kBadModel) naming the input where nobody says its
// rank, or the rank given differs from the file's.
Shape DeclaredShape(const onnx::ValueInfoProto& input, const ImportOptions& options);
// Whether more is open than a batch, which is 1 where nobody gives it.
bool LeavesSizesOpen(const Shape& declared);

// Names the open sizes of inputs, and proposes usual ones for all of them.
class OpenSizes {
 public:
  // Precondition: LeavesSizesOpen(declared).
  void Add(const onnx::ValueInfoProto& input, const Shape& declared);
  bool empty() const { return inputs_.empty(); }
  std::string Text() const;

 private:
  std::vector<std::string> inputs_;        // "x" is [N, 3, ?, ?]
  std::vector<std::string> usual_;         // x=1x3x224x224
  std::vector<std::string> alternatives_;  // of images
};
// Throws Error(kBadModel) naming the input when its elements have no type of ours.
DataType InputType(const onnx::ValueInfoProto& input);

}  // namespace tilesmith
