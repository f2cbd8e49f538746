// NumPy's files: .npy (one array) and .npz (a zip of them), versions 1 to 3 of the format
// (numpy.lib.format). Entries of .npz are stored, as numpy.savez writes them, not compressed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "layouts/tensor.h"

namespace tilesmith {

using NamedTensor = std::pair<std::string, Tensor>;  // an entry's name without ".npy"

// float32 and float64 become kF32; integers and bools kI64. All functions throw Error(kUsage) naming the file
// when it is no such file, is in Fortran order, big-endian or compressed; Error(kEnvironment) when it cannot
// be read or written.
Tensor ReadNpy(const std::string& path);
std::vector<NamedTensor> ReadNpz(const std::string& path);

// Plain layout; the same tensors give the same bytes.
void WriteNpy(const std::string& path, const Tensor& tensor);
void WriteNpz(const std::string& path, const std::vector<NamedTensor>& tensors);

}  // namespace tilesmith
