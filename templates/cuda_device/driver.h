// The CUDA driver's and NVRTC's functions, loaded when a GPU is asked for, so that neither building nor
// running needs either where there is none. Types and values as in NVIDIA's documentation of the driver API
// and NVRTC.
#pragma once

#include <cstddef>
#include <string>

namespace tilesmith::cuda {

using DevicePointer = unsigned long long;
using ContextHandle = struct CUctx_st*;
using ModuleHandle = struct CUmod_st*;
using FunctionHandle = struct CUfunc_st*;
using StreamHandle = struct CUstream_st*;
using EventHandle = struct CUevent_st*;
using GraphHandle = struct CUgraph_st*;
using GraphExecHandle = struct CUgraphExec_st*;
using CompilationHandle = struct _nvrtcProgram*;

constexpr int kSuccess = 0;

// Attributes of a device and of a function, flags and modes.
constexpr int kMultiprocessors = 16, kL2Bytes = 38, kComputeMajor = 75, kComputeMinor = 76,
              kSharedBytesOfBlock = 97;
constexpr int kDynamicSharedBytes = 8;
constexpr unsigned kNonBlocking = 1;
constexpr int kCaptureOfThread = 1;

// libcuda.so.1
struct Driver {
  int (*init)(unsigned flags) = nullptr;
  int (*error_name)(int error, const char** name) = nullptr;
  int (*error_string)(int error, const char** text) = nullptr;
  int (*device_count)(int* count) = nullptr;
  int (*device_get)(int* device, int ordinal) = nullptr;
  int (*device_name)(char* name, int length, int device) = nullptr;
  int (*device_attribute)(int* value, int attribute, int device) = nullptr;
  int (*device_bus_id)(char* text, int length, int device) = nullptr;
  int (*retain_context)(ContextHandle* context, int device) = nullptr;
  int (*set_context)(ContextHandle context) = nullptr;
  int (*allocate)(DevicePointer* memory, size_t bytes) = nullptr;
  int (*free)(DevicePointer memory) = nullptr;
  int (*allocate_host)(void** memory, size_t bytes, unsigned flags) = nullptr;
  int (*free_host)(void* memory) = nullptr;
  int (*copy_in)(DevicePointer to, const void* from, size_t bytes, StreamHandle stream) = nullptr;
  int (*copy_out)(void* to, DevicePointer from, size_t bytes, StreamHandle stream) = nullptr;
  int (*copy)(DevicePointer to, DevicePointer from, size_t bytes, StreamHandle stream) = nullptr;
  int (*fill)(DevicePointer to, unsigned char value, size_t bytes, StreamHandle stream) = nullptr;
  int (*stream_create)(StreamHandle* stream, unsigned flags) = nullptr;
  int (*stream_destroy)(StreamHandle stream) = nullptr;
  int (*stream_wait)(StreamHandle stream) = nullptr;
  int (*event_create)(EventHandle* event, unsigned flags) = nullptr;
  int (*event_destroy)(EventHandle event) = nullptr;
  int (*event_record)(EventHandle event, StreamHandle stream) = nullptr;
  int (*event_elapsed)(float* milliseconds, EventHandle begin, EventHandle end) = nullptr;
  int (*module_load)(ModuleHandle* module, const void* image) = nullptr;
  int (*module_unload)(ModuleHandle module) = nullptr;
  int (*module_function)(FunctionHandle* function, ModuleHandle module, const char* name) = nullptr;
  int (*function_set)(FunctionHandle function, int attribute, int value) = nullptr;
  int (*launch)(FunctionHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                unsigned block_y, unsigned block_z, unsigned shared_bytes, StreamHandle stream,
                void** arguments, void** extra) = nullptr;
  int (*capture_begin)(StreamHandle stream, int mode) = nullptr;
  int (*capture_end)(StreamHandle stream, GraphHandle* graph) = nullptr;
  int (*graph_instantiate)(GraphExecHandle* exec, GraphHandle graph, unsigned long long flags) = nullptr;
  int (*graph_launch)(GraphExecHandle exec, StreamHandle stream) = nullptr;
  int (*graph_destroy)(GraphHandle graph) = nullptr;
  int (*graph_exec_destroy)(GraphExecHandle exec) = nullptr;

  // Throws what a function's result means, `doing` saying what failed: DeviceLost after errors that leave
  // nothing usable in this process, else Error(kEnvironment).
  void Check(int result, const std::string& doing) const;
};

// Initialized. Throws Error(kEnvironment), in one line, where there is no driver or no GPU. Thread-safe.
const Driver& LoadedDriver();

// libnvrtc.so, of whatever version is found.
struct Nvrtc {
  const char* (*error_string)(int error) = nullptr;
  int (*version)(int* major, int* minor) = nullptr;
  int (*create)(CompilationHandle* program, const char* text, const char* name, int headers,
                const char* const* texts, const char* const* names) = nullptr;
  int (*destroy)(CompilationHandle* program) = nullptr;
  int (*compile)(CompilationHandle program, int count, const char* const* options) = nullptr;
  int (*log_bytes)(CompilationHandle program, size_t* bytes) = nullptr;
  int (*log)(CompilationHandle program, char* text) = nullptr;
  int (*cubin_bytes)(CompilationHandle program, size_t* bytes) = nullptr;
  int (*cubin)(CompilationHandle program, char* image) = nullptr;
};

// Throws as LoadedDriver where there is none. Thread-safe.
const Nvrtc& LoadedNvrtc();

}  // namespace tilesmith::cuda
