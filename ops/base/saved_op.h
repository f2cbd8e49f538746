// Ops as bytes (layouts/byte_stream.h): a name, and what the op's constructor takes.
//
// An op says that by Parameters(), a tuple in the constructor's order; its family lists it (op_list.cc).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <vector>

#include "layouts/byte_stream.h"
#include "layouts/derived_tensors.h"
#include "ops/base/op.h"

namespace tilesmith {

struct SavedOp {
  std::string_view name;  // stable: stored in files
  std::type_index type;
  void (*save)(const Op& op, ByteWriter& writer);
  OpPtr (*load)(ByteReader& reader);
};

template <typename T>
SavedOp Saved(std::string_view name) {
  const auto save = [](const Op& op, ByteWriter& writer) {
    std::apply([&](const auto&... parameters) { writer.WriteAll(parameters...); },
               static_cast<const T&>(op).Parameters());
  };
  const auto load = [](ByteReader& reader) -> OpPtr {
    const auto decay = []<typename... Types>(const std::tuple<Types...>&) {
      return std::tuple<std::remove_cvref_t<Types>...>();
    };
    using Parameters = decltype(decay(std::declval<const T&>().Parameters()));
    Parameters parameters;
    std::apply([&](auto&... members) { (reader.Read(members), ...); }, parameters);
    return std::apply([](auto&... members) { return std::make_shared<const T>(std::move(members)...); },
                      parameters);
  };
  return {name, typeid(T), save, load};
}

// Every op that a network runs; assembled in op_list.cc.
const std::vector<SavedOp>& SavedOps();

void Put(ByteWriter& writer, const OpPtr& op);
void Get(ByteReader& reader, OpPtr& op);

// compute(constants), which is what the op makes of them, or what it gave before (layouts/derived_tensors).
using OpOfConstants = std::function<Tensor(std::span<const Tensor* const> constants)>;
TensorPtr DerivedBy(const OpPtr& op, std::span<const TensorPtr> constants, const OpOfConstants& compute);

}  // namespace tilesmith
