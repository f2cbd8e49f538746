// tilesmith: CNN inference on CPUs, by plans tuned for the machine at hand. The whole C++ interface.
//
//   const auto model = tilesmith::Model::Load("resnet50.onnx", {.plan = "resnet50.plan.jsonl"});
//   tilesmith::Session session = model.NewSession();
//   session.Run({image}, {scores});  // const float*, float*
//
// A model holds what does not change: generated code, packed weights, the plan. Sessions share it; each has
// activations of its own. Errors are std::runtime_error, whose message names the thing, the value and what
// was allowed.
#pragma once

#if __cplusplus < 202002L
#error "tilesmith.h needs C++20: compile with -std=c++20"
#endif

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#define TILESMITH_API __attribute__((visibility("default")))

namespace tilesmith {

struct LoadOptions {
  // As `tilesmith optimize` or `graph-tune` wrote it, for this model, machine and thread count. Empty:
  // default schedules, which nothing was measured for.
  std::string plan = {};
  int threads = 0;    // of each session; 0: one for each core of the calling thread
  int64_t batch = 0;  // 0: the model's own, or 1 where it leaves it open
  // "x=1x3x640x640", or "height=640" for a named open size. Several for one name are as many sizes, all
  // prepared, and "x=1x3x48x64..640:8" as many as it counts; the first is what Model::inputs says. Sizes
  // other than the batch that are left open are those of the first run, which compiles the model
  // (Session::Run with shapes).
  std::vector<std::string> input_shapes = {};
  // How many sizes of its inputs a model, and each session, keeps prepared: the first, and those that were
  // used last. Up to 1, and where input_shapes has no more, other sizes than the first are refused. Of a
  // compiled file's sizes at least 64 are kept.
  int sizes = 1;
  int64_t max_elements = 0;  // of one tensor: a model with a larger one is refused; 0: 2^31
  // MiB that weights and one session may take, for all sizes together; 0: what this process may use.
  int64_t max_memory = 0;
  // What a session's threads do that wait for each other: "spin"; "yield": after a while they offer the core
  // to others; "sleep": and at last sleep.
  std::string wait = "sleep";
  // "cpu", or a GPU, "cuda" or of several "cuda:N": the process uses the first that it asks for.
  std::string target = "cpu";
  std::string precision = "f32";  // "tf32": a GPU may round what it multiplies
  // Outputs are the same bits on every CPU, with any number of threads, batch and plan that was made so, and
  // without one. A plan that was made so needs no asking; another is refused.
  bool reproducible = false;
  // A plan that was made for another number of threads is an error. Else its schedules run on the threads
  // there are, fewer than `threads` where there are fewer cores, and Model::warnings says so.
  bool strict = false;
};

struct SessionOptions {
  // Thread i of the session runs on cores[i] only, as many as the model has threads; empty: wherever the
  // system lets them. The first one is the thread that calls Run, and it stays there.
  std::vector<int> cores = {};
};

// The cores of a NUMA node that this process may use, ascending: for SessionOptions::cores. The memory of a
// session whose threads stay on a node is that node's. Throws when there is no such node.
TILESMITH_API std::vector<int> CoresOfNumaNode(int node);

// Seconds of a barrier between so many threads, as they are placed now; 0 for one. Hosts move virtual cores
// nearer and farther many times a minute, and times taken at one distance are not to be compared with those
// at another. Throws when there are fewer threads than that.
TILESMITH_API double CoreDistance(int threads);

// A model in memory instead of a file, for the call that it is given to: nothing of it is needed behind that.
struct ModelMemory {
  std::span<const std::byte> bytes = {};  // what an ONNX file holds
  // What other files hold that the model keeps data in, by the locations that it gives.
  std::map<std::string, std::span<const std::byte>> parts = {};
  std::string name = "model in memory";  // in messages
};

// An input or output. Images lie in memory as `layout` says ("NCHW", "NHWC", "NCHW16c"), NCHW unless the plan
// was made for other ends; all else is row-major. An output whose size depends on values has only its name
// here: shape, type and size are those of each run (OutputTensor). Where a model leaves sizes of its inputs
// open, until its first run, these are -1, `elements` and `bytes` 0, and outputs have only their names.
struct TensorInfo {
  std::string name;
  std::vector<int64_t> shape;
  std::string layout;
  std::string type;     // "f32", "f16", "bf16", "i8" to "i64", "u8" to "u64", or "bool": a byte, 0 or 1
  size_t elements = 0;  // in memory: padding, which must be zero in inputs, is counted
  size_t bytes = 0;     // they take
};

struct StepTime {
  std::string name;     // the node's, or "tensor: NCHW -> NCHW16c" for a layout transform
  std::string kind;     // "direct", "winograd", "MaxPool", "transform", ...
  std::string layouts;  // "NCHW16c -> NCHW32c"
  double seconds = 0;
  double predicted_seconds = 0;  // by the plan
};

struct InputTensor {
  const void* data = nullptr;
  std::span<const int64_t> shape = {};  // empty: Model::inputs'
};

// What a run gave, in its true size. Memory of the session, valid until its next run.
struct OutputTensor {
  const void* data = nullptr;
  std::vector<int64_t> shape;
  std::string layout, type;  // as TensorInfo's
  size_t elements = 0, bytes = 0;
};

class Model;

// One run at a time; different sessions may run at the same time, in different threads. A session has threads
// of its own beside the one that calls Run, which sleep between runs. A process may fork: the child's
// sessions start such threads anew, and a fork waits for the runs that are under way (of a model on a GPU the
// child's throw).
class TILESMITH_API Session {
 public:
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  // Tensors in the order of Model::inputs() and outputs(), TensorInfo::bytes each, none of them twice.
  // Memory aligned to 64 bytes is used as it is, other memory costs a copy. A run allocates nothing and locks
  // nothing.
  void Run(std::span<const void* const> inputs, std::span<void* const> outputs);
  void Run(std::initializer_list<const void*> inputs, std::initializer_list<void*> outputs) {
    Run(std::span(inputs.begin(), inputs.size()), std::span(outputs.begin(), outputs.size()));
  }

  // The same with outputs in memory of the session, as Model::outputs orders them: the way to run a model
  // whose outputs have sizes that depend on values, and inputs of other sizes (LoadOptions::sizes). A size
  // that is not prepared is compiled first, with its plan of LoadOptions::plan or, where there is none, the
  // schedules of the nearest size's (without plans default ones); the model's file is not read again. Throws
  // where it does not fit the model or its limits; the session is as it was then. The first run of a model
  // that leaves sizes of its inputs open must be one of these, unless another session's was: its sizes are
  // the model's from then on.
  const std::vector<OutputTensor>& Run(std::span<const InputTensor> inputs);
  const std::vector<OutputTensor>& Run(std::initializer_list<InputTensor> inputs) {
    return Run(std::span(inputs.begin(), inputs.size()));
  }

  // Runs `runs` times with a clock around every step: a low quantile for each, in order of execution.
  std::vector<StepTime> Profile(std::span<const void* const> inputs, std::span<void* const> outputs,
                                int runs);
  // Without what computes outputs whose sizes depend on values from those that do not.
  std::vector<StepTime> Profile(std::span<const InputTensor> inputs, int runs);

  size_t activation_bytes() const;  // what it holds beside the model

 private:
  friend class Model;
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Copies share everything. Thread-safe.
class TILESMITH_API Model {
 public:
  // `model` is an ONNX file, the name of a built-in network ("resnet50") or a file of `tilesmith compile`,
  // which says itself what it was compiled with: sizes, threads, types and plan. libtilesmith_run takes such
  // files only.
  static Model Load(const std::string& model, const LoadOptions& options = {});
  static Model Load(const ModelMemory& model, const LoadOptions& options = {});
  static Model Load(std::span<const std::byte> model, const LoadOptions& options = {}) {
    return Load(ModelMemory{.bytes = model}, options);
  }

  const std::vector<TensorInfo>& inputs() const;  // of the first size, as all that follows
  const std::vector<TensorInfo>& outputs() const;
  // What whoever loaded it should know, a line each: that the plan was made for other threads, say.
  const std::vector<std::string>& warnings() const;
  int threads() const;
  // Whether outputs are the same bits on every CPU: asked for, or made so (LoadOptions::reproducible).
  bool reproducible() const;
  size_t packed_weight_bytes() const;  // of all sizes that are prepared now; what they share counts once
  // Of a run, by the plan; 0 without one, or where nobody has measured one of its convolutions.
  double predicted_seconds() const;

  // Outlives the model if need be.
  Session NewSession(const SessionOptions& options = {}) const;

 private:
  friend class Session;
  friend struct ModelFromFile;
  friend struct ModelFromGraph;
  struct Impl;
  struct Loader;
  explicit Model(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

struct TuneSettings {
  // Keeps what is measured, and is gone on with; empty: the plan's path with .log.jsonl.
  std::string log = {};
  double seconds = 240;       // for measuring convolutions, everything before counted
  double graph_seconds = 90;  // for choosing layouts and running plans
  int rounds = 3;             // plans to run at most, learning from each; 0: what the log says is believed
  bool database = true;       // ask and tell the user's database of earlier tunings
  int threads = 0;            // as in LoadOptions, the next four likewise
  int64_t batch = 0;
  std::vector<std::string> input_shapes = {};
  std::string target = "cpu";
  // "f32"; "int8": the model is quantised as Quantize would, and the plan says how, so that Model::Load takes
  // the same model with it; "bf16"; "mixed": layer by layer; "tf32": a GPU may round what it multiplies.
  std::string precision = "f32";
  // Only schedules whose outputs are the same bits on every CPU (LoadOptions::reproducible); of "f32" and
  // "int8".
  bool reproducible = false;
  std::vector<std::string> calibrate = {};  // for int8 and mixed, as QuantizeSettings'
  // With mixed and, of Tune and GraphTune, bf16: how far outputs may be off, relative to f32's; 0: as far as
  // it goes.
  double max_output_error = 0;
  // Only schedules whose error, relative to the outputs' root mean square, was at most this; 0: any.
  double max_error = 0;
  std::vector<std::string> forbid = {};                       // templates not to use, such as "winograd"
  std::string input_layout = "NCHW", output_layout = "NCHW";  // of the plan's ends; "NHWC"
  int64_t max_weights = 0;  // MiB of the packed weights of all convolutions, at most; 0: no limit
  int64_t max_elements = 0, max_memory = 0;  // as in LoadOptions, the next likewise
  std::string wait = "sleep";
  // The program tilesmith, in whose process configs are tried: one that crashes costs one trial. A path, or a
  // name that is looked for on the PATH.
  std::string program = "tilesmith";
  // Told what is being done, between measurements, in the calling thread. What it throws ends the tuning.
  std::function<void(const std::string&)> on_progress = {};
  const std::atomic<bool>* stop = nullptr;  // set by another thread or a signal handler: throws soon after
};

// As in TuneSettings.
struct OptimizeSettings {
  std::string log = {};
  double seconds = 60;  // for all of it
  bool database = true;
  int threads = 0;
  int64_t batch = 0;
  std::vector<std::string> input_shapes = {};
  std::string target = "cpu", precision = "f32";
  bool reproducible = false;
  std::vector<std::string> calibrate = {};
  double max_output_error = 0, max_error = 0;
  std::vector<std::string> forbid = {};
  std::string input_layout = "NCHW", output_layout = "NCHW";
  int64_t max_weights = 0, max_elements = 0, max_memory = 0;
  std::string wait = "sleep";
  std::string program = "tilesmith";
  std::function<void(const std::string&)> on_progress = {};
  const std::atomic<bool>* stop = nullptr;
};

// As in TuneSettings.
struct GraphTuneSettings {
  double seconds = 90;
  int rounds = 3;
  int threads = 0;
  int64_t batch = 0;
  std::vector<std::string> input_shapes = {};
  std::string target = "cpu", precision = "f32";
  bool reproducible = false;
  std::vector<std::string> calibrate = {};
  double max_output_error = 0, max_error = 0;
  std::vector<std::string> forbid = {};
  std::string input_layout = "NCHW", output_layout = "NCHW";
  int64_t max_weights = 0, max_elements = 0, max_memory = 0;
  std::string wait = "sleep";
  std::function<void(const std::string&)> on_progress = {};
  const std::atomic<bool>* stop = nullptr;
};

// Tunes the model's convolutions and chooses schedules and layouts of the whole network: writes `plan`, for
// LoadOptions. Nothing else may run in the process, or on the machine, meanwhile. What was measured is in the
// log whatever happens, and is not measured again.
TILESMITH_API void Tune(const std::string& model, const std::string& plan, const TuneSettings& settings = {});
TILESMITH_API void Tune(const ModelMemory& model, const std::string& plan, const TuneSettings& settings = {});

// Both halves of Tune at once, each getting the time where it gains most: `plan` holds the best plan so far
// from the first seconds on, also when it is stopped. Goes on from a log and a plan that are there.
TILESMITH_API void Optimize(const std::string& model, const std::string& plan,
                            const OptimizeSettings& settings = {});
TILESMITH_API void Optimize(const ModelMemory& model, const std::string& plan,
                            const OptimizeSettings& settings = {});

// The second half of Tune alone: chooses by a log that `tilesmith tune` or Tune wrote; an empty path stands
// for none, and default schedules. `plan` holds the best plan so far from the first solution on.
TILESMITH_API void GraphTune(const std::string& model, const std::string& log, const std::string& plan,
                             const GraphTuneSettings& settings = {});
TILESMITH_API void GraphTune(const ModelMemory& model, const std::string& log, const std::string& plan,
                             const GraphTuneSettings& settings = {});

struct QuantizeSettings {
  // .npz and .npy files, or directories of them, with inputs: as `tilesmith quantize --calibrate` takes them.
  // None: random ones.
  std::vector<std::string> calibrate = {};
  int64_t samples = 0;                 // at most; 0: all, or 8 random ones
  std::string method = "minmax";       // "percentile", "entropy", "mse"
  double percentile = 99.99;           // of values, that method percentile covers
  std::string activations = "u8";      // "i8", "i8-symmetric"
  bool reduce_range = false;           // weights of 7 bits, for runtimes whose sums of two products saturate
  std::vector<std::string> keep = {};  // nodes that stay float
  bool keep_first = false, keep_last = false;  // first, last convolutions and products stay float
  std::vector<std::string> op_types = {};      // only these are quantised; none: all that pay
  // Weights go into a second file, "OUTPUT.data", also where one would be less than 2 GiB.
  bool external_data = false;
  bool check = true;  // run both models on the inputs and compare them
  int threads = 0;    // as in LoadOptions, the next two likewise
  int64_t batch = 0;
  std::vector<std::string> input_shapes = {};
  std::function<void(const std::string&)> on_progress = {};  // as in TuneSettings, the next likewise
  const std::atomic<bool>* stop = nullptr;
};

// Writes the model with 8-bit integers (QuantizeLinear and DequantizeLinear around its nodes) to `output`, an
// ONNX file. Returns what `tilesmith quantize --json` prints: ranges, scales, and how far layers and outputs
// are from the float model's.
TILESMITH_API std::string Quantize(const std::string& model, const std::string& output,
                                   const QuantizeSettings& settings = {});
TILESMITH_API std::string Quantize(const ModelMemory& model, const std::string& output,
                                   const QuantizeSettings& settings = {});

// The seconds that a text such as "3m", "90s" or "500ms" stands for, as the command line takes them. Throws
// std::runtime_error naming `name` and the text.
TILESMITH_API double DurationSeconds(const std::string& name, const std::string& text);

}  // namespace tilesmith
