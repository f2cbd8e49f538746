// What this tilesmith is made of.
#pragma once

#include <string>

namespace tilesmith {

// Version and commit, the instructions that are used here, and the libraries in use: a line each. Throws as
// CappedCpu does.
std::string VersionText();

}  // namespace tilesmith
