#include "templates/cpu_device/copy_kernel.h"

#include <algorithm>
#include <cstring>

#include "layouts/base/sizes.h"

namespace tilesmith {
namespace {

class CopyKernel : public Kernel {
 public:
  CopyKernel(int64_t images, int64_t image_bytes)
      : images_(images), image_bytes_(image_bytes), chunks_(CeilDiv(image_bytes, kChunkBytes)) {}

  int64_t Tasks(int) const override { return images_ * chunks_; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const InputView& input = args.inputs[0];
    for (int64_t task = range.begin; task < range.end;) {
      const int64_t image = task / chunks_;
      const int64_t end = std::min(range.end, (image + 1) * chunks_);
      const int64_t first = (task - image * chunks_) * kChunkBytes;
      const int64_t last = std::min((end - image * chunks_) * kChunkBytes, image_bytes_);
      std::memcpy(args.output.image<std::byte>(image) + first, input.image<std::byte>(image) + first,
                  last - first);
      task = end;
    }
  }

 private:
  static constexpr int64_t kChunkBytes = 4096;
  const int64_t images_, image_bytes_, chunks_;
};

}  // namespace

std::unique_ptr<Kernel> MakeCopyKernel(int64_t images, int64_t image_bytes) {
  return std::make_unique<CopyKernel>(images, image_bytes);
}

}  // namespace tilesmith
