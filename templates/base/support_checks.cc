#include "templates/base/support_checks.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilesmith {

Support FitsDisplacements(const ConvWorkload& w, int64_t padding_channels) {
  constexpr double kMaxImageBytes = 1 << 30;
  // How far an axis of the input is stepped over at once; in floating point, where it cannot overflow.
  const auto reach = [](int64_t size, int64_t kernel, int64_t dilation, int64_t stride) {
    const double extent = static_cast<double>(kernel - 1) * static_cast<double>(dilation + 1) + 1;
    return std::max({static_cast<double>(size), extent, static_cast<double>(stride)});
  };
  const double input = reach(w.ih, w.kh, w.dh, w.sh) * reach(w.iw, w.kw, w.dw, w.sw) *
                       static_cast<double>(w.ic + padding_channels);
  const double output =
      static_cast<double>(w.oh) * static_cast<double>(w.ow) * static_cast<double>(w.oc + padding_channels);
  if (std::max(input, output) * sizeof(float) > kMaxImageBytes) {
    return Support::No(fmt::format("an image, or a kernel's reach over one, larger than {:.0f} MiB",
                                   kMaxImageBytes / (1 << 20)));
  }
  return w.before.empty() ? Support::Yes() : FitsDisplacements(w.before[0], padding_channels);
}

Support HasValidDefault(const ConfigSpace& space, const Config& preset) {
  const std::string reason = space.WhyInvalid(preset);
  return reason.empty() ? Support::Yes() : Support::No("even its default would need " + reason);
}

}  // namespace tilesmith
