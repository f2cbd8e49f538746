// The transforms between layouts of different types (transform.h).
#pragma once

#include <memory>

#include "layouts/base/kernel.h"
#include "layouts/base/target.h"
#include "layouts/transform_plan.h"

namespace tilesmith {

// Whether there are transforms between the two types: they are f32 and bf16.
bool AreConverted(DataType from, DataType to);
// Precondition: AreConverted(from, to).
std::unique_ptr<Kernel> MakeConvertKernel(MovePlan plan, DataType from, const Target& cpu);

}  // namespace tilesmith
