// NumPy's archives of arrays, .npz: zip files of .npy entries.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/cli/npy.h"

namespace tilesmith {

using NamedTensor = std::pair<std::string, Tensor>;  // an entry's name without ".npy"

// What numpy.savez and numpy.savez_compressed write. Throws Error(kUsage) naming the file and the entry when
// it is no such archive, or an entry is not what ParseNpy takes, is encrypted, or packed otherwise than by
// deflate; Error(kEnvironment) when the file cannot be read.
std::vector<NamedTensor> ReadNpz(const std::string& path);

// Not compressed, as numpy.savez writes; the same tensors give the same bytes. Throws Error(kEnvironment)
// naming the file when it cannot be written.
void WriteNpz(const std::string& path, const std::vector<NamedTensor>& tensors);

}  // namespace tilesmith
