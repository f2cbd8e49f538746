// Kernels of a device on tensors of the process, in guarded memory of the device's.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "templates/device/device.h"

namespace tilesmith {

// What memory is full of beforehand: a NaN of every type that has them.
constexpr std::byte kUnwritten{0xff};

// Memory of the device for a tensor whose images lie `gap` bytes further apart than they need to.
struct There {
  There(const Device& device, const Tensor& tensor, int64_t gap)
      : images(tensor.shape().empty() ? 1 : tensor.shape()[0]),
        bytes(BatchBytes(tensor.shape(), tensor.layout())),
        stride(bytes + gap),
        memory(device.Allocate(static_cast<size_t>(images * stride))) {
    const std::vector<std::byte> unwritten(memory.bytes, kUnwritten);
    device.Upload(unwritten.data(), memory.data.get(), memory.bytes);
    for (int64_t n = 0; n < images; ++n)
      device.Upload(tensor.input_view().image<std::byte>(n), At(n), static_cast<size_t>(bytes));
  }
  std::byte* At(int64_t n) const { return static_cast<std::byte*>(memory.data.get()) + n * stride; }

  int64_t images, bytes, stride;
  DeviceMemory memory;
};

// Runs a kernel on the device, and brings back what it wrote; checks that nothing else was.
inline Tensor RunThere(const Device& device, const Kernel& kernel, const std::vector<Tensor>& inputs,
                       Tensor result) {
  std::vector<There> there;
  Launch launch{.kernel = &kernel, .inputs = {}, .output = {}};
  for (const Tensor& input : inputs) {
    there.emplace_back(device, input, 64);
    launch.inputs.push_back({there.back().At(0), there.back().stride});
  }
  std::fill_n(result.raw(), result.bytes(), kUnwritten);
  const There output(device, result, 128);
  launch.output = {output.At(0), output.stride};
  const DeviceMemory scratch = device.Allocate(static_cast<size_t>(kernel.ScratchBytes(1)));
  launch.scratch = scratch.data.get();
  std::vector<double> seconds(1);
  device.NewStream(nullptr)->Run({&launch, 1}, seconds);
  EXPECT_GT(seconds[0], 0);
  std::vector<std::byte> image(static_cast<size_t>(output.stride));
  for (int64_t n = 0; n < output.images; ++n) {
    device.Download(output.At(n), image.data(), image.size());
    std::memcpy(result.output_view().image<std::byte>(n), image.data(), static_cast<size_t>(output.bytes));
    EXPECT_TRUE(std::all_of(image.begin() + output.bytes, image.end(), [](std::byte byte) {
      return byte == kUnwritten;
    })) << "wrote between images";
  }
  return result;
}

}  // namespace tilesmith
