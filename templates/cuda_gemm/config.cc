#include "templates/cuda_gemm/config.h"

#include <algorithm>
#include <limits>

#include "layouts/base/sizes.h"
#include "layouts/data_type.h"
#include "templates/base/config.h"
#include "templates/base/conv_template.h"
#include "templates/base/schedule_template.h"
#include "templates/cuda/limits.h"
#include "templates/cuda_gemm/product.h"

namespace tilesmith {
namespace cuda_gemm {
namespace {

// Multiplications of a cycle, by what multiplies, and warps that are needed for as many.
struct Rate {
  double products;
  double warps;
};
Rate RateOf(Tensor tensor) {
  switch (tensor) {
    case Tensor::kNone:
      return {60, 4};
    case Tensor::kThree:
      return {44, 5};
    case Tensor::kOne:
      return {130, 5};
    case Tensor::kBf16:
      return {260, 5};
    case Tensor::kBytes:
      return {520, 5};
  }
  return {60, 4};
}

// Blocks that a multiprocessor has room for.
int64_t BlocksAtOnce(const Product& p, const Target& target) {
  constexpr int64_t kThreads = 2048, kKeptRegisters = 115;  // of a thread, beside its sums
  const int64_t threads = p.threads();
  const int64_t sums = p.tile.part_f * p.tile.part_x / (p.tile.tensor == Tensor::kNone ? 1 : 32);
  return std::max<int64_t>(
      1, std::min({kThreads / threads, target.l1d_bytes / std::max<int64_t>(p.shared_bytes(), 1),
                   cuda::kRegisters / ((sums + kKeptRegisters) * threads)}));
}

}  // namespace

double EstimatedCycles(const Product& p, const Target& target) {
  constexpr double kCopied = 18.5;   // bytes of a cycle
  constexpr double kLatency = 1040;  // of memory
  constexpr double kSync = 150;      // of a step
  constexpr double kBegin = 1340;    // of blocks that run together
  constexpr double kReduce = 2800;   // a second launch
  constexpr double kPartial = 7;     // bytes of partial sums that all multiprocessors move in one's cycle
  const Tile& t = p.tile;
  const auto of = [](int64_t count) { return static_cast<double>(count); };
  const Rate rate = RateOf(t.tensor);
  const double steps = of(CeilDiv(p.steps(), t.split_k));
  const double multiplying = of(t.tile_f * t.tile_x * t.tile_rc) / rate.products;
  const int64_t words = t.tile_f * (t.tile_rc / p.weight_word()) + t.tile_x * (t.tile_rc / p.input_word());
  const double copying = of(words * 4) / kCopied;
  const double alone = std::max({multiplying * std::max(1.0, rate.warps * 32 / of(p.threads())),
                                 kLatency / of(t.stages - 1), copying}) +
                       kSync;
  const int64_t cores = std::max<int64_t>(target.cores, 1);
  const int64_t blocks = CeilDiv(p.blocks(), cores);
  const double rounds = of(CeilDiv(blocks, BlocksAtOnce(p, target)));
  const double cycles = std::max(rounds * alone, of(blocks) * std::max(multiplying, copying)) * steps;
  const double reducing = t.split_k == 1 ? 0 : kReduce + 2 * of(p.partial_bytes()) / (kPartial * of(cores));
  return cycles + kBegin * rounds + reducing;
}

namespace {

constexpr int64_t kMinFilters = 8;               // of a group: fewer leave most of a tile empty
constexpr int64_t kBf16Word = 2, kByteWord = 4;  // elements in a word of what is multiplied

Product Read(const ConvWorkload& w, const Config& config) {
  Product p;
  p.workload = w;
  p.in = LayoutOfBlockKnob(config.Get("ic_block"));
  p.out = LayoutOfBlockKnob(config.Get("oc_block"));
  p.tile = {.tile_f = config.Get("tile_f"),
            .tile_x = config.Get("tile_x"),
            .tile_rc = config.Get("tile_rc"),
            .part_f = config.Get("part_f"),
            .part_x = config.Get("part_x"),
            .stages = config.Get("stages"),
            .split_k = config.Get("split_k")};
  return p;
}

std::vector<Knob> CommonKnobs(const ConvWorkload& w, int64_t word = 1) {
  return {{"ic_block", cuda::BlockKnob(w.ic), "channels per block of the input's layout; 0 is NHWC"},
          {"oc_block", cuda::BlockKnob(w.oc), "channels per block of the output's layout; 0 is NHWC"},
          {"tile_f", {16, 32, 64, 128}, "filters of a block of threads"},
          {"tile_x", {32, 64, 128}, "positions of a block of threads"},
          {"tile_rc", {8 * word, 16 * word, 32 * word}, "taps x channels in shared memory at a time"},
          {"stages", {2, 3, 4}, "tiles in shared memory, copied ahead"},
          {"split_k", {1, 2, 4, 8, 16}, "blocks that share the sum of an output"}};
}

void AddWarpTiles(std::vector<Knob>& knobs) {
  knobs.push_back({"part_f", {16, 32, 64}, "filters of a warp"});
  knobs.push_back({"part_x", {16, 32, 64}, "positions of a warp"});
}

// Tiles of which more than half would be padding.
std::string WhyWasteful(const Product& p) {
  const bool smallest = p.tile.tile_f == 16;
  if (!smallest && p.tile.tile_f >= 2 * p.filters())
    return fmt::format("tile_f is {} for {} filters", p.tile.tile_f, p.filters());
  return "";
}

std::string Why(const Product& p, const Target& target) {
  const std::string wasteful = WhyWasteful(p);
  return wasteful.empty() ? WhyInvalid(p, target) : wasteful;
}

// The fastest by estimate of some tiles, in front of whatever else is valid. `word`: elements in one of the
// operands'. Where they do not say how the input lies, as is best for floats.
Config Preset(const ConvWorkload& w, const Target& target, std::vector<Config> parts, int64_t word,
              Product (*read)(const ConvWorkload&, const Config&, const Target&)) {
  Config best;
  double best_cycles = std::numeric_limits<double>::infinity();
  const auto try_it = [&](const Config& config) {
    const Product p = read(w, config, target);
    if (!Why(p, target).empty()) return;
    const double cycles = EstimatedCycles(p, target);
    if (cycles < best_cycles) best_cycles = cycles, best = config;
  };
  for (Config& config : parts) {
    if (!config.Find("ic_block")) config.Set("ic_block", w.ic / w.g % 4 == 0 ? 0 : 1);
    config.Set("oc_block", w.oc / w.g % 4 == 0 ? 0 : 1);
    for (const int64_t tile_rc : {16 * word, 32 * word}) {
      config.Set("tile_rc", tile_rc);
      for (const int64_t stages : {2, 3, 4}) {
        config.Set("stages", stages);
        for (const int64_t split : {1, 2, 4, 8, 16}) {
          config.Set("split_k", split);
          try_it(config);
        }
      }
    }
  }
  return best;
}

Config Part(int64_t tile_f, int64_t tile_x, int64_t part_f, int64_t part_x) {
  Config config;
  config.Set("tile_f", tile_f);
  config.Set("tile_x", tile_x);
  config.Set("part_f", part_f);
  config.Set("part_x", part_x);
  return config;
}

std::vector<Config> WarpParts() {
  return {Part(16, 64, 16, 16),  Part(32, 64, 16, 32),  Part(64, 64, 32, 32),
          Part(64, 128, 32, 32), Part(128, 64, 32, 32), Part(128, 128, 64, 32)};
}

Product ReadBf16(const ConvWorkload& w, const Config& config, const Target&) {
  Product p = Read(w, config);
  p.tile.tensor = Tensor::kBf16;
  const StoredTypes types = ReadTypes(config);
  p.in = p.in.WithType(types.in);
  p.out = p.out.WithType(types.out);
  return p;
}

Product ReadInt8(const ConvWorkload& w, const Config& config, const Target&) {
  Product p = Read(w, config);
  p.tile.tensor = Tensor::kBytes;
  p.in = p.in.WithType(w.bytes->in);
  p.out = p.out.WithType(w.bytes->out);
  return p;
}

ConfigSpace DirectSpace(const ConvWorkload& w, const Target& target) {
  std::vector<Knob> knobs = CommonKnobs(w);
  knobs.push_back({"part_f", {4, 8}, "filters of a thread"});
  knobs.push_back({"part_x", {4, 8}, "positions of a thread"});
  knobs.push_back({"unroll", {4, 8}, "steps of tile_rc unrolled, where channels lie apart"});
  return ConfigSpace(std::move(knobs), [w, target](const Config& config) -> std::string {
    const Product p = ReadDirect(w, config, target);
    if (p.together() && p.tile.unroll != 4) return "unroll has no meaning where channels lie together";
    return Why(p, target);
  });
}

ConfigSpace TensorSpace(const ConvWorkload& w, const Target& target) {
  std::vector<Knob> knobs = CommonKnobs(w);
  AddWarpTiles(knobs);
  knobs.push_back({"products", {3, 1}, "TF32 products that make one of floats; 1 only with tf32"});
  return ConfigSpace(std::move(knobs), [w, target](const Config& config) -> std::string {
    if (config.Get("products") == 1 && !target.tf32)
      return "rounds operands to TF32, which was not asked for";
    return Why(ReadTensor(w, config, target), target);
  });
}

ConfigSpace Bf16Space(const ConvWorkload& w, const Target& target) {
  std::vector<Knob> knobs = CommonKnobs(w, kBf16Word);
  AddWarpTiles(knobs);
  for (Knob& knob : TypeKnobs()) knobs.push_back(std::move(knob));
  return ConfigSpace(std::move(knobs),
                     [w, target](const Config& config) { return Why(ReadBf16(w, config, target), target); });
}

ConfigSpace Int8Space(const ConvWorkload& w, const Target& target) {
  std::vector<Knob> knobs = CommonKnobs(w, kByteWord);
  AddWarpTiles(knobs);
  return ConfigSpace(std::move(knobs),
                     [w, target](const Config& config) { return Why(ReadInt8(w, config, target), target); });
}

}  // namespace

Product ReadDirect(const ConvWorkload& w, const Config& config, const Target&) {
  Product p = Read(w, config);
  p.tile.unroll = config.Get("unroll");
  return p;
}

Product ReadTensor(const ConvWorkload& w, const Config& config, const Target&) {
  Product p = Read(w, config);
  p.tile.tensor = config.Get("products") == 1 ? Tensor::kOne : Tensor::kThree;
  return p;
}

Config DirectDefault(const ConvWorkload& w, const Target& target) {
  std::vector<Config> parts = {Part(16, 64, 4, 4), Part(32, 64, 4, 4),  Part(64, 64, 4, 4),
                               Part(64, 64, 8, 4), Part(64, 128, 8, 8), Part(128, 128, 8, 8)};
  for (Config& config : parts) config.Set("unroll", 4);
  return Preset(w, target, std::move(parts), 1, ReadDirect);
}

Config TensorDefault(const ConvWorkload& w, const Target& target) {
  std::vector<Config> parts = WarpParts();
  for (Config& config : parts) config.Set("products", target.tf32 ? 1 : 3);
  return Preset(w, target, std::move(parts), 1, ReadTensor);
}

namespace {

Config Bf16Default(const ConvWorkload& w, const Target& target) {
  std::vector<Config> parts = WarpParts();
  const bool in_words = w.ic / w.g % kBf16Word == 0;
  for (Config& config : parts) {
    config.Set("ic_block", in_words ? 0 : 1);
    SetTypes({in_words ? DataType::kBf16 : DataType::kF32, DataType::kBf16}, config);
  }
  return Preset(w, target, std::move(parts), kBf16Word, ReadBf16);
}

Config Int8Default(const ConvWorkload& w, const Target& target) {
  std::vector<Config> parts = WarpParts();
  for (Config& config : parts) config.Set("ic_block", 0);
  return Preset(w, target, std::move(parts), kByteWord, ReadInt8);
}

Support SupportsProduct(const ConvWorkload& w, const Target&) {
  if (w.oc / w.g < kMinFilters)
    return Support::No(fmt::format("{} filters a group, fewer than {}", w.oc / w.g, kMinFilters));
  if (w.g > cuda::kMaxGrid) return Support::No(fmt::format("{} groups (at most {})", w.g, cuda::kMaxGrid));
  if (static_cast<double>(w.mb) * static_cast<double>(w.oh) * static_cast<double>(w.ow) > cuda::kMaxPositions)
    return Support::No("more than 2^31 - 1 positions");
  return FitsDisplacements(w);
}

Support SupportsInt8(const ConvWorkload& w, const Target& target) {
  if (w.bytes->weights != DataType::kI8)
    return Support::No("its weights less their zero points are no signed bytes");
  if (w.ic / w.g % kByteWord != 0)
    return Support::No(fmt::format("{} channels a group, no multiple of {}", w.ic / w.g, kByteWord));
  return SupportsProduct(w, target);
}

// An operand rounded to TF32 is off by 2^-11 of it, so a product of two by 2^-10. Of operands in two parts
// the second is off by 2^-11 of 2^-11, and the product of the two second parts is left out: 3 * 2^-22. Tensor
// cores cut their sums off instead of rounding them, and there are three of them.
double TensorErrorFactor(const ConvWorkload& w, const Config& config) {
  const auto terms = static_cast<double>(w.ic / w.g * w.kh * w.kw + 2);
  const double sum = terms * std::numeric_limits<float>::epsilon();
  return config.Get("products") == 1 ? 2 + 1.01 * 0x1p-10 / sum : 6 + 3.01 * 0x1p-22 / sum;
}

// How operands are rounded to bf16 comes on top of that (TypeRounding).
double Bf16ErrorFactor(const ConvWorkload&, const Config&) { return 2; }

}  // namespace

}  // namespace cuda_gemm

const ConvTemplate& CudaDirectTemplate() {
  static const DeviceTemplate<cuda_gemm::Product> instance({.name = "cuda_direct",
                                                            .device = kCudaDevice,
                                                            .least_compute = 80,
                                                            .supports = cuda_gemm::SupportsProduct,
                                                            .preset_decides = true,
                                                            .space = cuda_gemm::DirectSpace,
                                                            .preset = cuda_gemm::DirectDefault,
                                                            .read = cuda_gemm::ReadDirect});
  return instance;
}

const ConvTemplate& CudaTensorTemplate() {
  static const DeviceTemplate<cuda_gemm::Product> instance({.name = "cuda_tensor",
                                                            .device = kCudaDevice,
                                                            .least_compute = 80,
                                                            .supports = cuda_gemm::SupportsProduct,
                                                            .preset_decides = true,
                                                            .space = cuda_gemm::TensorSpace,
                                                            .preset = cuda_gemm::TensorDefault,
                                                            .read = cuda_gemm::ReadTensor,
                                                            .error_factor = cuda_gemm::TensorErrorFactor});
  return instance;
}

const ConvTemplate& CudaTensorBf16Template() {
  static const DeviceTemplate<cuda_gemm::Product> instance({.name = "cuda_tensor_bf16",
                                                            .device = kCudaDevice,
                                                            .type = DataType::kBf16,
                                                            .least_compute = 80,
                                                            .supports = cuda_gemm::SupportsProduct,
                                                            .preset_decides = true,
                                                            .space = cuda_gemm::Bf16Space,
                                                            .preset = cuda_gemm::Bf16Default,
                                                            .read = cuda_gemm::ReadBf16,
                                                            .type_knobs = {"in_type", "out_type"},
                                                            .factors = DataType::kBf16,
                                                            .error_factor = cuda_gemm::Bf16ErrorFactor});
  return instance;
}

const ConvTemplate& CudaTensorInt8Template() {
  static const DeviceTemplate<cuda_gemm::Product> instance({.name = "cuda_tensor_int8",
                                                            .device = kCudaDevice,
                                                            .type = DataType::kI8,
                                                            .least_compute = 80,
                                                            .supports = cuda_gemm::SupportsInt8,
                                                            .preset_decides = true,
                                                            .space = cuda_gemm::Int8Space,
                                                            .preset = cuda_gemm::Int8Default,
                                                            .read = cuda_gemm::ReadInt8});
  return instance;
}

}  // namespace tilesmith
