#include "ops/base/saved_op.h"

#include <fmt/format.h>

#include <algorithm>

#include "layouts/base/check.h"

namespace tilesmith {

// Null is an empty name.
void Put(ByteWriter& writer, const OpPtr& op) {
  if (op == nullptr) return writer.Write(std::string());
  const Op& saved = *op;
  const auto found = std::ranges::find(SavedOps(), std::type_index(typeid(saved)), &SavedOp::type);
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

}  // namespace tilesmith
