#include "layouts/base/shared_library.h"

#include <fmt/format.h>

#include "layouts/base/error.h"

namespace tilesmith {
namespace {

// As Debian names packages: "libxgboost0" of "libxgboost.so.0", "libhiredis0.14" of "libhiredis.so.0.14".
std::string PackageOf(std::string_view name) {
  constexpr std::string_view kInfix = ".so.";
  const size_t at = name.find(kInfix);
  if (at == std::string_view::npos) return std::string(name);
  return fmt::format("{}{}", name.substr(0, at), name.substr(at + kInfix.size()));
}

}  // namespace

void* RequireLibrary(const SystemLibrary& library) {
  std::string reason;
  for (const char* name : library.names) {
    if (void* const opened = OpenLibrary(name)) return opened;
    if (reason.empty()) reason = dlerror();
  }
  throw Error(ErrorCode::kEnvironment,
              fmt::format("{}, {}, is not installed; Debian has it in the package {} ({})", library.title,
                          library.use, PackageOf(library.names.front()), reason));
}

void* RequireSymbol(void* opened, const SystemLibrary& library, const char* name) {
  if (void* const symbol = dlsym(opened, name)) return symbol;
  throw Error(ErrorCode::kEnvironment, fmt::format("{}, {}, is installed in another version: it has no {}",
                                                   library.title, library.use, name));
}

}  // namespace tilesmith
