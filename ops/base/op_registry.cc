#include "ops/base/op_registry.h"

#include <fmt/format.h>

#include "layouts/base/error.h"
#include "layouts/byte_stream.h"

namespace tilesmith {

void Put(ByteWriter& writer, const TensorAttribute& attribute) { writer.Write(*attribute.value()); }

void Get(ByteReader& reader, TensorAttribute& attribute) { attribute = reader.Read<Tensor>(); }

namespace {

template <typename T>
constexpr std::string_view kTypeName = "";
template <>
constexpr std::string_view kTypeName<int64_t> = "an integer";
template <>
constexpr std::string_view kTypeName<float> = "a float";
template <>
constexpr std::string_view kTypeName<std::string> = "a string";
template <>
constexpr std::string_view kTypeName<std::vector<int64_t>> = "a list of integers";
template <>
constexpr std::string_view kTypeName<std::vector<float>> = "a list of floats";
template <>
constexpr std::string_view kTypeName<std::vector<std::string>> = "a list of strings";
template <>
constexpr std::string_view kTypeName<TensorAttribute> = "a tensor";

template <typename T>
const T* Get(const NodeSpec& spec, std::string_view name) {
  const auto found = spec.attributes.find(name);
  if (found == spec.attributes.end()) return nullptr;
  if (const T* value = std::get_if<T>(&found->second)) return value;
  const std::string_view actual =
      std::visit([](const auto& value) { return kTypeName<std::decay_t<decltype(value)>>; }, found->second);
  throw Error(ErrorCode::kBadModel, fmt::format("node \"{}\" ({}): the attribute {} must be {}, it is {}",
                                                spec.name, spec.op_type, name, kTypeName<T>, actual));
}

}  // namespace

int64_t NodeSpec::Int(std::string_view name, int64_t fallback) const {
  const int64_t* value = Get<int64_t>(*this, name);
  return value ? *value : fallback;
}

float NodeSpec::Float(std::string_view name, float fallback) const {
  const float* value = Get<float>(*this, name);
  return value ? *value : fallback;
}

std::string NodeSpec::String(std::string_view name, std::string_view fallback) const {
  const std::string* value = Get<std::string>(*this, name);
  return value ? *value : std::string(fallback);
}

std::vector<int64_t> NodeSpec::Ints(std::string_view name, std::vector<int64_t> fallback) const {
  const std::vector<int64_t>* value = Get<std::vector<int64_t>>(*this, name);
  if (value) return *value;
  return fallback;
}

std::vector<float> NodeSpec::Floats(std::string_view name, std::vector<float> fallback) const {
  const std::vector<float>* value = Get<std::vector<float>>(*this, name);
  if (value) return *value;
  return fallback;
}

std::vector<std::string> NodeSpec::Strings(std::string_view name, std::vector<std::string> fallback) const {
  const std::vector<std::string>* value = Get<std::vector<std::string>>(*this, name);
  if (value) return *value;
  return fallback;
}

const Tensor& NodeSpec::Constant(size_t index) const {
  if (!HasInput(index)) {
    throw Error(ErrorCode::kBadModel,
                fmt::format("node \"{}\" ({}): input {} is missing", name, op_type, index));
  }
  if (!inputs[index].constant) {
    throw NeedsConstant(
        fmt::format("node \"{}\" ({}): input {} must be constant, it depends on the network's inputs", name,
                    op_type, index));
  }
  return *inputs[index].constant;
}

}  // namespace tilesmith
