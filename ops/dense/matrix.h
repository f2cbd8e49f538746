// Matrices in double precision, for the meaning of products.
#pragma once

#include <Eigen/Core>

namespace tilesmith {

template <typename T>
using RowMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using FloatMap = Eigen::Map<const RowMatrix<float>>;

}  // namespace tilesmith
