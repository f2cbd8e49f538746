#include "templates/cuda_device/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

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
                                               size_t(image_bytes_), queue.handle()),
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
  explicit InProcess(InProcessKernel parts) : p_(std::move(parts)) {}

  int64_t Tasks(int) const override { return 1; }
  void Run(const KernelArgs&, int, TaskRange) const override { RunsOnDeviceOnly(p_.name); }
  bool OnlyQueues() const override { return false; }
  const std::string& name() const override { return p_.name; }

  void Enqueue(const KernelArgs& args, const Queue& queue) const override {
    queue.context().MakeCurrent();
    const Driver& driver = queue.driver();
    std::vector<Tensor> inputs;
    std::vector<InputView> views;
    inputs.reserve(p_.inputs.size());
    for (size_t i = 0; i < p_.inputs.size(); ++i) {
      Tensor& tensor = inputs.emplace_back(p_.inputs[i], p_.layouts[i]);
      views.push_back(tensor.input_view());
      ForEachImage(tensor, [&](int64_t n, size_t bytes) {
        driver.Check(driver.copy_out(tensor.output_view().image<std::byte>(n),
                                     Address(args.inputs[i].image<std::byte>(n)), bytes, queue.handle()),
                     p_.name);
      });
    }
    queue.Wait(p_.name);
    Tensor output(p_.output, p_.layout);
    AlignedBuffer scratch(static_cast<size_t>(p_.kernel->ScratchBytes(1)));
    RunKernel(*p_.kernel, {views, output.output_view(), scratch.data()}, 1);
    ForEachImage(output, [&](int64_t n, size_t bytes) {
      driver.Check(driver.copy_in(Address(args.output.image<std::byte>(n)),
                                  output.input_view().image<std::byte>(n), bytes, queue.handle()),
                   p_.name);
    });
    queue.Wait(p_.name);
  }

 private:
  template <typename Body>
  static void ForEachImage(const Tensor& tensor, const Body& body) {
    const int64_t images = tensor.shape().empty() ? 1 : tensor.shape()[0];
    const auto bytes = static_cast<size_t>(BatchBytes(tensor.shape(), tensor.layout()));
    for (int64_t n = 0; n < images && bytes > 0; ++n) body(n, bytes);
  }

  const InProcessKernel p_;
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
  const auto bytes = std::as_bytes(std::span(program.weights));
  weights_ = AllocateZeros(context, bytes.size());
  const Queue queue(context);
  context->driver().Check(
      context->driver().copy_in(Address(weights_.data.get()), bytes.data(), bytes.size(), queue.handle()),
      "weights of " + name_);
  queue.Wait("weights of " + name_);
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

std::unique_ptr<Kernel> RunInProcess(InProcessKernel parts) {
  return std::make_unique<InProcess>(std::move(parts));
}

}  // namespace tilesmith::cuda
