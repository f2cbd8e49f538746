// The text of CUDA programs: constants, which stand for shapes and knobs, in front of what
// templates/cuda/kernels has, so that a compiler sees every loop's length.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ops/conv/workload.h"

namespace tilesmith::cuda {

// A file of templates/cuda/kernels, "" when there is none of that name.
std::string_view KernelText(std::string_view name);

class ProgramText {
 public:
  // With the prelude.
  ProgramText();

  // What follows is in a namespace of that name, up to End.
  ProgramText& Begin(std::string_view name);
  ProgramText& End();
  ProgramText& Constant(std::string_view name, int64_t value);
  // For the preprocessor, until End.
  ProgramText& Macro(std::string_view name, int64_t value);
  // A function of that name without arguments, exact to the bit.
  ProgramText& Float(std::string_view name, float value);
  ProgramText& Line(std::string_view text);
  // A file of templates/cuda/kernels. Precondition: it exists.
  ProgramText& File(std::string_view name);
  // What finish.cu needs, and finish.cu.
  ProgramText& Activate(const Activation& activation);

  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
  std::string macros_;  // to be undefined
};

// Shapes of a convolution as conv.cu and those that include it name them, channels and filters of one group,
// dilation as the distance of taps; the output's type, conv.cu, and what stands behind a sum: finish.cu and
// post_ops.cu, or requantize.cu where the workload is of bytes. The bias, or what that has instead, lies
// `bias_at` floats into the weights.
void AddConv(ProgramText& text, const ConvWorkload& workload, const Layout& in, const Layout& out,
             int64_t bias_at);

}  // namespace tilesmith::cuda
