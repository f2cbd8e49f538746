// A model that another program holds in memory, as plain values: what a model file says, without the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ops/base/op_registry.h"
#include "ops/onnx/onnx_import.h"

namespace tilesmith {

struct HostConstant {
  std::string name;
  int32_t type = 0;  // as TensorProto::DataType numbers element types: 1 is float
  Shape shape;
  std::span<const std::byte> bytes;  // the host's: dense, little-endian
};

struct HostNode {
  std::string name, op_type, domain;
  std::vector<std::string> inputs, outputs;  // names of tensors; "" is an input that is absent
  std::map<std::string, Attribute, std::less<>> attributes;
};

constexpr int64_t kOpenSize = -1;  // "N" in a file, 1 where nobody gives it

struct HostModel {
  std::string name;
  int64_t opset = 0;  // of the default domain
  // Floats. A first size may be kOpenSize.
  std::vector<std::pair<std::string, Shape>> inputs;
  std::vector<HostConstant> constants;
  std::vector<HostNode> nodes;  // each behind those it reads from
  std::vector<std::string> outputs;
};

// As ImportOnnxBytes does with OnnxBytes(model), without the bytes.
Graph ImportHostModel(const HostModel& model, const ImportOptions& options = {});

// The model as a file. Throws Error(kUsage) when it would be 2 GiB or more.
std::string OnnxBytes(const HostModel& model);

}  // namespace tilesmith
