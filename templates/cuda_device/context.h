// A GPU as this process uses it: its context, memory and events. What owns something of the driver's is here.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "layouts/base/target.h"
#include "templates/cuda_device/driver.h"
#include "templates/device/device.h"

namespace tilesmith::cuda {

inline DevicePointer Address(const void* memory) { return reinterpret_cast<DevicePointer>(memory); }

// A process's hold on a GPU, for as long as it lives. Thread-safe.
class Context {
 public:
  // On the GPU that the driver numbers so. Throws Error(kEnvironment).
  explicit Context(int ordinal);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // The calling thread's calls of the driver are of this GPU from now on.
  void MakeCurrent() const;
  // The same for destructors: where it fails, so does what follows, and there is nothing left to free.
  void TryMakeCurrent() const noexcept { driver_.set_context(context_); }
  const Driver& driver() const { return driver_; }
  const Target& target() const { return target_; }
  const std::string& bus_id() const { return bus_id_; }

 private:
  int Attribute(int attribute) const;

  const Driver& driver_;
  int device_ = 0;
  ContextHandle context_ = nullptr;
  Target target_;
  std::string bus_id_;
};
using ContextPtr = std::shared_ptr<const Context>;

// The first GPU's.
ContextPtr OpenContext();

// Work that is done in its order. One thread at a time.
class Queue {
 public:
  explicit Queue(ContextPtr context);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  StreamHandle handle() const { return handle_; }
  const Driver& driver() const { return context_->driver(); }
  const Context& context() const { return *context_; }
  // Until all is done; throws what failed meanwhile, `doing` naming what that can have been.
  void Wait(const std::string& doing) const { driver().Check(driver().stream_wait(handle_), doing); }

 private:
  const ContextPtr context_;
  StreamHandle handle_ = nullptr;
};

// A moment of a queue.
class Event {
 public:
  explicit Event(ContextPtr context);
  ~Event();
  Event(Event&& other) noexcept
      : context_(std::move(other.context_)), handle_(std::exchange(other.handle_, nullptr)) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  Event& operator=(Event&&) = delete;

  void Record(const Queue& queue) const;
  // From `begin` to here, both recorded and passed.
  double SecondsSince(const Event& begin) const;

 private:
  ContextPtr context_;
  EventHandle handle_ = nullptr;
};

// Pinned memory of the process's, which the GPU copies from and to by itself. Zero-filled.
class HostBuffer {
 public:
  // Throws Error(kEnvironment) naming the size when memory is short.
  HostBuffer(ContextPtr context, size_t bytes);
  ~HostBuffer();
  HostBuffer(HostBuffer&& other) noexcept
      : context_(std::move(other.context_)), data_(std::exchange(other.data_, nullptr)) {}
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  HostBuffer& operator=(HostBuffer&&) = delete;

  void* data() const { return data_; }

 private:
  ContextPtr context_;
  void* data_ = nullptr;
};

// Zero-filled. Throws as Device::Allocate.
DeviceMemory AllocateZeros(const ContextPtr& context, size_t bytes);
// Memory that holds these; `name` is whose weights they are, for messages.
DeviceMemory AllocateWeights(const ContextPtr& context, std::span<const float> weights,
                             const std::string& name);

}  // namespace tilesmith::cuda
