// The sizes of inputs that a model is prepared for: compiled when an input of a new size comes, and kept for
// its sessions.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "graph_tuner/executor/compiled_network.h"
#include "tools/api/tilesmith.h"

namespace tilesmith {

using InputShapes = std::vector<Shape>;  // of all inputs, in the model's order

// A network compiled for one size of its inputs. Immutable.
struct PreparedSize {
  InputShapes shapes;
  std::shared_ptr<const CompiledNetwork> network;
  std::vector<TensorInfo> inputs, outputs;
  double predicted_seconds = 0;
  // What weights, activations, inputs and outputs take: of the first size, or beside it, whose weights this
  // one may share. PreparedSizes counts them.
  size_t bytes = 0;
};
using PreparedSizePtr = std::shared_ptr<const PreparedSize>;

// How many sizes are kept beside the first, and in how much memory all together.
struct SizesLimit {
  size_t count = 0;
  size_t bytes = 0;
};

// A bounded number of values by the sizes they are for; the least recently used goes first.
template <typename Value>
class RecentlyUsed {
 public:
  // Null where there is none.
  Value* Find(const InputShapes& shapes) {
    for (auto at = values_.begin(); at != values_.end(); ++at) {
      if (at->first != shapes) continue;
      values_.splice(values_.begin(), values_, at);
      return &values_.front().second;
    }
    return nullptr;
  }
  Value& Add(InputShapes shapes, Value value) {
    values_.emplace_front(std::move(shapes), std::move(value));
    return values_.front().second;
  }
  // Drops the least recently used ones until one more, which with the first size takes `needed` bytes, is
  // within the limit; `bytes_of(value)` is what a kept one takes.
  template <typename BytesOf>
  void MakeRoom(const SizesLimit& limit, size_t needed, const BytesOf& bytes_of) {
    for (const auto& [shapes, value] : values_) needed += bytes_of(value);
    while (!values_.empty() && (values_.size() >= limit.count || needed > limit.bytes)) {
      needed -= bytes_of(values_.back().second);
      values_.pop_back();
    }
  }
  template <typename Body>
  void ForEach(const Body& body) const {
    for (const auto& [shapes, value] : values_) body(value);
  }

 private:
  std::list<std::pair<InputShapes, Value>> values_;
};

// Makes a size that is not there; `first`: there is none at all.
using PrepareSize = std::function<PreparedSize(const InputShapes&, bool first)>;

// Thread-safe. Compiling a size holds others up that want one that is not known to them yet.
class PreparedSizes {
 public:
  // `first` is not there where that is the size of the first inputs that come; `prepare` is null where the
  // model takes inputs of one size only.
  PreparedSizes(std::optional<PreparedSize> first, SizesLimit limit, PrepareSize prepare);

  // Null until there is one; the same from then on.
  const PreparedSizePtr& first() const {
    static const PreparedSizePtr kNone;
    return has_first_.load(std::memory_order_acquire) ? first_ : kNone;
  }
  const SizesLimit& limit() const { return limit_; }
  // Of the sizes that are prepared now; what they share counts once.
  size_t PackedWeightBytes() const;
  // Where there is no first size yet, this becomes it. Throws Error(kUsage) where other sizes than the first
  // are not taken, LimitError where it needs more memory than the limit leaves beside the first, and what
  // preparing throws.
  PreparedSizePtr For(const InputShapes& shapes);
  // The same, prepared by `make` where it is not there.
  PreparedSizePtr For(const InputShapes& shapes, const std::function<PreparedSize()>& make);

 private:
  PreparedSizePtr first_;  // is written before has_first_ and not behind that
  std::atomic<bool> has_first_;
  const SizesLimit limit_;
  PrepareSize prepare_;
  mutable std::mutex mutex_;
  RecentlyUsed<PreparedSizePtr> others_;
};

}  // namespace tilesmith
