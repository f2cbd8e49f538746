// Reading JSON objects with errors that name the field. For .cc files only: it pulls in all of nlohmann/json.
#pragma once

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "layouts/base/error.h"

namespace tilesmith {

// Values nest at most so deep in anything that is read. What copies or prints a value goes down into it by
// recursion, so a line of brackets would otherwise use up the stack.
constexpr int kDeepestJson = 64;

inline bool NestsTooDeep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '[' || c == '{')) {
      if (++depth > kDeepestJson) return true;
    } else if (!quoted && (c == ']' || c == '}')) {
      --depth;
    }
  }
  return false;
}

// Discarded (is_discarded()) when the text is not JSON, or nests deeper than kDeepestJson.
template <typename Json = nlohmann::json>
Json ParseJson(std::string_view text) {
  if (NestsTooDeep(text)) return Json(nlohmann::detail::value_t::discarded);
  return Json::parse(text, nullptr, false);
}

// The member `name` of an object. Throws Error(kUsage) naming it when it is missing.
inline const nlohmann::json& JsonField(const nlohmann::json& object, const char* name) {
  if (!object.is_object()) throw Error(ErrorCode::kUsage, "not a JSON object");
  const auto found = object.find(name);
  if (found == object.end()) throw Error(ErrorCode::kUsage, fmt::format("field \"{}\" is missing", name));
  return *found;
}

// Whether an integer of JSON, which is 64 bits wide with or without a sign, is one of T's.
template <typename T>
bool JsonFits(const nlohmann::json& value) {
  return value.is_number_unsigned() ? std::in_range<T>(value.get<uint64_t>())
                                    : std::in_range<T>(value.get<int64_t>());
}

// The value of a field as a T. Throws Error(kUsage) naming the field and its type when it is not one, and its
// value when it is an integer that T does not hold.
template <typename T>
T JsonValue(const nlohmann::json& value, const char* name) {
  constexpr bool kIsNumber = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;
  const bool fits = std::is_same_v<T, bool> ? value.is_boolean()
                    : std::is_integral_v<T> ? value.is_number_integer()
                    : kIsNumber             ? value.is_number()
                                            : value.is_string();
  if (!fits) throw Error(ErrorCode::kUsage, fmt::format("field \"{}\" is a {}", name, value.type_name()));
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    using Limits = std::numeric_limits<T>;
    if (!JsonFits<T>(value)) {
      throw Error(ErrorCode::kUsage, fmt::format("field \"{}\" is {} (allowed: {} to {})", name, value.dump(),
                                                 Limits::min(), Limits::max()));
    }
  }
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
