// The worked example of a template: plain loops with three knobs. Registered nowhere; the tests that all
// templates go through take it as one more.
#pragma once

#include "templates/base/conv_template.h"

namespace tilesmith {

const ConvTemplate& ExampleTemplate();

}  // namespace tilesmith
