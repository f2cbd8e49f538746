// What this tilesmith is made of.
#pragma once

#include <string>

namespace tilesmith {

// Version and commit, the instructions this CPU has, and the libraries in use: a line each.
std::string VersionText();

}  // namespace tilesmith
