// What the C functions share: their errors, and C's values as C++ has them.
#pragma once

#include <algorithm>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "layouts/base/error.h"
#include "tools/api/setting_list.h"
#include "tools/api/tilesmith.h"
#include "tools/api/tilesmith_c.h"

namespace tilesmith::c {

// The calling thread's (tilesmith_last_error).
std::string& LastError();

// Runs body; exceptions become a status.
template <typename Body>
int Guard(const Body& body) {
  try {
    body();
    return 0;
  } catch (const tilesmith::Error& error) {
    LastError() = error.what();
    return static_cast<int>(error.code());
  } catch (const std::bad_alloc&) {
    LastError() = "out of memory";
    return static_cast<int>(tilesmith::ErrorCode::kEnvironment);
  } catch (const std::exception& error) {
    LastError() = error.what();
    return static_cast<int>(tilesmith::ErrorCode::kInternal);
  }
}

template <typename T>
void RequirePointer(const T* pointer, const char* name) {
  if (pointer == nullptr)
    throw tilesmith::Error(tilesmith::ErrorCode::kUsage, std::string(name) + " is a null pointer");
}

// Throws Error(kUsage) where there is a null pointer; so do those below.
inline std::vector<std::string> TextsOf(const char* name, const char* const* given, size_t count) {
  if (count > 0) RequirePointer(given, name);
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i) {
    RequirePointer(given[i], name);
    texts.emplace_back(given[i]);
  }
  return texts;
}

// What is null or 0 keeps its default.
inline void Take(const char* given, std::string& setting) {
  if (given != nullptr) setting = given;
}
template <typename Number>
requires std::is_arithmetic_v<Number>
void Take(Number given, Number& setting) {
  if (given != 0) setting = given;
}
inline void Take(int given, bool& setting) {
  if (given != 0) setting = true;
}
// Lists have a length, which is taken below.
inline void Take(const char* const*, std::vector<std::string>&) {}

// The settings in C++, as far as C gives them.
template <typename Settings, typename Given>
Settings SettingsOf(const Given& given) {
  Settings settings;
#define TILESMITH_TAKE(name) \
  if constexpr (requires { given.name, settings.name; }) Take(given.name, settings.name);
  TILESMITH_SETTINGS(TILESMITH_TAKE)
#undef TILESMITH_TAKE
  settings.input_shapes = TextsOf("input_shapes", given.input_shapes, given.input_shape_count);
  if constexpr (requires { given.calibrate; })
    settings.calibrate = TextsOf("calibrate", given.calibrate, given.calibrate_count);
  if constexpr (requires { given.forbid; })
    settings.forbid = TextsOf("forbid", given.forbid, given.forbid_count);
  if constexpr (requires { given.keep; }) {
    settings.keep = TextsOf("keep", given.keep, given.keep_count);
    settings.op_types = TextsOf("op_types", given.op_types, given.op_type_count);
    settings.check = given.no_check == 0;
  }
  if constexpr (requires { settings.database; }) settings.database = given.no_database == 0;
  if constexpr (requires { settings.rounds; }) settings.rounds = std::max(settings.rounds, 0);
  return settings;
}

// Models as they are given: by name, or in memory.
inline std::string ModelOf(const char* name) {
  RequirePointer(name, "model_name");
  return name;
}

inline tilesmith::ModelMemory ModelOf(const tilesmith_memory* memory) {
  RequirePointer(memory, "memory");
  const auto bytes_of = [](const void* data, size_t bytes, const char* name) {
    if (bytes > 0) RequirePointer(data, name);
    return std::span(static_cast<const std::byte*>(data), bytes);
  };
  tilesmith::ModelMemory model;
  model.bytes = bytes_of(memory->data, memory->bytes, "data");
  if (memory->name != nullptr) model.name = memory->name;
  if (memory->part_count > 0) RequirePointer(memory->parts, "parts");
  for (size_t i = 0; i < memory->part_count; ++i) {
    const tilesmith_part& part = memory->parts[i];
    RequirePointer(part.location, "location");
    model.parts[part.location] = bytes_of(part.data, part.bytes, "data");
  }
  return model;
}

}  // namespace tilesmith::c
