#include "layouts/derived_tensors.h"

#include <utility>

namespace tilesmith {
namespace {

thread_local DerivedTensors* in_preparation = nullptr;

}  // namespace

Derivation::Derivation(std::string_view what) : wanted_(in_preparation != nullptr), key_(what) {}

Derivation& Derivation::AddBytes(std::span<const std::byte> bytes) {
  if (!wanted_) return *this;
  const uint64_t count = bytes.size();
  key_.append(reinterpret_cast<const char*>(&count), sizeof(count));
  key_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return *this;
}

Derivation& Derivation::Add(TensorPtr tensor) {
  constexpr int64_t kMostSmallBytes = 16 << 10;
  if (!wanted_) return *this;
  if (tensor == nullptr) return Add({0});
  if (tensor->bytes() > kMostSmallBytes) {
    Add({1, reinterpret_cast<intptr_t>(tensor.get())});
    sources_.push_back(std::move(tensor));
    return *this;
  }
  Add({2});
  Add(tensor->shape());
  Add(tensor->layout().ToString());
  return Add(std::span<const std::byte>(tensor->raw(), static_cast<size_t>(tensor->bytes())));
}

DerivedTensors::Preparation::Preparation(DerivedTensors& kept)
    : kept_(kept), outer_(std::exchange(in_preparation, &kept)) {
  ++kept_.preparation_;
}

DerivedTensors::Preparation::~Preparation() {
  in_preparation = outer_;
  std::erase_if(kept_.kept_, [&](const auto& kept) { return kept.second.used < kept_.preparation_; });
}

TensorPtr DerivedTensors::Get(Derivation derivation, const std::function<TensorPtr()>& make) {
  if (const auto known = kept_.find(derivation.key_); known != kept_.end()) {
    known->second.used = preparation_;
    return known->second.tensor;
  }
  TensorPtr made = make();
  kept_.insert_or_assign(std::move(derivation.key_),
                         Kept{made, std::move(derivation.sources_), preparation_});
  return made;
}

bool IsInPreparation() { return in_preparation != nullptr; }

TensorPtr Derived(Derivation derivation, const std::function<TensorPtr()>& make) {
  return in_preparation ? in_preparation->Get(std::move(derivation), make) : make();
}

}  // namespace tilesmith
