// The matmul template's loop nest as numbers. Pure arithmetic.
#pragma once

#include <memory>

#include "layouts/base/split.h"
#include "ops/dense/matmul.h"
#include "templates/base/conv_template.h"

namespace tilesmith::matmul {

struct Schedule {
  ConvWorkload workload;
  MatMulSchedule config;
  int vector_floats = 8;

  int64_t row_panels() const;
  int64_t column_panels() const;
};

// A task computes a panel of one product. A network's tensors have axes of their own, so that nobody can say
// where it lies in the output.
TaskGrid GridOf(const Schedule& schedule);
LoopFeatures FeaturesOf(const Schedule& schedule);
LoopNest NestOf(const Schedule& schedule);

// For products whose matrices lie one behind the other. KernelArgs.inputs: the left side, the right side.
std::unique_ptr<ConvKernel> BuildKernel(const Schedule& schedule, const Target& cpu, const ConvWeights&);

}  // namespace tilesmith::matmul
