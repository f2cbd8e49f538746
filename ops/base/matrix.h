// Matrices in double precision, for the meaning of products.
#pragma once

#include <Eigen/Core>

namespace tilesmith {

template <typename T>
using RowMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using FloatMap = Eigen::Map<const RowMatrix<float>>;

// Eigen adds up products in blocks that follow from the sizes of the caches. It is told the same ones
// everywhere, so that results are the same, too.
inline const bool kCachesAreSet = (Eigen::setCpuCacheSizes(32 << 10, 256 << 10, 2 << 20), true);

}  // namespace tilesmith
