// Generated code made visible: dumped to files for a disassembler, or named for perf.
#pragma once

#include <span>
#include <string>

#include "templates/base/conv_template.h"

namespace tilesmith {

// Writes each blob to `directory`/NN-name.bin, characters unfit for file names replaced by '_'. Creates the
// directory. Disassemble with: objdump -D -b binary -m i386:x86-64 FILE. Throws Error(kEnvironment).
void WriteCodeDump(const std::string& directory, std::span<const CodeBlob> blobs);

// Appends the blobs to /tmp/perf-PID.map, where `perf report` looks for the names of generated code.
// Throws Error(kEnvironment).
void WritePerfMap(std::span<const CodeBlob> blobs);

}  // namespace tilesmith
