#include "layouts/base/sizes.h"

#include <fmt/format.h>

#include "layouts/base/error.h"

namespace tilesmith {

void ThrowOverflow(int64_t a, char operation, int64_t b) {
  throw Error(ErrorCode::kBadModel, fmt::format("a size does not fit 64 bits: {} {} {}", a, operation, b));
}

}  // namespace tilesmith
