#include "templates/cuda_device/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "layouts/base/error.h"

namespace tilesmith::cuda {

Context::Context(int ordinal) : driver_(LoadedDriver()) {
  driver_.Check(driver_.device_get(&device_, ordinal), fmt::format("GPU {}", ordinal));
  driver_.Check(driver_.retain_context(&context_, device_), fmt::format("opening GPU {}", ordinal));
  std::array<char, 256> text = {};
  driver_.Check(driver_.device_name(text.data(), static_cast<int>(text.size() - 1), device_), "a GPU's name");
  target_.device = kCudaDevice;
  target_.model = text.data();
  target_.cores = Attribute(kMultiprocessors);
  target_.l1d_bytes = Attribute(kSharedBytesOfBlock);
  target_.l2_bytes = Attribute(kL2Bytes);
  target_.compute = 10 * Attribute(kComputeMajor) + Attribute(kComputeMinor);
  text.fill(0);
  driver_.Check(driver_.device_bus_id(text.data(), static_cast<int>(text.size() - 1), device_),
                "a GPU's bus");
  bus_id_ = text.data();
}

int Context::Attribute(int attribute) const {
  int value = 0;
  driver_.Check(driver_.device_attribute(&value, attribute, device_), fmt::format("attribute {}", attribute));
  return value;
}

void Context::MakeCurrent() const {
  thread_local ContextHandle current = nullptr;
  if (current == context_) return;
  driver_.Check(driver_.set_context(context_), "a GPU's context");
  current = context_;
}

ContextPtr OpenContext() {
  static const ContextPtr context = std::make_shared<const Context>(0);
  return context;
}

Queue::Queue(ContextPtr context) : context_(std::move(context)) {
  context_->MakeCurrent();
  driver().Check(driver().stream_create(&handle_, kNonBlocking), "a stream");
}

Queue::~Queue() { driver().stream_destroy(handle_); }

Event::Event(ContextPtr context) : context_(std::move(context)) {
  context_->MakeCurrent();
  const Driver& driver = context_->driver();
  driver.Check(driver.event_create(&handle_, 0), "an event");
}

Event::~Event() {
  if (handle_ != nullptr) context_->driver().event_destroy(handle_);
}

void Event::Record(const Queue& queue) const {
  const Driver& driver = context_->driver();
  driver.Check(driver.event_record(handle_, queue.handle()), "an event");
}

double Event::SecondsSince(const Event& begin) const {
  const Driver& driver = context_->driver();
  float milliseconds = 0;
  driver.Check(driver.event_elapsed(&milliseconds, begin.handle_, handle_), "the time between events");
  return static_cast<double>(milliseconds) * 1e-3;
}

HostBuffer::HostBuffer(ContextPtr context, size_t bytes) : context_(std::move(context)) {
  context_->MakeCurrent();
  const Driver& driver = context_->driver();
  const size_t size = std::max<size_t>(bytes, 1);
  driver.Check(driver.allocate_host(&data_, size, 0), fmt::format("{} bytes of pinned memory", size));
  std::memset(data_, 0, size);
}

HostBuffer::~HostBuffer() {
  if (data_ == nullptr) return;
  context_->TryMakeCurrent();
  context_->driver().free_host(data_);
}

DeviceMemory AllocateZeros(const ContextPtr& context, size_t bytes) {
  context->MakeCurrent();
  const Driver& driver = context->driver();
  const size_t size = std::max<size_t>(bytes, 1);
  DevicePointer memory = 0;
  driver.Check(driver.allocate(&memory, size), fmt::format("{} bytes of a GPU's memory", size));
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  std::shared_ptr<void> owner(reinterpret_cast<void*>(memory), [context](void* data) {
    context->TryMakeCurrent();
    context->driver().free(Address(data));
  });
  const Queue queue(context);
  driver.Check(driver.fill(memory, 0, size, queue.handle()), "filling a GPU's memory");
  queue.Wait("filling a GPU's memory");
  return {std::move(owner), bytes};
}

DeviceMemory AllocateWeights(const ContextPtr& context, std::span<const float> weights,
                             const std::string& name) {
  const auto bytes = std::as_bytes(weights);
  DeviceMemory memory = AllocateZeros(context, bytes.size());
  const Queue queue(context);
  const Driver& driver = context->driver();
  driver.Check(driver.copy_in(Address(memory.data.get()), bytes.data(), bytes.size(), queue.handle()),
               "weights of " + name);
  queue.Wait("weights of " + name);
  return memory;
}

}  // namespace tilesmith::cuda
