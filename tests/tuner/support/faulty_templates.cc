#include "tests/tuner/support/faulty_templates.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "templates/portable/config.h"

namespace tilesmith {
namespace {

[[noreturn]] void HangForever() {
  for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}

[[noreturn]] void LoopForever() {
  for (volatile unsigned i = 0;;) i = i + 1;
}

class FaultyKernel : public ConvKernel {
 public:
  FaultyKernel(Fault fault, const ConvWorkload& workload, std::unique_ptr<ConvKernel> conv)
      : fault_(fault), workload_(workload), conv_(std::move(conv)) {}

  int64_t Tasks(int stage) const override { return conv_->Tasks(stage); }
  int64_t ScratchBytes(int threads) const override { return conv_->ScratchBytes(threads); }
  std::span<const std::byte> PackedWeights() const override { return conv_->PackedWeights(); }

  void Run(const KernelArgs& args, int stage, TaskRange range) const override {
    if (fault_ == Fault::kWritesNothing) return;
    conv_->Run(args, stage, range);
    // Once, when all of the output is written: a thread that is late would write over what is spoilt.
    const int64_t tasks = range.end - range.begin, all = Tasks(stage);
    if (done_.fetch_add(tasks) + tasks < all) return;
    done_ = 0;
    Spoil(args.output.image<float>(0));
  }

 private:
  void Spoil(float* output) const {
    const Shape shape = workload_.output_shape();
    const Layout layout = PortableTemplate().Layouts(workload_, conv_config_).out;
    switch (fault_) {
      case Fault::kRunCrashes:
        raise(SIGSEGV);
        break;
      case Fault::kRunHangs:
        HangForever();
      case Fault::kRunLoops:
        LoopForever();
      case Fault::kRunIsIllegal:
        raise(SIGILL);
        break;
      case Fault::kRunExits:
        _exit(3);
      case Fault::kIsKilled:
        raise(SIGKILL);
        break;
      case Fault::kWrongValue:
        output[0] += 0.01f;
        break;
      case Fault::kPaddingNotZero:
        output[PaddedElementCount(shape, layout) - 1] = 1;
        break;
      case Fault::kWritesOutside:
        output[PaddedElementCount(shape, layout) + 5] = 0;
        break;
      case Fault::kSlow:
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        break;
      default:
        break;
    }
  }

  const Fault fault_;
  const ConvWorkload workload_;
  const std::unique_ptr<ConvKernel> conv_;
  mutable std::atomic<int64_t> done_ = 0;  // tasks of the stage
  const Config conv_config_ = PortableTemplate().Default(workload_, DetectCpu());
};

class FaultyTemplate : public ConvTemplate {
 public:
  std::string_view Name() const override { return "faulty"; }
  Support Supports(const ConvWorkload&, const Target&) const override { return Support::Yes(); }
  ConfigSpace Space(const ConvWorkload&, const Target&) const override {
    std::vector<int64_t> faults;
    for (int64_t f = 0; f <= static_cast<int64_t>(Fault::kSlow); ++f) faults.push_back(f);
    return ConfigSpace({{"fault", faults, "what goes wrong"}}, nullptr);
  }
  Config Default(const ConvWorkload&, const Target&) const override { return FaultConfig(Fault::kNone); }
  LayoutPair Layouts(const ConvWorkload& workload, const Config&) const override {
    return PortableTemplate().Layouts(workload, PortableTemplate().Default(workload, DetectCpu()));
  }

  LoopFeatures Features(const ConvWorkload&, const Config&, const Target&) const override { return {}; }
  std::unique_ptr<ConvKernel> Build(const ConvWorkload& workload, const Config& config, const Target&,
                                    const ConvWeights& weights) const override {
    const Fault fault = static_cast<Fault>(config.Get("fault"));
    if (fault == Fault::kBuildThrows) throw std::runtime_error("no registers left");
    if (fault == Fault::kBuildCrashes) raise(SIGILL);
    if (fault == Fault::kBuildHangs) HangForever();
    if (fault == Fault::kBuildNeedsTerabytes) std::vector<char>(size_t{1} << 42).data()[1 << 20] = 1;
    if (fault == Fault::kBuildNeeds40Gigabytes) std::vector<char>(size_t{40} << 30).data()[1 << 20] = 1;
    const ConvTemplate& portable = PortableTemplate();
    const Target cpu = DetectCpu();
    auto conv = portable.Build(workload, portable.Default(workload, cpu), cpu, weights);
    return std::make_unique<FaultyKernel>(fault, workload, std::move(conv));
  }
};

}  // namespace

Config FaultConfig(Fault fault) {
  Config config;
  config.Set("fault", static_cast<int64_t>(fault));
  return config;
}

const ConvTemplate& FindFaultyTemplate(std::string_view name) {
  static const FaultyTemplate faulty;
  if (name == faulty.Name()) return faulty;
  return FindConvTemplate(name);
}

}  // namespace tilesmith
