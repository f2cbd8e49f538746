// The order in which results are computed.
#pragma once

namespace tilesmith {

// Of ops/order.md, which says in what order every operator adds and by which functions: results of the same
// version are the same bits on every CPU that adds products unrounded.
constexpr int kOrderVersion = 1;

}  // namespace tilesmith
