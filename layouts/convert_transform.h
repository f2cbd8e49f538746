// The transforms between layouts of different types (transform.h).
#pragma once

#include <memory>

#include "layouts/base/kernel.h"
#include "layouts/base/target.h"
#include "layouts/transform_plan.h"

namespace tilesmith {

// Whether there are transforms between the two types: one is f32, the other f16 or bf16.
bool AreConverted(DataType from, DataType to);

struct TypePair {
  DataType from, to;
};
// Precondition: AreConverted(types.from, types.to).
std::unique_ptr<Kernel> MakeConvertKernel(MovePlan plan, TypePair types, const Target& cpu);

}  // namespace tilesmith
