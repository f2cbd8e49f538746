// How an image is sampled between its pixels and outside.
#pragma once

namespace tilesmith {

enum class SampleMode { kLinear, kNearest, kCubic };
enum class SamplePadding { kZeros, kBorder, kReflection };

}  // namespace tilesmith
