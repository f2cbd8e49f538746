// What a team's threads throw, brought to the one that started them.
#pragma once

#include <atomic>
#include <exception>

namespace tilesmith {

// The first exception that any thread captured. Capture and raised are thread-safe.
class FirstError {
 public:
  bool raised() const { return raised_.load(std::memory_order_relaxed); }
  // Precondition: in a handler.
  void Capture() noexcept {
    if (!raised_.exchange(true)) error_ = std::current_exception();
  }
  // Precondition: the other threads are done.
  void Rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::atomic<bool> raised_{false};
  std::exception_ptr error_;
};

}  // namespace tilesmith
