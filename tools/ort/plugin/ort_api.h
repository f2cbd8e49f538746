// ONNX Runtime's C interface as C++ wants it: statuses that throw, handles that free themselves. Its headers
// are fetched (tools/ort/fetch), and what needs more than version 1.23 is not used.
#pragma once

#include <onnxruntime_c_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tilesmith {

constexpr const char* kProviderName = "TilesmithExecutionProvider";
// Of nodes that hold what providers compiled, which their attribute "source" names.
constexpr const char *kContextOp = "EPContext", *kContextDomain = "com.microsoft";
constexpr uint32_t kOrtApiVersion = 23;  // the oldest whose graphs plug-ins can read

// Throws Error(kEnvironment) with what the status says, and frees it; does nothing for a null pointer.
void CheckOrt(const OrtApi& api, OrtStatus* status);

// What `body` throws, as a status; no exception crosses the border. Null when it throws nothing.
OrtStatus* OrtGuarded(const OrtApi& api, const std::function<void()>& body) noexcept;

// Element type as ONNX numbers it, 0 for what is no tensor. Without a shape when a dimension is open, but for
// the first, the batch: that is kOpenSize.
struct HostTensorType {
  int32_t element_type = 0;
  std::optional<std::vector<int64_t>> shape;
  std::string open_dimension;  // "N" of an open dimension that has a name
};
HostTensorType TypeOfTensor(const OrtApi& api, const OrtTensorTypeAndShapeInfo* info);
HostTensorType TypeOfValue(const OrtApi& api, const OrtValue* value);

}  // namespace tilesmith
