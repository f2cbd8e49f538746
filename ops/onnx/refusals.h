// What of a model cannot be had, told at once: tensors and nodes with the reason, those that are alike in one
// line.
#pragma once

#include <string>
#include <vector>

namespace tilesmith {

class Refusals {
 public:
  // A node, told with those of its op type. The reason may begin with `node "NAME" (TYPE): `.
  void AddNode(const std::string& op_type, const std::string& name, std::string reason);
  // A tensor, told with those that have the same reason, which may begin with `initializer "NAME": `.
  void AddTensor(const std::string& name, std::string reason);

  bool empty() const { return rows_.empty(); }
  // Throws Error(kBadModel) that begins with `source`, on one line where there is one reason.
  [[noreturn]] void Throw(const std::string& source) const;

 private:
  struct Row {
    std::string op_type, first, reason;  // the type is "" for tensors
    long count = 0;
  };
  void Add(Row row, bool same_reason);

  std::vector<Row> rows_;
  long hidden_ = 0;  // tensors of further reasons
};

}  // namespace tilesmith
