// Reading JSON objects with errors that name the field. For .cc files only: it pulls in all of nlohmann/json.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "layouts/base/error.h"

namespace tilesmith {

// The member `name` of an object. Throws Error(kUsage) naming it when it is missing.
inline const nlohmann::json& JsonField(const nlohmann::json& object, const char* name) {
  if (!object.is_object()) throw Error(ErrorCode::kUsage, "not a JSON object");
  const auto found = object.find(name);
  if (found == object.end()) throw Error(ErrorCode::kUsage, fmt::format("field \"{}\" is missing", name));
  return *found;
}

// The value of a field as a T. Throws Error(kUsage) naming the field and its type when it is not one.
template <typename T>
T JsonValue(const nlohmann::json& value, const char* name) {
  constexpr bool kIsNumber = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;
  const bool fits = std::is_same_v<T, bool> ? value.is_boolean()
                    : std::is_integral_v<T> ? value.is_number_integer()
                    : kIsNumber             ? value.is_number()
                                            : value.is_string();
  if (!fits) throw Error(ErrorCode::kUsage, fmt::format("field \"{}\" is a {}", name, value.type_name()));
  return value.get<T>();
}

template <typename T>
T JsonGet(const nlohmann::json& object, const char* name) {
  return JsonValue<T>(JsonField(object, name), name);
}

template <typename T>
T JsonGetOr(const nlohmann::json& object, const char* name, T fallback) {
  if (!object.is_object()) return fallback;
  const auto found = object.find(name);
  return found == object.end() ? fallback : JsonValue<T>(*found, name);
}

// One line, whatever bytes the strings hold.
inline std::string JsonLine(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace tilesmith
