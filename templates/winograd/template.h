// Winograd convolution, F(2 x 2), F(4 x 4) and F(6 x 6) for dense 3x3 convs of stride 1: 2.25, 4 and 5.06
// times fewer multiplications than the direct template, at the price of larger rounding errors and of
// transforms. With stride 2, tiles of 2, 3 and 4: 1.44, 1.65 and 1.78 times fewer.
#pragma once

#include "templates/base/conv_template.h"

namespace tilesmith {

// Name "winograd".
const ConvTemplate& WinogradTemplate();
// "winograd_bf16": the same with input, output or both stored in bf16. Products are in f32, or, of the
// smallest tile, whose errors grow least, in bf16 on CPUs with AVX-512 BF16.
const ConvTemplate& WinogradBf16Template();

}  // namespace tilesmith
