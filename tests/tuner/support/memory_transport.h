// A transport between two threads, or from a script, that lies in memory.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "layouts/measure/clock.h"
#include "tuner/measure/transport.h"

namespace tilesmith {

// Messages one way. Thread-safe.
class MemoryQueue {
 public:
  bool Put(std::string message) {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    messages_.push_back(std::move(message));
    changed_.notify_all();
    return true;
  }
  void Close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  Transport::Receipt Take(std::string& message, double deadline) {
    std::unique_lock lock(mutex_);
    const auto is_over = [&] { return !messages_.empty() || closed_; };
    if (deadline == Transport::kNever) {
      changed_.wait(lock, is_over);
    } else if (!changed_.wait_for(lock, std::chrono::duration<double>(deadline - NowSeconds()), is_over)) {
      return Transport::Receipt::kTimeout;
    }
    if (messages_.empty()) return Transport::Receipt::kEnd;
    message = std::move(messages_.front());
    messages_.pop_front();
    return Transport::Receipt::kMessage;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> messages_;
  bool closed_ = false;
};

// One end; the other one has the queues the other way round.
class MemoryTransport : public Transport {
 public:
  MemoryTransport(std::shared_ptr<MemoryQueue> in, std::shared_ptr<MemoryQueue> out)
      : in_(std::move(in)), out_(std::move(out)) {}
  Receipt Receive(std::string& message, double deadline) override { return in_->Take(message, deadline); }
  bool Send(const std::string& message) override { return out_->Put(message); }

 private:
  std::shared_ptr<MemoryQueue> in_, out_;
};

}  // namespace tilesmith
