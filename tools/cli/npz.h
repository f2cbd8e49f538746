// NumPy's arrays, .npy, and archives of them, .npz: zip files of .npy entries.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layouts/tensor.h"

namespace tilesmith {

using NamedTensor = std::pair<std::string, Tensor>;  // an entry's name without ".npy"

// What numpy.savez and numpy.savez_compressed write. Throws Error(kUsage) naming the file and the entry when
// it is no such archive, or an entry is not what ParseNpy takes, is encrypted, or packed otherwise than by
// deflate; Error(kEnvironment) when the file cannot be read.
std::vector<NamedTensor> ReadNpz(const std::string& path);

// Not compressed, as numpy.savez writes; the same tensors give the same bytes. Throws Error(kEnvironment)
// naming the file when it cannot be written.
void WriteNpz(const std::string& path, const std::vector<NamedTensor>& tensors);

// In the type of the array, but for float64, which becomes f32; two raw bytes ("V2") are bf16. Throws
// Error(kUsage) naming `source` when the bytes are no such array, in Fortran order or big-endian.
Tensor ParseNpy(std::string_view bytes, const std::string& source);

// The tensor has the plain layout; the same tensor gives the same bytes.
std::string FormatNpy(const Tensor& tensor);

// The same of files. Throw Error(kEnvironment) too, naming the file, when it cannot be read or written.
Tensor ReadNpy(const std::string& path);
void WriteNpy(const std::string& path, const Tensor& tensor);

}  // namespace tilesmith
