// What an object of `tilesmith compile --object` calls, and libtilesmith_kernels has. Its header, which says
// more of it to callers, is written by tools/network/object_file.cc.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

// In an object.
struct TilesmithObject {
  const std::byte* before_code;  // of a compiled file (graph_tuner/compiled), at a multiple of 64 bytes
  const std::byte* code;
  uint64_t scratch_bytes;
};

// A caller's threads.
struct TilesmithPool {
  void* pool;
  void (*parallel)(void* pool, int threads, void (*body)(void* context, int thread), void* context);
};

enum TilesmithStatus {
  kTilesmithOk = 0,
  kTilesmithArgument = 1,      // a null pointer, or memory that is not aligned to 64 bytes
  kTilesmithNotPrepared = 2,   // no scratch that this object's init has prepared
  kTilesmithInstructions = 3,  // the CPU lacks instructions that the network was compiled for
  kTilesmithFailed = 4,        // an index among the inputs' values is out of range, or the object is damaged
};

// Prepares scratch: `object->scratch_bytes` bytes, aligned to 64, of any contents. Reads the tables and
// builds steps there, once; nothing has to be released. Thread-safe.
int tilesmith_object_init(void* scratch, const TilesmithObject* object);
// How many bytes of scratch it takes, by the runs there were in a scratch that is larger.
uint64_t tilesmith_object_used(const void* scratch);
// One run at a time with a scratch. `pool` may be null of a network for one thread.
int tilesmith_object_run(const void* const* inputs, void* const* outputs, void* scratch,
                         const TilesmithPool* pool, const TilesmithObject* object);

}  // extern "C"
