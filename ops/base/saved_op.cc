#include "ops/base/saved_op.h"

#include <fmt/format.h>

#include <algorithm>

#include "layouts/base/check.h"

namespace tilesmith {

namespace {

std::vector<SavedOp>::const_iterator FindSaved(const Op& op) {
  return std::ranges::find(SavedOps(), std::type_index(typeid(op)), &SavedOp::type);
}

}  // namespace

// Null is an empty name.
void Put(ByteWriter& writer, const OpPtr& op) {
  if (op == nullptr) return writer.Write(std::string());
  const auto found = FindSaved(*op);
  TILESMITH_CHECK(found != SavedOps().end(), "{} is not among the ops of its family", op->Signature());
  writer.Write(std::string(found->name));
  found->save(*op, writer);
}

void Get(ByteReader& reader, OpPtr& op) {
  op = nullptr;
  const auto name = reader.Read<std::string>();
  if (name.empty()) return;
  const auto found = std::ranges::find(SavedOps(), name, &SavedOp::name);
  if (found == SavedOps().end()) ByteReader::Refuse(fmt::format("there is no op \"{}\"", name));
  op = found->load(reader);
}

TensorPtr DerivedBy(const OpPtr& op, std::span<const TensorPtr> constants, const OpOfConstants& compute) {
  const auto make = [&] {
    std::vector<const Tensor*> tensors(constants.size());
    std::ranges::transform(constants, tensors.begin(), [](const TensorPtr& tensor) { return tensor.get(); });
    return std::make_shared<const Tensor>(compute(tensors));
  };
  if (!IsInPreparation() || FindSaved(*op) == SavedOps().end()) return make();
  DataWriter data, code;
  ByteWriter writer(&data, &code);
  writer.Write(op);
  if (data.bytes() > 0) return make();  // it has constants of its own, which the key would lack
  Derivation derivation("op of constants");
  derivation.Add(writer.bytes());
  for (const TensorPtr& constant : constants) derivation.Add(constant);
  return Derived(std::move(derivation), make);
}

}  // namespace tilesmith
