#include "templates/cuda_device/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "layouts/base/check.h"
#include "layouts/base/thread_team.h"

namespace tilesmith::cuda {
namespace {

[[noreturn]] void RunsOnDeviceOnly(const std::string& name) {
  TILESMITH_CHECK(false, "{} runs on a CUDA device only", name);
}

class DeviceConv final : public ConvKernel, public Queued {
 public:
  DeviceConv(const ContextPtr& context, std::unique_ptr<ConvKernel> built, std::string name)
      : built_(std::move(built)),
        program_(context, dynamic_cast<const CudaConv&>(*built_).program(), std::move(name)) {}

  int64_t Tasks(int) const override { return 1; }
  void Run(const KernelArgs&, int, TaskRange) const override { RunsOnDeviceOnly(name()); }
  int64_t ScratchBytes(int threads) const override { return built_->ScratchBytes(threads); }
  std::span<const std::byte> PackedWeights() const override { return built_->PackedWeights(); }
  std::vector<CodeBlob> Code() const override { return built_->Code(); }
  void Enqueue(const KernelArgs& args, const Queue& queue) const override { program_.Enqueue(args, queue); }
  const std::string& name() const override { return program_.name(); }

 private:
  const std::unique_ptr<ConvKernel> built_;
  const LoadedProgram program_;
};

class DeviceOp final : public Kernel, public Queued {
 public:
  DeviceOp(const ContextPtr& context, const CudaProgram& program)
      : scratch_bytes_(program.scratch_bytes), program_(context, program, program.name) {}

  int64_t Tasks(int) const override { return 1; }
  void Run(const KernelArgs&, int, TaskRange) const override { RunsOnDeviceOnly(name()); }
  int64_t ScratchBytes(int) const override { return scratch_bytes_; }
  void Enqueue(const KernelArgs& args, const Queue& queue) const override { program_.Enqueue(args, queue); }
  const std::string& name() const override { return program_.name(); }

 private:
  const int64_t scratch_bytes_;
  const LoadedProgram program_;
};

class DeviceCopy final : public Kernel, public Queued {
 public:
  DeviceCopy(int64_t images, int64_t image_bytes) : images_(images), image_bytes_(image_bytes) {}

  int64_t Tasks(int) const override { return 1; }
  void Run(const KernelArgs&, int, TaskRange) const override { RunsOnDeviceOnly(name_); }
  void Enqueue(const KernelArgs& args, const Queue& queue) const override {
    queue.context().MakeCurrent();
    for (int64_t n = 0; n < images_ && image_bytes_ > 0; ++n) {
      queue.driver().Check(queue.driver().copy(Address(args.output.image<std::byte>(n)),
                                               Address(args.inputs[0].image<std::byte>(n)),
                                               static_cast<size_t>(image_bytes_), queue.handle()),
                           name_);
    }
  }
  const std::string& name() const override { return name_; }

 private:
  const int64_t images_, image_bytes_;
  const std::string name_ = "a copy";
};

class InProcess final : public Kernel, public Queued {
 public:
  InProcess(const ContextPtr& context, InProcessKernel parts)
      : p_(std::move(parts)),
        scratch_(static_cast<size_t>(p_.kernel->ScratchBytes(1))),
        output_(context, p_.output, p_.layout) {
    for (size_t i = 0; i < p_.inputs.size(); ++i) inputs_.emplace_back(context, p_.inputs[i], p_.layouts[i]);
  }

  int64_t Tasks(int) const override { return 1; }
  void Run(const KernelArgs&, int, TaskRange) const override { RunsOnDeviceOnly(p_.name); }
  bool OnlyQueues() const override { return false; }
  const std::string& name() const override { return p_.name; }

  void Enqueue(const KernelArgs& args, const Queue& queue) const override {
    const std::lock_guard lock(mutex_);
    queue.context().MakeCurrent();
    const Driver& driver = queue.driver();
    std::vector<InputView> views;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Here& here = inputs_[i];
      views.push_back({here.memory.data(), here.image_bytes});
      for (int64_t n = 0; n < here.images; ++n) {
        driver.Check(driver.copy_out(here.Image(n), Address(args.inputs[i].image<std::byte>(n)),
                                     static_cast<size_t>(here.image_bytes), queue.handle()),
                     p_.name);
      }
    }
    queue.Wait(p_.name);
    RunKernel(*p_.kernel, {views, {output_.memory.data(), output_.image_bytes}, scratch_.data()}, 1);
    for (int64_t n = 0; n < output_.images; ++n) {
      driver.Check(driver.copy_in(Address(args.output.image<std::byte>(n)), output_.Image(n),
                                  static_cast<size_t>(output_.image_bytes), queue.handle()),
                   p_.name);
    }
    queue.Wait(p_.name);
  }

 private:
  // A tensor in pinned memory; no images where they are empty.
  struct Here {
    Here(const ContextPtr& context, const Shape& shape, const Layout& layout)
        : image_bytes(BatchBytes(shape, layout)),
          images(image_bytes == 0 ? 0
                 : shape.empty()  ? 1
                                  : shape[0]),
          memory(context, static_cast<size_t>(image_bytes * images)) {}
    std::byte* Image(int64_t n) const { return static_cast<std::byte*>(memory.data()) + n * image_bytes; }

    int64_t image_bytes, images;
    HostBuffer memory;
  };

  const InProcessKernel p_;
  mutable std::mutex mutex_;  // of what is below
  AlignedBuffer scratch_;
  std::vector<Here> inputs_;
  Here output_;
};

}  // namespace

Queued::Queued()
    : id_([] {
        static std::atomic<uint64_t> last{0};
        return ++last;
      }()) {}

const Queued& AsQueued(const Kernel& kernel) {
  const auto* queued = dynamic_cast<const Queued*>(&kernel);
  TILESMITH_CHECK(queued != nullptr, "a kernel of another device");
  return *queued;
}

LoadedProgram::LoadedProgram(const ContextPtr& context, const CudaProgram& program, std::string name)
    : name_(std::move(name)),
      launches_(program.launches),
      input_alignment_(program.input_alignment),
      output_alignment_(program.output_alignment),
      module_(CompiledModule(context, program.text, name_)) {
  for (const CudaLaunch& launch : launches_)
    functions_.push_back(module_->Function(launch.function, launch.shared_bytes));
  weights_ = AllocateWeights(context, program.weights, name_);
}

void LoadedProgram::CheckAlignment(const KernelArgs& args) const {
  const auto check = [&](const void* data, int64_t stride, int64_t alignment) {
    TILESMITH_CHECK(Address(data) % alignment == 0 && stride % alignment == 0,
                    "{}: a tensor that is not aligned to {} bytes", name_, alignment);
  };
  check(args.inputs[0].data, args.inputs[0].batch_stride, input_alignment_);
  check(args.output.data, args.output.batch_stride, output_alignment_);
}

void LoadedProgram::Enqueue(const KernelArgs& args, const Queue& queue) const {
  CheckAlignment(args);
  queue.context().MakeCurrent();
  for (size_t i = 0; i < launches_.size(); ++i) {
    const CudaLaunch& launch = launches_[i];
    if (std::ranges::find(launch.grid, 0) != launch.grid.end()) continue;
    CudaArguments arguments = ArgumentsOf(launch, args, weights_.data.get());
    void* pointers[] = {&arguments};
    const auto grid = [&](int axis) { return static_cast<unsigned>(launch.grid[axis]); };
    queue.driver().Check(
        queue.driver().launch(functions_[i], grid(0), grid(1), grid(2), static_cast<unsigned>(launch.threads),
                              1, 1, static_cast<unsigned>(launch.shared_bytes), queue.handle(), pointers,
                              nullptr),
        fmt::format("launching {} of {}", launch.function, name_));
  }
}

std::unique_ptr<ConvKernel> LoadConv(const ContextPtr& context, std::unique_ptr<ConvKernel> built,
                                     std::string name) {
  return std::make_unique<DeviceConv>(context, std::move(built), std::move(name));
}

std::unique_ptr<Kernel> LoadOp(const ContextPtr& context, const CudaProgram& program) {
  return std::make_unique<DeviceOp>(context, program);
}

std::unique_ptr<Kernel> MakeDeviceCopy(int64_t images, int64_t image_bytes) {
  return std::make_unique<DeviceCopy>(images, image_bytes);
}

std::unique_ptr<Kernel> RunInProcess(const ContextPtr& context, InProcessKernel parts) {
  return std::make_unique<InProcess>(context, std::move(parts));
}

}  // namespace tilesmith::cuda
