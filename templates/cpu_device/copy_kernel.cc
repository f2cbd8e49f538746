#include "templates/cpu_device/copy_kernel.h"

#include <algorithm>
#include <cstring>

namespace tilesmith {
namespace {

class CopyKernel : public Kernel {
 public:
  CopyKernel(int64_t images, int64_t image_floats)
      : images_(images),
        image_floats_(image_floats),
        chunks_((image_floats + kChunkFloats - 1) / kChunkFloats) {}

  int64_t Tasks(int) const override { return images_ * chunks_; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const InputView& input = args.inputs[0];
    for (int64_t task = range.begin; task < range.end;) {
      const int64_t image = task / chunks_;
      const int64_t end = std::min(range.end, (image + 1) * chunks_);
      const int64_t first = (task - image * chunks_) * kChunkFloats;
      const int64_t last = std::min((end - image * chunks_) * kChunkFloats, image_floats_);
      std::memcpy(args.output.data + image * args.output.batch_stride + first,
                  input.data + image * input.batch_stride + first, (last - first) * sizeof(float));
      task = end;
    }
  }

 private:
  static constexpr int64_t kChunkFloats = 1024;
  const int64_t images_, image_floats_, chunks_;
};

}  // namespace

std::unique_ptr<Kernel> MakeCopyKernel(int64_t images, int64_t image_floats) {
  return std::make_unique<CopyKernel>(images, image_floats);
}

}  // namespace tilesmith
