// The end of a network whose tensors have sizes that depend on values: what follows a NonMaxSuppression, say.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "layouts/tensor.h"
#include "ops/base/op.h"

namespace tilesmith {

class ByteReader;
class ByteWriter;

// A network with a tail is a graph of fixed sizes, whose outputs are what the tail reads, and then the tail,
// which computes the model's outputs from them. Immutable.
class Tail {
 public:
  virtual ~Tail() = default;
  // The names of the model's outputs, in its order.
  virtual const std::vector<std::string>& outputs() const = 0;
  // How many nodes the tail consists of, for reports.
  virtual size_t nodes() const = 0;
  // The model's outputs in their true sizes, from those of the graph, in its order, in plain layout. Ops run
  // by their kernels on `machine`, those that have none (without a machine all of them) through their
  // references. Throws Error(kBadModel) naming the node where values do not fit. Thread-safe.
  virtual std::vector<Tensor> Run(std::span<const Tensor* const> values, const OpMachine* machine) const = 0;
  // For Get.
  virtual void Save(ByteWriter& writer) const = 0;
};

using TailPtr = std::shared_ptr<const Tail>;

// As layouts/byte_stream.h wants them; it may be null.
void Put(ByteWriter& writer, const TailPtr& tail);
void Get(ByteReader& reader, TailPtr& tail);

}  // namespace tilesmith
