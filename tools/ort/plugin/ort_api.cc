#include "tools/ort/plugin/ort_api.h"

#include <new>

#include "layouts/base/error.h"
#include "ops/onnx/host_model.h"

namespace tilesmith {
namespace {

OrtErrorCode CodeOf(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kUsage:
      return ORT_INVALID_ARGUMENT;
    case ErrorCode::kBadModel:
      return ORT_INVALID_GRAPH;
    default:
      return ORT_EP_FAIL;
  }
}

}  // namespace

void CheckOrt(const OrtApi& api, OrtStatus* status) {
  if (status == nullptr) return;
  const std::string message = api.GetErrorMessage(status);
  api.ReleaseStatus(status);
  throw Error(ErrorCode::kEnvironment, message);
}

OrtStatus* OrtGuarded(const OrtApi& api, const std::function<void()>& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const Error& error) {
    return api.CreateStatus(CodeOf(error), error.what());
  } catch (const std::bad_alloc&) {
    return api.CreateStatus(ORT_EP_FAIL, "tilesmith: out of memory");
  } catch (const std::exception& error) {
    return api.CreateStatus(ORT_EP_FAIL, error.what());
  } catch (...) {
    return api.CreateStatus(ORT_EP_FAIL, "tilesmith: unknown error");
  }
}

HostTensorType TypeOfTensor(const OrtApi& api, const OrtTensorTypeAndShapeInfo* info) {
  HostTensorType type;
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  CheckOrt(api, api.GetTensorElementType(info, &element));
  type.element_type = element;
  size_t rank = 0;
  CheckOrt(api, api.GetDimensionsCount(info, &rank));
  std::vector<int64_t> shape(rank);
  std::vector<const char*> names(rank);
  CheckOrt(api, api.GetDimensions(info, shape.data(), rank));
  CheckOrt(api, api.GetSymbolicDimensions(info, names.data(), rank));
  for (size_t i = 0; i < rank; ++i) {
    if (shape[i] >= 0) continue;
    shape[i] = kOpenSize;
    if (i == 0) continue;
    type.open_dimension = names[i];
    return type;
  }
  type.shape = std::move(shape);
  return type;
}

HostTensorType TypeOfValue(const OrtApi& api, const OrtValue* value) {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  CheckOrt(api, api.GetTensorTypeAndShape(value, &info));
  const std::unique_ptr<OrtTensorTypeAndShapeInfo, void (*)(OrtTensorTypeAndShapeInfo*)> owner(
      info, api.ReleaseTensorTypeAndShapeInfo);
  return TypeOfTensor(api, info);
}

}  // namespace tilesmith
