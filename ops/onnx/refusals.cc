#include "ops/onnx/refusals.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "layouts/base/error.h"

namespace tilesmith {
namespace {

// A damaged file may have a reason of its own for each of thousands of tensors.
constexpr long kMostReasonsOfTensors = 8;

void DropPrefix(const std::string& prefix, std::string& reason) {
  if (reason.starts_with(prefix)) reason.erase(0, prefix.size());
}

}  // namespace

void Refusals::Add(Row row, bool same_reason) {
  const auto found = std::ranges::find_if(rows_, [&](const Row& known) {
    return known.op_type == row.op_type && (!same_reason || known.reason == row.reason);
  });
  if (found != rows_.end()) {
    ++found->count;
  } else if (row.op_type.empty() && std::ranges::count(rows_, "", &Row::op_type) >= kMostReasonsOfTensors) {
    ++hidden_;
  } else {
    row.count = 1;
    rows_.push_back(std::move(row));
  }
}

void Refusals::AddNode(const std::string& op_type, const std::string& name, std::string reason) {
  DropPrefix(fmt::format("node \"{}\" ({}): ", name, op_type), reason);
  Add({op_type, name, std::move(reason)}, false);
}

void Refusals::AddTensor(const std::string& name, std::string reason) {
  DropPrefix(fmt::format("initializer \"{}\": ", name), reason);
  Add({"", name, std::move(reason)}, true);
}

void Refusals::Throw(const std::string& source) const {
  std::vector<std::string> lines;
  lines.reserve(rows_.size());
  for (const Row& row : rows_) {
    const bool tensor = row.op_type.empty();
    const std::string kind = tensor ? "initializer" : "node";
    const std::string which = row.count == 1
                                  ? fmt::format("{} \"{}\"", kind, row.first)
                                  : fmt::format("{} {}s, the first \"{}\"", row.count, kind, row.first);
    lines.push_back(tensor ? fmt::format("{}: {}", which, row.reason)
                           : fmt::format("{} ({}): {}", row.op_type, which, row.reason));
  }
  if (hidden_ > 0) lines.push_back(fmt::format("and {} more initializers", hidden_));
  throw Error(ErrorCode::kBadModel, lines.size() == 1
                                        ? fmt::format("{}: not supported: {}", source, lines[0])
                                        : fmt::format("{}: {} things are not supported:\n  {}", source,
                                                      lines.size(), fmt::join(lines, "\n  ")));
}

}  // namespace tilesmith
