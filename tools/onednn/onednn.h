// The baseline: the same computations by oneDNN, each in the memory layouts oneDNN itself likes best, with
// weights packed beforehand and post-ops fused. Only this folder knows oneDNN itself.
//
// A twin is prepared once (primitive, packed parameters, buffers); then SetInput fills its source buffers,
// Run computes, GetOutput reads the result back. Run is one execution and one wait and nothing else (but for
// the reorders of connected twins), so it is what a benchmark times. Twins are not thread-safe; one thread
// uses one at a time.
//
// oneDNN is loaded when the first twin is made; nothing else needs it. Who computes beside it calls
// PrepareOneDnn first.
//
// oneDNN fixes the partition over threads when a primitive is made: call OneDnnSetThreads on the thread that
// makes and runs the twins, before making them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "layouts/base/kernel.h"
#include "layouts/base/target.h"
#include "layouts/tensor.h"
#include "ops/conv/workload.h"
#include "ops/quantize/quantized_conv.h"
#include "templates/base/conv_error.h"
#include "templates/device/device.h"

namespace tilesmith {

class OneDnnPrimitive {
 public:
  ~OneDnnPrimitive();
  OneDnnPrimitive(const OneDnnPrimitive&) = delete;
  OneDnnPrimitive& operator=(const OneDnnPrimitive&) = delete;

  // Reorders a plain tensor into source buffer `index`. Precondition: the shape and type the twin was made
  // for.
  void SetInput(int index, const Tensor& plain);
  // From now on source `index` is what `producer` computes: its very memory where both use the same layout,
  // otherwise a reorder at the start of each Run. The shapes may differ when both are plain; the types are
  // the same, or both of f32 and bf16, between which the reorder converts.
  void Connect(int index, const OneDnnPrimitive& producer);
  void Run();
  // Whether it is none of oneDNN's, but a guest.
  bool IsGuest() const;
  // The destination, reordered to a plain tensor of floats: of bytes, what is stored.
  Tensor GetOutput();

  std::string ImplName() const;          // as oneDNN names it: "brgconv:avx512_core"
  std::string InputLayoutName() const;   // of the first source: "NCHW", "NHWC", "NCHW16c", ..., or "other"
  std::string OutputLayoutName() const;  // likewise
  DataType OutputType() const;
  // The packed weights Run reads, for measuring with weights that are not in cache. Empty where there are
  // none.
  std::span<const std::byte> PackedWeights() const;

  struct Impl;
  explicit OneDnnPrimitive(std::unique_ptr<Impl> impl);

 protected:
  static const Impl& ImplOf(const OneDnnPrimitive& twin) { return *twin.impl_; }
  std::unique_ptr<Impl> impl_;
};

enum class OneDnnAlgorithm { kDirect, kAuto, kWinograd };
// "direct", "auto", "winograd".
std::string_view OneDnnAlgorithmName(OneDnnAlgorithm algorithm);

struct ConvParams {
  const float* weights = nullptr;  // OIHW
  const float* bias = nullptr;     // oc floats; null exactly when the workload has no bias
};

// The twin of a conv workload with its post-ops. Parameters are copied.
//
// oneDNN's sum post-op accumulates into the destination: the residual must lie in the output buffer before
// Run, which overwrites it. SetResidual puts it there; for the workload's formula call it before each Run.
// Repeated Runs without it add the conv once more each time, which costs the same time.
class OneDnnConv : public OneDnnPrimitive {
 public:
  // Null when oneDNN has no such implementation (Winograd for a 5x5, an activation it cannot fuse, anything
  // fused in front of the conv), with the reason in *refusal when given. kWinograd is also refused when
  // oneDNN answers with something else. Input, weights and output are stored as `type`, f32 or bf16.
  static std::unique_ptr<OneDnnConv> Create(const ConvWorkload& workload, OneDnnAlgorithm algorithm,
                                            const ConvParams& params, std::string* refusal = nullptr,
                                            DataType type = DataType::kF32);
  // The twin of a convolution of bytes, in the same types: output and residual are rounded once where ours
  // rounds twice, so that answers may be a step apart. Where the CPU has no VNNI, oneDNN adds two products in
  // 16 bits, which saturate: answers may then be any. Null where weights have a zero point, and with oneDNN
  // 3, whose attributes are others.
  static std::unique_ptr<OneDnnConv> Create(const QuantizedConvOp& op, std::string* refusal = nullptr);
  using OneDnnPrimitive::SetInput;
  void SetInput(const Tensor& plain) { SetInput(0, plain); }
  // Precondition: the workload has `sum`.
  void SetResidual(const Tensor& plain);
  // From now on the residual is what `producer` computes. With `overwrite`, the conv may write its output
  // over it; otherwise, or where the layouts differ, each Run starts with a copy.
  void ConnectResidual(const OneDnnPrimitive& producer, bool overwrite);

 private:
  using OneDnnPrimitive::OneDnnPrimitive;
};

// The errors of oneDNN's conv as MeasureConvError has them (templates/base/conv_error.h); null when it
// cannot.
std::optional<ConvError> MeasureOneDnnError(const ConvWorkload& workload, OneDnnAlgorithm algorithm);

// No computation: a buffer that passes its input on, as a network's inputs, outputs and views do. Any rank in
// NCHW.
std::unique_ptr<OneDnnPrimitive> MakeOneDnnBuffer(const Shape& shape, const Layout& layout = Layout::Nchw());
// A buffer in one layout that its readers see under another shape in another: a view (Op::LayoutsOfView).
std::unique_ptr<OneDnnPrimitive> MakeOneDnnView(const Shape& in, const Layout& in_layout, const Shape& out,
                                                const Layout& out_layout);

// The twins below run in a layout the caller names, NCHW (any rank), NHWC or NCHW{4,8,16}c, since that is
// dictated by the convs around them; all are null with the reason in *refusal when oneDNN cannot. Pools and
// concats may be of bytes, all others are of f32 or bf16.

// Padding at the bottom and right follows from the output's size.
struct OneDnnPool {
  Shape input, output;  // {N, C, H, W}
  bool max = true;
  bool count_include_pad = false;  // average only: whether padding counts in the divisor
  int64_t kh = 1, kw = 1, sh = 1, sw = 1, ph = 0, pw = 0;
  int64_t dh = 0, dw = 0;  // as in ConvWorkload
};
std::unique_ptr<OneDnnPrimitive> MakeOneDnnPool(const OneDnnPool& pool, const Layout& layout,
                                                std::string* refusal = nullptr);

// out = act(in[0] + ... + in[count - 1]); an activation only with two inputs whose channels fill
// the layout's blocks.
std::unique_ptr<OneDnnPrimitive> MakeOneDnnSum(const Shape& shape, int count, const Activation& activation,
                                               const Layout& layout, std::string* refusal = nullptr);

// Along channels; inputs differ in C only.
std::unique_ptr<OneDnnPrimitive> MakeOneDnnConcat(std::span<const Shape> inputs, const Layout& layout,
                                                  std::string* refusal = nullptr);

// out = act(in). Precondition: an activation other than kNone.
std::unique_ptr<OneDnnPrimitive> MakeOneDnnActivation(const Shape& shape, const Activation& activation,
                                                      const Layout& layout, std::string* refusal = nullptr);

// out[n, c, h, w] = act(scale[c] * in[n, c, h, w] + shift[c]): a batch normalization that could not be
// folded.
struct OneDnnScaleShift {
  const float* scale = nullptr;
  const float* shift = nullptr;
  Activation activation;
};
std::unique_ptr<OneDnnPrimitive> MakeOneDnnScaleShift(const Shape& shape, const OneDnnScaleShift& params,
                                                      const Layout& layout, std::string* refusal = nullptr);

// out[n, o] = act(bias[o] + sum_i in[n, i, 0, 0] * weights[o, i]), plain in and out, stored as `type`.
struct OneDnnInnerProduct {
  int64_t rows = 1, in = 0, out = 0;
  const float* weights = nullptr;  // out x in
  const float* bias = nullptr;     // null: none
  Activation activation;
};
std::unique_ptr<OneDnnPrimitive> MakeOneDnnInnerProduct(const OneDnnInnerProduct& params,
                                                        std::string* refusal = nullptr,
                                                        DataType type = DataType::kF32);

// Softmax along `axis` of a plain tensor of floats of rank 1 to 4.
std::unique_ptr<OneDnnPrimitive> MakeOneDnnSoftmax(const Shape& shape, int axis,
                                                   std::string* refusal = nullptr);

// out = in * gate, the gate being [N, C, 1, 1] and the first or the second input.
std::unique_ptr<OneDnnPrimitive> MakeOneDnnGate(const Shape& shape, int gate_slot, const Layout& layout,
                                                std::string* refusal = nullptr);

// Not oneDNN's at all: a kernel of ours among the twins, for what oneDNN has no primitive for and who chains
// primitives writes by hand. `request` is what the kernel was made for.
std::unique_ptr<OneDnnPrimitive> MakeGuest(std::unique_ptr<Kernel> kernel, const KernelRequest& request,
                                           std::string* refusal = nullptr);

// Keeps oneDNN from using instructions beyond `isa` (kPortable: SSE4.1, its least) in this process. Throws
// Error(kInternal) when oneDNN has already looked at the CPU, as making any twin does, and the last cap was
// another. Does not load it. Thread-safe.
void OneDnnCapIsa(Isa isa);
// Threads of the twins made and run by the calling thread from now on. Does not load oneDNN.
void OneDnnSetThreads(int threads);

// While it is held, the calling thread has OpenMP's threads, which oneDNN runs on, pinned as its own team
// (layouts/base/thread_team.h) is, which sleeps meanwhile. Behind it they are gone, since threads that wait
// for work keep cores from those who have some. Twins that run without take a turn each. Reentrant.
class OneDnnTurn {
 public:
  OneDnnTurn();
  ~OneDnnTurn();
  OneDnnTurn(const OneDnnTurn&) = delete;
  OneDnnTurn& operator=(const OneDnnTurn&) = delete;
};
std::shared_ptr<void> TakeOneDnnTurn();

// Has the twins that the calling thread makes and runs from now on compute as `machine` does: with no wider
// instructions, on as many threads. Throws as OneDnnCapIsa does, and Error(kEnvironment), as making any twin
// does, where oneDNN is not installed, naming the package that has it.
void PrepareOneDnn(const Device& machine);
// "2.6.3": of the library in use; or "not installed". Thread-safe.
std::string OneDnnVersion();

}  // namespace tilesmith
