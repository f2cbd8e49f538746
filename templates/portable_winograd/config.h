// Winograd's F(4 x 4, 3 x 3) in plain C++, in any pair of layouts: what makes outputs that are reproducible
// the same on CPUs without generated code, too. Every operation is that of the Winograd template's
// transforms (templates/winograd/code/tile_transforms.h), in their order.
#pragma once

#include <cstdint>
#include <memory>

#include "layouts/base/target.h"
#include "layouts/layout.h"
#include "ops/conv/workload.h"
#include "templates/base/conv_template.h"

namespace tilesmith {
namespace portable_winograd {

struct Schedule {
  ConvWorkload workload;
  Layout in, out;
  int64_t tile = 4;  // outputs of a tile along each axis
};

// A task is a row of tiles of an image.
TaskGrid GridOf(const Schedule& schedule);
LoopFeatures FeaturesOf(const Schedule& schedule);
LoopNest NestOf(const Schedule& schedule);
std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights);

}  // namespace portable_winograd

const ConvTemplate& PortableWinogradTemplate();
}  // namespace tilesmith
