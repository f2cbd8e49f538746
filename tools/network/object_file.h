// A compiled network as an ELF object of x86-64 and a header in C, to be linked with libtilesmith_kernels
// into programs that have neither files nor a heap (graph_tuner/compiled/README.md).
#pragma once

#include <cstdint>
#include <string>

#include "graph_tuner/compiled/compiled_file.h"

namespace tilesmith {

// The names that an object at this path gives rise to.
struct ObjectNames {
  std::string object, header;  // paths
  std::string identifier;      // that names in C begin with: the file's, without ".o"
};
// Throws Error(kUsage) where the path does not end in ".o", or what is in front of that is no identifier of
// C.
ObjectNames ObjectNamesOf(const std::string& path);

// Writes both files, and returns the object's bytes. The object defines IDENTIFIER_init and IDENTIFIER_run,
// which call the library, and holds the network as WriteCompiled has it: what is no code is read-only, and so
// is code, which is executable; the header has their declarations, and sizes, shapes, layouts and types of
// inputs, outputs and scratch as macros. The program that is linked of them takes no other memory than what
// it hands over. Runs the network once, on zeros. Throws Error(kUsage) naming what cannot be an object: a
// network whose outputs have sizes that depend on values, one that is larger than what is linked may be;
// Error(kEnvironment) where this build lacks the library (tools/api/CMakeLists.txt) or a file cannot be
// written; and as WriteCompiled.
int64_t WriteObject(const CompiledModel& model, const ObjectNames& names);

}  // namespace tilesmith
