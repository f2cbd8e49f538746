// Constants that follow from others alone, weights that a scale is folded into, say: made once where a model
// is prepared for one size of its inputs after another, which differ in nothing else.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "layouts/tensor.h"

namespace tilesmith {

using TensorPtr = std::shared_ptr<const Tensor>;

// What a tensor is derived from, as a key; nothing outside of preparations, where nobody asks. Large tensors
// count as the same only where they are the same object, small ones where they are equal.
class Derivation {
 public:
  // `what` names the formula, whose other arguments are all here.
  explicit Derivation(std::string_view what);

  Derivation& Add(TensorPtr tensor);  // or none
  template <std::ranges::contiguous_range Numbers>
  Derivation& Add(const Numbers& numbers) {
    return AddBytes(std::as_bytes(std::span(numbers)));
  }
  Derivation& Add(std::initializer_list<int64_t> numbers) {
    return Add(std::span(numbers.begin(), numbers.size()));
  }

 private:
  friend class DerivedTensors;
  Derivation& AddBytes(std::span<const std::byte> bytes);

  const bool wanted_;
  std::string key_;
  std::vector<TensorPtr> sources_;  // that the key has by their addresses
};

// One preparation at a time.
class DerivedTensors {
 public:
  // A preparation: while it lives, what this thread asks Derived() for is kept here. Behind it, what it did
  // not ask for goes.
  class Preparation {
   public:
    explicit Preparation(DerivedTensors& kept);
    ~Preparation();
    Preparation(const Preparation&) = delete;
    Preparation& operator=(const Preparation&) = delete;

   private:
    DerivedTensors &kept_, *const outer_;
  };

  TensorPtr Get(Derivation derivation, const std::function<TensorPtr()>& make);

 private:
  struct Kept {
    TensorPtr tensor;
    std::vector<TensorPtr> sources;  // so that no other tensor has their addresses
    int64_t used = 0;                // by which preparation
  };

  std::unordered_map<std::string, Kept> kept_;
  int64_t preparation_ = 0;
};

bool IsInPreparation();

// make(), or what it gave for an equal derivation in this thread's preparation or the one before; nobody
// keeps anything outside of preparations.
TensorPtr Derived(Derivation derivation, const std::function<TensorPtr()>& make);

}  // namespace tilesmith
