// A network as a model file lists it, before any of it is interpreted: what BuildNetwork makes ops of.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ops/base/op_registry.h"

namespace tilesmith {

struct ListedNode {
  std::string name;  // of its output as well
  std::string op_type;
  std::map<std::string, Attribute, std::less<>> attributes;
  std::vector<std::string> inputs;                       // names of graph inputs and nodes
  std::vector<std::shared_ptr<const Tensor>> constants;  // inputs that follow these
};

struct ModelListing {
  std::string name;
  int64_t opset = 13;
  std::vector<std::pair<std::string, Shape>> inputs;
  std::vector<ListedNode> nodes = {};
  std::vector<std::pair<std::string, Shape>> outputs;
};

}  // namespace tilesmith
