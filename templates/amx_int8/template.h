// Convolution of bytes, dense and of groups of more than 8 filters, by AMX: tiles of 16 positions x 64 input
// channels times 64 x 16 output channels, whose exact sums become bytes as those of the op do, bit for bit,
// between the products of the next ones. Original; input is copied as by amx_bf16.
#pragma once

#include "templates/base/conv_template.h"

namespace tilesmith {

const ConvTemplate& AmxInt8Template();

}  // namespace tilesmith
