// Tensors as ONNX stores them.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

#include "layouts/tensor.h"
#include "ops/onnx/model_parts.h"

namespace tilesmith {

// Reads the tensors of one model, those among them whose data is in its other parts.
class TensorReader {
 public:
  // `parts`, which outlives the reader: null where only a model's own file is read. Of the limits those of a
  // tensor and of all data in other parts together count.
  explicit TensorReader(const ModelParts* parts = nullptr, const SizeLimits& limits = {})
      : parts_(parts), limits_(limits) {}

  // In the type that it is computed in (ComputedType, onnx_type.h); what has a NarrowType is unpacked. Throws
  // Error(kBadModel) starting with `what` and ": " when the data is of another type, cannot be had, or does
  // not fill the shape.
  Tensor Read(const onnx::TensorProto& proto, const std::string& what);
  // The same of a tensor whose raw data, if `data` has any bytes, is there in `file` and not in the proto.
  Tensor ReadApart(const onnx::TensorProto& proto, const ModelParts* file, const PartPlace& data,
                   const std::string& what);
  // The same in the type that it has, but for doubles, which become floats.
  Tensor ReadStored(const onnx::TensorProto& proto, const std::string& what);
  // Data in other parts becomes the proto's own, whatever its type; all else stays as it is. Throws likewise.
  void Embed(onnx::TensorProto& proto, const std::string& what);

 private:
  // In `becomes` of the type that it has.
  Tensor ReadAs(DataType (*becomes)(DataType), const onnx::TensorProto& proto, const ModelParts* file,
                const PartPlace& data, const std::string& what);
  // Where a tensor's bytes are in the other parts.
  PartPlace Find(const onnx::TensorProto& proto, const Shape& shape, const std::string& what);
  PartPlace PlaceOf(const onnx::TensorProto& proto, int64_t bytes) const;

  const ModelParts* parts_;
  const SizeLimits limits_;
  int64_t bytes_ = 0;  // read from other parts
};
inline Tensor TensorFromProto(const onnx::TensorProto& proto, const std::string& what) {
  return TensorReader().Read(proto, what);
}
// Whether its data is in another part, and in which one.
bool IsExternal(const onnx::TensorProto& proto);
std::string LocationOf(const onnx::TensorProto& proto);

void SetTensor(const std::string& name, const Tensor& tensor, onnx::TensorProto& proto);
// A float tensor of a graph's interface.
void SetFloatInfo(const std::string& name, const Shape& shape, onnx::ValueInfoProto& proto);

// An empty model of ours.
onnx::ModelProto NewModelProto(const std::string& graph_name, int64_t opset);
// With the data of larger initializers in another part, as the placement says. Throws as Serialize does.
ModelBytes SerializeWithData(onnx::ModelProto model, const DataPlacement& placement);
// Throws Error(kUsage) naming the graph when it would be 2 GiB or more, where ONNX files end.
std::string Serialize(const onnx::ModelProto& model);

}  // namespace tilesmith
