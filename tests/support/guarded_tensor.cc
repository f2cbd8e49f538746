#include "tests/support/guarded_tensor.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <new>

namespace tilesmith {
namespace {

constexpr unsigned char kCanary = 0xA5;

size_t PageBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

bool AllCanary(const unsigned char* begin, const unsigned char* end) {
  return std::all_of(begin, end, [](unsigned char byte) { return byte == kCanary; });
}

}  // namespace

GuardedTensor::GuardedTensor(int64_t size, Guard guard) : size_(size) {
  const size_t page = PageBytes();
  const size_t bytes = static_cast<size_t>(size) * sizeof(float);
  usable_bytes_ = (bytes + page - 1) / page * page;
  void* mapping =
      mmap(nullptr, usable_bytes_ + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  mapping_ = static_cast<unsigned char*>(mapping);
  usable_ = mapping_ + page;
  if (usable_bytes_ > 0 && mprotect(usable_, usable_bytes_, PROT_READ | PROT_WRITE) != 0) {
    munmap(mapping_, usable_bytes_ + 2 * page);
    throw std::bad_alloc();
  }
  std::fill_n(usable_, usable_bytes_, kCanary);
  data_ = reinterpret_cast<float*>(guard == Guard::kBefore ? usable_ : usable_ + usable_bytes_ - bytes);
  FillWithNan();
}

GuardedTensor::~GuardedTensor() { munmap(mapping_, usable_bytes_ + 2 * PageBytes()); }

void GuardedTensor::FillWithNan() { std::fill_n(data_, size_, std::numeric_limits<float>::quiet_NaN()); }

void GuardedTensor::MakeReadOnly() {
  if (usable_bytes_ > 0 && mprotect(usable_, usable_bytes_, PROT_READ) != 0) throw std::bad_alloc();
}

bool GuardedTensor::SlackIntact() const {
  return AllCanary(usable_, reinterpret_cast<const unsigned char*>(begin())) &&
         AllCanary(reinterpret_cast<const unsigned char*>(end()), usable_ + usable_bytes_);
}

}  // namespace tilesmith
