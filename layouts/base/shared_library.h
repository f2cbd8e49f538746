// Libraries that are looked for when they are needed, not when the program starts.
#pragma once

#include <dlfcn.h>

#include <span>
#include <string>
#include <string_view>

namespace tilesmith {

// It stays loaded: threads of its own may outlive whoever used it. Null where there is none, of which
// dlerror() tells the reason. Thread-safe.
inline void* OpenLibrary(const char* name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }

// The library's function of that name, as what its C declaration says it is; false, and null, where it has
// none. Precondition: Function is a pointer to a function of that declaration.
template <typename Function>
[[nodiscard]] bool FindFunction(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// A library of the system that a part of ours uses.
struct SystemLibrary {
  std::string_view title;              // "XGBoost"
  std::string_view use;                // "which tuning learns with"
  std::span<const char* const> names;  // "libxgboost.so.0": the first is what was compiled against
};
// The first of its names that opens. Throws Error(kEnvironment) naming the library, its use and Debian's
// package of it where none does. Thread-safe.
void* RequireLibrary(const SystemLibrary& library);
// Throws Error(kEnvironment) naming the library and the function where it lacks it.
void* RequireSymbol(void* opened, const SystemLibrary& library, const char* name);
// FindFunction of what must be there.
template <typename Function>
void RequireFunction(void* opened, const SystemLibrary& library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(RequireSymbol(opened, library, name));
}

}  // namespace tilesmith
