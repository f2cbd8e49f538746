// Dense convolution, and of groups of more than 8 filters, in bf16 by AMX: tiles of 16 positions x 32 input
// channels times 32 x 16 output channels, summed in f32. A task copies the rows that it sees, with their
// padding, so that windows of neighbouring positions lie a fixed distance apart; 1x1 reads its input where it
// lies. Original; the copy with its padding is how oneDNN's brgemm convolutions do it, too.
#pragma once

#include "templates/base/conv_template.h"

namespace tilesmith {

const ConvTemplate& AmxBf16Template();

}  // namespace tilesmith
