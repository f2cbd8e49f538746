# cmake -DOUTPUT=FILE.cc -P commit.cmake, run in the source tree: writes what CommitOfBuild (results_file.h) says.
# A file that says so already is left as it is, so that nothing is built anew.
execute_process(COMMAND git describe --always --dirty --exclude=* OUTPUT_VARIABLE commit ERROR_QUIET
                OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT commit)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
// Written by tools/cli/commit.cmake.
#include "tools/cli/results_file.h"

namespace tilesmith {

std::string_view CommitOfBuild() { return "@commit@"; }

}  // namespace tilesmith
]])
