#include "tools/onednn/onednn.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "layouts/base/shared_library.h"
#include "layouts/base/thread_team.h"
#include "tools/onednn/onednn_detail.h"

namespace tilesmith {

using namespace onednn;

namespace {

algorithm ConvAlgorithm(OneDnnAlgorithm algorithm) {
  switch (algorithm) {
    case OneDnnAlgorithm::kDirect:
      return dnnl::algorithm::convolution_direct;
    case OneDnnAlgorithm::kAuto:
      return dnnl::algorithm::convolution_auto;
    case OneDnnAlgorithm::kWinograd:
      return dnnl::algorithm::convolution_winograd;
  }
  TILESMITH_CHECK(false, "algorithm {}", static_cast<int>(algorithm));
}

std::unique_ptr<Impl> MakeConv(const ConvWorkload& w, OneDnnAlgorithm algorithm, const ConvParams& params,
                               memory::data_type type) {
  if (w.fused()) throw Refusal{"oneDNN computes nothing in front of a conv"};
  TILESMITH_CHECK(w.post.bias == (params.bias != nullptr), "{}", WorkloadToString(w));
  const Dims source = w.input_shape(), destination = w.output_shape(), bias = {w.oc};
  const Dims weights = w.g > 1 ? Dims{w.g, w.oc / w.g, w.ic / w.g, w.kh, w.kw} : w.weights_shape();
  const auto desc = Describe<dnnl::convolution_forward>(
      FusedActivation(w.post.activation, w.post.sum), kInference, ConvAlgorithm(algorithm),
      AnyDesc(source, type), AnyDesc(weights, type), w.post.bias ? PlainDesc(bias) : memory::desc(),
      AnyDesc(destination, type), Dims{w.sh, w.sw}, Dims{w.dh, w.dw}, Dims{w.ph, w.pw},
      Dims{w.pad_bottom(), w.pad_right()});
  auto impl = std::make_unique<Impl>();
  impl->SetPrimitive(desc, dnnl::convolution_forward(desc));
  if (algorithm == OneDnnAlgorithm::kWinograd && impl->name.find("wino") == std::string::npos) {
    throw Refusal{fmt::format("oneDNN offers {} instead of Winograd", impl->name)};
  }
  impl->AddSource(DNNL_ARG_SRC, desc.src_desc(), source);
  impl->AddParameter(DNNL_ARG_WEIGHTS, desc.weights_desc(), PlainView(weights, params.weights));
  if (w.post.bias) impl->AddParameter(DNNL_ARG_BIAS, desc.bias_desc(), PlainView(bias, params.bias));
  impl->SetDestination(desc.dst_desc(), destination);
  impl->has_weights = true;
  return impl;
}

#if DNNL_VERSION_MAJOR >= 3
std::unique_ptr<Impl> MakeByteConv(const QuantizedConvOp&) {
  throw Refusal{"convolutions of bytes are asked of oneDNN 2 alone"};
}
#else
// What is added to the sums, as reals: besides the bias the zero points of output and residual, which are no
// attributes then, and that of the input where there is no padding for it to lie in.
Tensor ByteBias(const QuantizedConvOp& op, const std::vector<float>& scales, bool with_input) {
  const ConvWorkload& w = op.workload();
  const QuantizedConvParams& params = op.params();
  const std::vector<int16_t> weights = op.CenteredWeights();
  const size_t terms = weights.size() / static_cast<size_t>(w.oc);
  Tensor bias({w.oc});
  for (size_t o = 0; o < static_cast<size_t>(w.oc); ++o) {
    double sum = params.bias ? params.bias->data<int32_t>()[o] : 0;
    if (with_input)
      for (size_t i = 0; i < terms; ++i)
        sum -= static_cast<double>(params.input.zero_points[0]) * weights[o * terms + i];
    double added = 0;  // in the output's steps
    if (params.sum) {
      const double ratio = params.sum->residual.scales[0] / params.sum->output.scales[0];
      added = params.sum->output.zero_points[0] - ratio * params.sum->residual.zero_points[0];
    } else if (params.output.type != DataType::kF32) {
      added = params.output.zero_points[0];
    }
    bias.floats()[o] = static_cast<float>(sum + added / static_cast<double>(scales[o]));
  }
  return bias;
}

std::unique_ptr<Impl> MakeByteConv(const QuantizedConvOp& op) {
  const ConvWorkload& w = op.workload();
  const QuantizedConvParams& params = op.params();
  const Quantization& stored = params.weights.quantization;
  if (stored.type != DataType::kI8 ||
      std::ranges::any_of(stored.zero_points, [](int32_t z) { return z != 0; }))
    throw Refusal{"oneDNN's weights are i8 without a zero point"};
  const std::vector<float>& scales = op.multipliers();
  const bool padded = w.ph > 0 || w.pw > 0 || w.pad_bottom() > 0 || w.pad_right() > 0;
  dnnl::primitive_attr attr;
  dnnl::post_ops post;
  StoredRange limits = params.limits;
  if (params.sum) {
    const float out = params.sum->output.scales[0];
    post.append_sum(params.sum->residual.scales[0] / out);
    limits = params.sum->limits;
  }
  const DataType out_type = params.sum ? params.sum->output.type : params.output.type;
  const StoredRange range = out_type == DataType::kF32 ? limits : RangeOf(out_type);
  if (limits.low != range.low || limits.high != range.high)
    AppendEltwise(post, algorithm::eltwise_clip, static_cast<float>(limits.low),
                  static_cast<float>(limits.high));
  attr.set_post_ops(post);
  attr.set_output_scales(1 << 1, scales);
  if (padded && params.input.zero_points[0] != 0)
    attr.set_zero_points(DNNL_ARG_SRC, 0, params.input.zero_points);
  const Tensor bias_values = ByteBias(op, scales, !padded);
  const Dims source = w.input_shape(), destination = w.output_shape(), bias = {w.oc};
  const Dims weights = w.g > 1 ? Dims{w.g, w.oc / w.g, w.ic / w.g, w.kh, w.kw} : w.weights_shape();
  const auto desc = Describe<dnnl::convolution_forward>(
      attr, kInference, algorithm::convolution_direct, AnyDesc(source, TypeOf(params.input.type)),
      AnyDesc(weights, memory::data_type::s8), PlainDesc(bias), AnyDesc(destination, TypeOf(out_type)),
      Dims{w.sh, w.sw}, Dims{w.dh, w.dw}, Dims{w.ph, w.pw}, Dims{w.pad_bottom(), w.pad_right()});
  auto impl = std::make_unique<Impl>();
  impl->SetPrimitive(desc, dnnl::convolution_forward(desc));
  impl->AddSource(DNNL_ARG_SRC, desc.src_desc(), source);
  impl->AddParameter(DNNL_ARG_WEIGHTS, desc.weights_desc(),
                     memory(PlainDesc(weights, memory::data_type::s8), Engine(),
                            const_cast<std::byte*>(params.weights.stored->raw())));
  impl->AddParameter(DNNL_ARG_BIAS, desc.bias_desc(), PlainView(bias_values));
  impl->SetDestination(desc.dst_desc(), destination);
  impl->has_weights = true;
  return impl;
}
#endif

// OpenMP as oneDNN is linked with it.
struct OpenMp {
  void (*set_threads)(int threads) = Find<void (*)(int)>("omp_set_num_threads");
  int (*max_threads)() = Find<int (*)()>("omp_get_max_threads");
  int (*thread)() = Find<int (*)()>("omp_get_thread_num");
  int (*initial_device)() = Find<int (*)()>("omp_get_initial_device");
  int (*pause_resource)(int kind, int device) = Find<int (*)(int, int)>("omp_pause_resource");
  void (*parallel)(void (*call)(void*), void* with, unsigned threads, unsigned flags) =
      Find<void (*)(void (*)(void*), void*, unsigned, unsigned)>("GOMP_parallel");
};
const OpenMp& TheOpenMp() {
  static const OpenMp functions;
  return functions;
}

// Calls body(int thread) on the threads that oneDNN runs on.
template <typename Body>
void OnOpenMp(int threads, const Body& body) {
  const auto call = [](void* of) { (*static_cast<const Body*>(of))(TheOpenMp().thread()); };
  TheOpenMp().parallel(call, const_cast<Body*>(&body), static_cast<unsigned>(threads), 0);
}

void RunGuest(Impl& impl) {
  Impl::Guest& guest = *impl.guest;
  for (size_t i = 0; i < guest.inputs.size(); ++i)
    guest.inputs[i].data = impl.sources[i].buffer.storage->data();
  guest.output.data = impl.destination->storage->data();
  const KernelArgs args = {guest.inputs, guest.output, guest.scratch.data()};
  SpinBarrier barrier(guest.threads);
  FirstError error;
  OnOpenMp(guest.threads, [&](int thread) {
    const FlushDenormals flush;
    RunShare(*guest.kernel, args, thread, guest.threads, barrier, error);
  });
  error.Rethrow();
}

constexpr const char* kNames[] = {TILESMITH_ONEDNN};
constexpr SystemLibrary kOneDnn = {"oneDNN", "which ours is set beside", kNames};

std::atomic<bool> opened = false;

void* Library() {
  static void* const library = [] {
    void* const found = RequireLibrary(kOneDnn);
    opened = true;
    return found;
  }();
  return library;
}

// Set before the library is there, which need not come.
std::mutex cap_mutex;
std::optional<Isa> wanted_cap, cap;                    // wanted; what oneDNN was told
thread_local int wanted_threads = 0, threads_set = 0;  // 0: as OpenMP has it

void CapNow() {
  const std::lock_guard lock(cap_mutex);
  if (!wanted_cap || cap == wanted_cap || ArchitectureOf(*wanted_cap) == Architecture::kArm) return;
  const auto widest = *wanted_cap == Isa::kAvx512 ? dnnl::cpu_isa::all
                      : *wanted_cap == Isa::kAvx2 ? dnnl::cpu_isa::avx2
                                                  : dnnl::cpu_isa::sse41;
  if (dnnl::set_max_cpu_isa(widest) != dnnl::status::success) {
    throw Error(ErrorCode::kInternal,
                fmt::format("oneDNN refuses to be capped at {}: it has already made a primitive",
                            IsaName(*std::exchange(wanted_cap, cap))));
  }
  cap = wanted_cap;
}

thread_local int turns = 0;

// Pinned as the calling thread's own team is, which sleeps.
void StartOpenMpThreads() {
  Prepare();
  ThreadTeam& team = CurrentTeam();
  team.Rest();
  const std::span<const int> cores = team.cores();
  OnOpenMp(TwinThreads(), [&](int thread) {
    if (static_cast<size_t>(thread) < cores.size()) KeepOn(cores[static_cast<size_t>(thread)]);
  });
}

// Those that wait for the next region.
void EndOpenMpThreads() {
  constexpr int kSoft = 1;
  TheOpenMp().pause_resource(kSoft, TheOpenMp().initial_device());
}

}  // namespace

OneDnnPrimitive::OneDnnPrimitive(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OneDnnPrimitive::~OneDnnPrimitive() = default;

void OneDnnPrimitive::SetInput(int index, const Tensor& plain) {
  TILESMITH_CHECK(index >= 0 && index < static_cast<int>(impl_->sources.size()), "input {}", index);
  const Buffer& source = impl_->sources[index].buffer;
  TILESMITH_CHECK(plain.layout().is_nchw() && plain.shape() == source.dims, "{} for {}",
                  ShapeToString(plain.shape()), ShapeToString(source.dims));
  Reorder(PlainView(plain), source.mem);
}

void OneDnnPrimitive::Connect(int index, const OneDnnPrimitive& producer) {
  TILESMITH_CHECK(index >= 0 && index < static_cast<int>(impl_->sources.size()), "input {}", index);
  Impl::Source& source = impl_->sources[index];
  Buffer produced = *producer.impl_->destination;
  const memory::data_type type = produced.mem.get_desc().data_type();
  const memory::data_type wanted = source.buffer.mem.get_desc().data_type();
  const auto is_float = [](memory::data_type t) { return t == kFloat || t == memory::data_type::bf16; };
  TILESMITH_CHECK(type == wanted || (is_float(type) && is_float(wanted)), "another type than \"{}\" gives",
                  producer.impl_->name);
  if (produced.dims != source.buffer.dims) {
    TILESMITH_CHECK(ElementCount(produced.dims) == ElementCount(source.buffer.dims), "{} for {}",
                    ShapeToString(produced.dims), ShapeToString(source.buffer.dims));
    if (produced.mem.get_desc() != PlainDesc(produced.dims, type)) {
      const Buffer plain(PlainDesc(produced.dims, type), produced.dims);
      impl_->AddCopy(produced, plain);
      produced = plain;
    }
    produced = Buffer(PlainDesc(source.buffer.dims, type), source.buffer.dims, produced.storage);
  }
  if (produced.mem.get_desc() != source.buffer.mem.get_desc()) {
    impl_->AddCopy(produced, source.buffer);
    return;
  }
  source.buffer = produced;
  impl_->Rebind(source.arg, produced);
  if (impl_->primitive || impl_->guest) return;
  Buffer& seen = *impl_->destination;
  seen = Buffer(seen.mem.get_desc(), seen.dims, produced.storage);
}

void OneDnnPrimitive::Run() {
  const OneDnnTurn turn;
  for (Impl::Copy& copy : impl_->copies) copy.reorder.execute(impl_->stream, copy.from, copy.to);
  if (!impl_->primitive) {
    impl_->stream.wait();
    if (impl_->guest) RunGuest(*impl_);
    return;
  }
  const dnnl_status_t status = dnnl_primitive_execute(
      impl_->primitive.get(), impl_->stream.get(), static_cast<int>(impl_->args.size()), impl_->args.data());
  TILESMITH_CHECK(status == dnnl_success, "{} of {}", static_cast<int>(status), impl_->name);
  impl_->stream.wait();
}

Tensor OneDnnPrimitive::GetOutput() {
  Tensor plain(impl_->destination->dims);
  Reorder(impl_->destination->mem, PlainView(plain.shape(), plain.floats()));
  return plain;
}

bool OneDnnPrimitive::IsGuest() const { return impl_->guest.has_value(); }

std::string OneDnnPrimitive::ImplName() const { return impl_->name; }

std::string OneDnnPrimitive::InputLayoutName() const {
  return LayoutName(impl_->sources[0].buffer.mem.get_desc(), impl_->sources[0].buffer.dims);
}

std::string OneDnnPrimitive::OutputLayoutName() const {
  return LayoutName(impl_->destination->mem.get_desc(), impl_->destination->dims);
}

DataType OneDnnPrimitive::OutputType() const {
  const memory::data_type type = impl_->destination->mem.get_desc().data_type();
  for (const DataType known : {DataType::kF32, DataType::kBf16, DataType::kF16, DataType::kU8, DataType::kI8})
    if (TypeOf(known) == type) return known;
  return DataType::kI32;
}

std::span<const std::byte> OneDnnPrimitive::PackedWeights() const {
  if (!impl_->has_weights) return {};
  const AlignedBuffer& storage = *impl_->parameters[0].storage;
  return {static_cast<const std::byte*>(storage.data()), storage.bytes()};
}

std::string_view OneDnnAlgorithmName(OneDnnAlgorithm algorithm) {
  switch (algorithm) {
    case OneDnnAlgorithm::kDirect:
      return "direct";
    case OneDnnAlgorithm::kAuto:
      return "auto";
    case OneDnnAlgorithm::kWinograd:
      return "winograd";
  }
  TILESMITH_CHECK(false, "algorithm {}", static_cast<int>(algorithm));
}

std::unique_ptr<OneDnnConv> OneDnnConv::Create(const ConvWorkload& workload, OneDnnAlgorithm algorithm,
                                               const ConvParams& params, std::string* refusal,
                                               DataType type) {
  if (workload.product) {
    if (refusal) *refusal = "a product of two inputs is no convolution";
    return nullptr;
  }
  return OrRefusal(refusal, [&] {
    return std::unique_ptr<OneDnnConv>(new OneDnnConv(MakeConv(workload, algorithm, params, TypeOf(type))));
  });
}

std::unique_ptr<OneDnnConv> OneDnnConv::Create(const QuantizedConvOp& op, std::string* refusal) {
  return OrRefusal(refusal, [&] { return std::unique_ptr<OneDnnConv>(new OneDnnConv(MakeByteConv(op))); });
}

std::optional<ConvError> MeasureOneDnnError(const ConvWorkload& workload, OneDnnAlgorithm algorithm) {
  const auto run = [&](const ConvWorkload& w, const Tensor& input, const float* weights) {
    const auto conv = OneDnnConv::Create(w, algorithm, {weights, nullptr});
    if (conv == nullptr) return std::optional<Tensor>();
    conv->SetInput(input);
    conv->Run();
    return std::optional(conv->GetOutput());
  };
  return MeasureConvError(workload, run);
}

void OneDnnConv::SetResidual(const Tensor& plain) {
  const Buffer& destination = *impl_->destination;
  TILESMITH_CHECK(plain.layout().is_nchw() && plain.shape() == destination.dims, "{} for {}",
                  ShapeToString(plain.shape()), ShapeToString(destination.dims));
  Reorder(PlainView(plain), destination.mem);
}

void OneDnnConv::ConnectResidual(const OneDnnPrimitive& producer, bool overwrite) {
  const Buffer& residual = *ImplOf(producer).destination;
  Buffer& destination = *impl_->destination;
  TILESMITH_CHECK(residual.dims == destination.dims);
  if (!overwrite || residual.mem.get_desc() != destination.mem.get_desc()) {
    impl_->AddCopy(residual, destination);
    return;
  }
  destination = residual;
  impl_->Rebind(DNNL_ARG_DST, destination);
}

void* onednn::FindSymbol(const char* name) { return RequireSymbol(Library(), kOneDnn, name); }

void onednn::Prepare() {
  Library();
  CapNow();
  if (threads_set == wanted_threads) return;
  TheOpenMp().set_threads(wanted_threads);
  threads_set = wanted_threads;
}

int onednn::TwinThreads() { return TheOpenMp().max_threads(); }

void OneDnnCapIsa(Isa isa) {
  {
    const std::lock_guard lock(cap_mutex);
    wanted_cap = isa;
  }
  if (opened) CapNow();
}

void OneDnnSetThreads(int threads) { wanted_threads = threads; }

void PrepareOneDnn(const Device& machine) {
  const Isa isa = machine.target().isa;
  if (isa != DetectCpu().isa) OneDnnCapIsa(isa);
  OneDnnSetThreads(machine.threads());
  Library();
}

OneDnnTurn::OneDnnTurn() {
  if (turns == 0) StartOpenMpThreads();
  ++turns;
}

OneDnnTurn::~OneDnnTurn() {
  if (--turns == 0) EndOpenMpThreads();
}

std::shared_ptr<void> TakeOneDnnTurn() { return std::make_shared<OneDnnTurn>(); }

std::string OneDnnVersion() {
  try {
    Library();
  } catch (const Error&) {
    return "not installed";
  }
  const dnnl::version_t& version = *dnnl::version();
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

}  // namespace tilesmith
