// Libraries that are looked for when they are needed, not when the program starts.
#pragma once

#include <dlfcn.h>

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

}  // namespace tilesmith
