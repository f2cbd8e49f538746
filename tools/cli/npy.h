// NumPy's arrays, .npy, versions 1 to 3 of the format (numpy.lib.format).
#pragma once

#include <string>
#include <string_view>

#include "layouts/tensor.h"

namespace tilesmith {

// In the type of the array, but for float64, which becomes f32; two raw bytes ("V2") are bf16. Throws
// Error(kUsage) naming `source` when the bytes are no such array, in Fortran order or big-endian.
Tensor ParseNpy(std::string_view bytes, const std::string& source);

// The tensor has the plain layout; the same tensor gives the same bytes.
std::string FormatNpy(const Tensor& tensor);

// The same of files. Throw Error(kEnvironment) too, naming the file, when it cannot be read or written.
Tensor ReadNpy(const std::string& path);
void WriteNpy(const std::string& path, const Tensor& tensor);

}  // namespace tilesmith
