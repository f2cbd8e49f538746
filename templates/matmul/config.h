// Products of two matrices that the network computes, or of batches of them: plain layout, register tiles of
// any size, either side packed or read where it is. The kernel is that of ops/dense, which is built once for
// each instruction set, not generated: a config is a MatMulSchedule. Source: original.
//
// The matmul template's knobs: those of a MatMulSchedule (ops/dense/matmul.h), one by one.
#pragma once

#include <memory>

#include "layouts/base/split.h"
#include "layouts/base/target.h"
#include "ops/dense/matmul.h"
#include "templates/base/conv_template.h"

namespace tilesmith {
namespace matmul {

MatMulSchedule ReadConfig(const Config& config);

// The matmul template's loop nest as numbers. Pure arithmetic.
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

}  // namespace matmul

const ConvTemplate& MatMulTemplate();

// What a config of this template says, for a product that reads and writes in a network's own strides.
MatMulSchedule MatMulScheduleOf(const Config& config);
}  // namespace tilesmith
