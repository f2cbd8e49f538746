// Timing of a kernel that is not a conv: short, since there are hundreds of them in a network.
#pragma once

#include <span>

#include "layouts/tensor.h"
#include "templates/device/device.h"

namespace tilesmith {

// Runs the kernel, before each run inputs and output being in the state their producers leave them in
// (Device::AfterProducers): two runs to warm up, then up to 40 samples within about 6 ms, at
// least 3. The answer is the lower quartile: noise only ever adds, and the minimum of few samples depends on
// their number. A kernel so slow that its first run takes more than 50 ms is charged that run. Must not run
// while anything else measures.
double TimeKernel(const Device& device, const Kernel& kernel, std::span<Tensor* const> inputs,
                  Tensor& output);

// One run, for kernels too slow to deserve more.
double TimeOnce(const Device& device, const Kernel& kernel, std::span<Tensor* const> inputs, Tensor& output);

// Values that are neither zero nor denormal, the same every time; padding stays zero.
Tensor TimingInput(const Shape& shape, const Layout& layout);

}  // namespace tilesmith
