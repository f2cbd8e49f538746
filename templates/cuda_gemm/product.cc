#include "templates/cuda_gemm/product.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "layouts/base/sizes.h"
#include "layouts/data_type.h"
#include "ops/quantize/quantized_conv.h"
#include "templates/cuda/limits.h"
#include "templates/int8/byte_conv.h"
#include "templates/int8/byte_image.h"

namespace tilesmith::cuda_gemm {
namespace {

constexpr int64_t kReduceThreads = 256;

int64_t OwnPositions(const Product& p) {
  const int64_t items = p.together() ? p.tile.tile_x * p.tile.tile_rc / (4 * p.input_word()) : p.tile.tile_x;
  return CeilDiv(items, p.threads());
}

}  // namespace

int64_t Product::weight_word() const {
  return tile.tensor == Tensor::kBf16 ? 2 : tile.tensor == Tensor::kBytes ? 4 : 1;
}

bool Product::together() const { return cuda::InRuns(4 * input_word(), in, workload.ic, workload.g); }

bool Product::vector_out() const {
  return out.BlockFor(workload.oc) % 4 == 0 && (workload.g == 1 || filters() % 4 == 0);
}

// The last group writes the padding channels.
int64_t Product::padded_filters() const {
  return RoundUp(filters() + out.PaddedChannels(workload.oc) - workload.oc, tile.tile_f);
}

int64_t Product::threads() const {
  const int64_t parts = tile.tile_f / tile.part_f * (tile.tile_x / tile.part_x);
  return tile.tensor == Tensor::kNone ? parts : 32 * parts;
}

int64_t Product::registers() const {
  constexpr int64_t kAddresses = 48;
  const int64_t own = 4 * OwnPositions(*this);
  if (tile.tensor == Tensor::kNone) {
    const int64_t inputs = tile.part_x * (together() ? 4 : 1);
    return tile.part_f * tile.part_x + tile.part_f + inputs + own + kAddresses;
  }
  const int64_t sums = tile.part_f * tile.part_x / 32, halves = tile.tensor == Tensor::kThree ? 2 : 1;
  return sums + halves * (tile.part_f / 8 * 2 + 4) + own + kAddresses;
}

int64_t Product::input_row() const {
  if (together()) return tile.tile_rc / input_word() + 4;  // rows begin in different banks
  return tile.tile_x + (tile.tensor == Tensor::kNone ? 0 : 8);
}

int64_t Product::shared_bytes() const {
  const int64_t input = (together() ? tile.tile_x : tile.tile_rc / input_word()) * input_row();
  return tile.stages * (tile.tile_rc / weight_word() * weight_row() + input) * kFloatBytes;
}

int64_t Product::weight_floats() const {
  return (Checked(units()) * padded_words() * padded_filters()).value();
}

int64_t Product::partial_bytes() const {
  if (tile.split_k == 1) return 0;
  return (Checked(tile.split_k) * units() * positions() * padded_filters() * kFloatBytes).value();
}

int64_t Product::blocks() const {
  return CeilDiv(positions(), tile.tile_x) * (padded_filters() / tile.tile_f) * units() * tile.split_k;
}

std::string WhyInvalid(const Product& p, const Target& target) {
  const Tile& t = p.tile;
  const int64_t word = p.input_word();
  if (p.workload.ic / p.workload.g % word != 0 || p.in.BlockFor(p.workload.ic) % word != 0)
    return fmt::format("{} channels a group in {}: {} of a pixel make no word", p.workload.ic / p.workload.g,
                       p.in.ToString(), word);
  if (t.part_f > t.tile_f || t.part_x > t.tile_x)
    return fmt::format("parts of {} x {} in a tile of {} x {}", t.part_f, t.part_x, t.tile_f, t.tile_x);
  if (const std::string why = cuda::WhyNoBlock(target, p.threads(), p.registers(), p.shared_bytes());
      !why.empty())
    return why;
  if (t.split_k > p.steps())
    return fmt::format("split_k is {} for {} steps of tile_rc", t.split_k, p.steps());
  if (p.units() * t.split_k > cuda::kMaxGrid)
    return fmt::format("{} parts of sums (allowed: {})", p.units() * t.split_k, cuda::kMaxGrid);
  if (p.padded_filters() / t.tile_f > cuda::kMaxGrid) return "too many tiles of filters";
  if (p.partial_bytes() > cuda::kMaxScratch)
    return fmt::format("split_k leaves {} bytes of partial sums (allowed: {})", p.partial_bytes(),
                       cuda::kMaxScratch);
  return "";
}

void AddProduct(cuda::ProgramText& text, const Product& p, int64_t bias_at) {
  const Tile& t = p.tile;
  ConvWorkload words = p.workload;
  words.ic /= p.input_word();
  const Layout in = p.in.is_nhwc() ? p.in : Layout::Blocked(p.in.BlockFor(0) / p.input_word(), p.in.type());
  text.Begin("product");
  AddConv(text, words, in, p.out, bias_at);
  const bool ffma = t.tensor == Tensor::kNone;
  const std::pair<std::string_view, int64_t> constants[] = {
      {"BATCHED", p.batched},
      {"TOGETHER", p.together()},
      {"UNITS", p.units()},
      {"VECTOR_OUT", p.vector_out()},
      {"TILE_F", t.tile_f},
      {"TILE_P", t.tile_x},
      {"TILE_K", t.tile_rc / p.weight_word()},
      {"INPUT_WORDS", p.weight_word() / p.input_word()},
      {ffma ? "THREAD_F" : "WARP_F", t.part_f},
      {"STAGES", t.stages},
      {ffma ? "THREAD_P" : "WARP_P", t.part_x},
      {"K_PADDED", p.padded_words()},
      {"THREADS", p.threads()},
      {"BLOCKS", cuda::ResidentBlocks(p.threads(), p.registers())},
      {"F_PADDED", p.padded_filters()},
      {"WEIGHT_ROW", p.weight_row()},
      {"INPUT_ROW", p.input_row()}};
  for (const auto& [name, value] : constants) text.Constant(name, value);
  text.Constant("UNROLL", t.unroll).Macro("TENSOR", static_cast<int64_t>(t.tensor)).Macro("SPLIT", t.split_k);
  text.File("gemm.cu").End();
}

namespace {

// The first of its elements in the lowest bits.
template <typename At>
float WordOf(Tensor tensor, int64_t count, const At& at) {
  if (tensor != Tensor::kBf16 && tensor != Tensor::kBytes) return at(0);
  const int64_t bits = 32 / count;
  uint32_t word = 0;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t element =
        tensor == Tensor::kBf16 ? Bf16Bits(at(i)) : static_cast<uint8_t>(static_cast<int8_t>(at(i)));
    word |= element << (i * bits);
  }
  return std::bit_cast<float>(word);
}

}  // namespace

void PackWeights(const Product& p, const std::function<float(int64_t, int64_t, int64_t)>& at,
                 std::vector<float>& weights) {
  const int64_t words = p.padded_words(), filters = p.padded_filters(), each = p.weight_word();
  const size_t first = weights.size();
  weights.resize(first + static_cast<size_t>(p.weight_floats()));
  for (int64_t unit = 0; unit < p.units(); ++unit) {
    for (int64_t word = 0; word * each < p.depth(); ++word) {
      float* const row = weights.data() + first + (unit * words + word) * filters;
      for (int64_t f = 0; f < p.filters(); ++f) {
        row[f] = WordOf(p.tile.tensor, each, [&](int64_t i) {
          const int64_t k = word * each + i;
          return k < p.depth() ? at(unit, f, k) : 0;
        });
      }
    }
  }
}

std::vector<CudaLaunch> LaunchesOf(const Product& p, int64_t scratch_byte) {
  std::vector<CudaLaunch> launches(1);
  launches[0].function = "gemm";
  launches[0].grid = {CeilDiv(p.positions(), p.tile.tile_x), p.padded_filters() / p.tile.tile_f,
                      p.units() * p.tile.split_k};
  launches[0].threads = p.threads();
  launches[0].shared_bytes = p.shared_bytes();
  launches[0].inputs = {{.slot = 0}};
  const int64_t out_bytes = p.out.element_bytes();
  if (p.workload.post.sum) launches[0].inputs.push_back({.slot = 1, .element_bytes = out_bytes});
  launches[0].output.element_bytes = out_bytes;
  launches[0].scratch_byte = scratch_byte;
  if (p.tile.split_k == 1) return launches;
  CudaLaunch& reduce = launches.emplace_back(launches[0]);
  const int64_t outputs = PaddedElementCount(p.workload.output_shape(), p.out);
  reduce.function = "gemm_reduce";
  reduce.grid = {CeilDiv(outputs, kReduceThreads), 1, 1};
  reduce.threads = kReduceThreads;
  reduce.shared_bytes = 0;
  return launches;
}

namespace {

std::string_view TemplateOf(Tensor tensor) {
  switch (tensor) {
    case Tensor::kNone:
      return "cuda_direct";
    case Tensor::kBf16:
      return "cuda_tensor_bf16";
    case Tensor::kBytes:
      return "cuda_tensor_int8";
    default:
      return "cuda_tensor";
  }
}

// As requantize.cu reads it.
void AddRequantization(const QuantizedConvOp& op, std::span<const int16_t> centered,
                       std::vector<float>& weights) {
  const ConvWorkload& w = op.workload();
  const QuantizedConvParams& q = op.params();
  const bool real = q.output.type == DataType::kF32;
  const auto add = [&](int64_t number) {
    weights.push_back(std::bit_cast<float>(static_cast<uint32_t>(number)));
  };
  const int64_t zero = q.input.zero_points[0];
  add((zero & 0xff) * 0x01010101);
  if (real) {
    weights.resize(weights.size() + 10);
  } else {
    const Quantization& out = q.sum ? q.sum->output : q.output;
    const StoredRange range = RangeOf(out.type), limits = q.sum ? q.sum->limits : q.limits;
    for (const int64_t number :
         {range.low, range.high, out.zero_points[0], limits.low, limits.high, int32_t{FlipOf(out.type)}})
      add(number);
    const ResidualTerms terms = q.sum ? ResidualTermsOf(q) : ResidualTerms{};
    weights.insert(weights.end(), {terms.factor, terms.offset, terms.low, terms.high});
  }
  // Padding is the zero point, so that what it adds to a sum is the same everywhere.
  const int64_t terms = std::ssize(centered) / w.oc;
  for (int64_t f = 0; f < w.oc; ++f) {
    const auto own = centered.subspan(static_cast<size_t>(f * terms), static_cast<size_t>(terms));
    const int64_t bias = q.bias ? q.bias->data<int32_t>()[f] : 0;
    add(bias - zero * std::accumulate(own.begin(), own.end(), int64_t{0}));
  }
  weights.insert(weights.end(), op.multipliers().begin(), op.multipliers().end());
}

}  // namespace

LoopFeatures FeaturesOf(const Product& p) {
  const Tile& t = p.tile;
  const auto of = [](int64_t count) { return static_cast<double>(count); };
  LoopFeatures f;
  f.flops = 2 * of(CeilDiv(p.positions(), t.tile_x) * t.tile_x) * of(p.padded_filters()) * of(p.units()) *
            of(p.padded_depth());
  f.accumulators = of(t.part_f * t.part_x);
  f.fma_per_load = of(t.part_f * t.part_x) / of(t.part_f + t.part_x);
  f.code_bytes = of(p.shared_bytes());
  f.weight_bytes = of(p.weight_floats() * kFloatBytes);
  f.tasks = of(p.blocks());
  const double depth = of(p.padded_words()) / of(t.split_k);
  f.task_input_bytes = of(t.tile_x * kFloatBytes * p.weight_word() / p.input_word()) * depth;
  f.task_weight_bytes = of(t.tile_f * kFloatBytes) * depth;
  f.task_output_bytes = of(t.tile_f * t.tile_x * p.out.element_bytes());
  f.output_passes = of(t.split_k);
  f.scratch_bytes = of(p.partial_bytes());
  return f;
}

std::unique_ptr<ConvKernel> BuildKernel(const Product& p, const Target&, const ConvWeights& given) {
  const ConvWorkload& w = p.workload;
  const int64_t channels = w.ic / w.g, taps = w.kh * w.kw;
  const bool bytes = p.tile.tensor == Tensor::kBytes;
  std::vector<int16_t> centered;
  if (bytes) centered = ByteConvOf(w, given).CenteredWeights();
  CudaProgram program;
  PackWeights(
      p,
      [&](int64_t unit, int64_t f, int64_t k) {
        const int64_t at = ((unit * p.filters() + f) * channels + k % channels) * taps + k / channels;
        return bytes ? static_cast<float>(centered[static_cast<size_t>(at)]) : given.weights[at];
      },
      program.weights);
  const auto bias_at = static_cast<int64_t>(program.weights.size());
  if (bytes) {
    AddRequantization(*given.quantized, centered, program.weights);
  } else if (w.post.bias) {
    program.weights.insert(program.weights.end(), given.bias, given.bias + w.oc);
  }
  cuda::ProgramText text;
  AddProduct(text, p, bias_at);
  program.name = fmt::format("{} of {}", TemplateOf(p.tile.tensor), WorkloadToString(w));
  program.text = text.Take();
  program.launches = LaunchesOf(p);
  program.scratch_bytes = p.partial_bytes();
  program.input_alignment = p.together() ? 16 : 4;
  const int64_t at_once = !p.vector_out() ? 1 : p.tile.tensor == Tensor::kNone ? 4 : 2;
  program.output_alignment = at_once * p.out.element_bytes();
  return std::make_unique<CudaConv>(std::move(program));
}

LoopNest NestOf(const Product& p) {
  const Tile& t = p.tile;
  const bool ffma = t.tensor == Tensor::kNone;
  LoopNest nest;
  nest.tasks = {LoopOver("g", p.units(), 1, LoopKind::kTasks),
                LoopOver("oc", p.filters(), t.tile_f, LoopKind::kTasks),
                LoopOver("mb x oh x ow", p.positions(), t.tile_x, LoopKind::kTasks),
                LoopOver("kh x kw x ic", p.depth(), CeilDiv(p.steps(), t.split_k) * t.tile_rc,
                         LoopKind::kTasks, "blocks that share a sum")};
  const int64_t depth = std::min(p.depth(), CeilDiv(p.steps(), t.split_k) * t.tile_rc);
  LoopPart part;
  part.loops = {
      LoopOver("kh x kw x ic", depth, t.tile_rc, LoopKind::kLoop,
               fmt::format("a tile in shared memory, {} copied ahead", t.stages - 1)),
      LoopOver("oc", std::min(t.tile_f, p.filters()), t.part_f, LoopKind::kVector,
               ffma ? "threads" : "warps"),
      LoopOver("mb x oh x ow", std::min(t.tile_x, p.positions()), t.part_x, LoopKind::kVector,
               ffma ? "threads" : "warps"),
      LoopOver("kh x kw x ic", std::min(t.tile_rc, depth), 1, LoopKind::kUnrolled),
      LoopOver("oc", std::min(t.part_f, p.filters()), 1, ffma ? LoopKind::kUnrolled : LoopKind::kVector),
      LoopOver("mb x oh x ow", std::min(t.part_x, p.positions()), 1,
               ffma ? LoopKind::kUnrolled : LoopKind::kVector)};
  part.body = ffma ? "sum += weight * input" : "sum += weight * input, by tensor cores";
  nest.parts = {std::move(part)};
  const double row = static_cast<double>(depth * kFloatBytes);
  nest.tile_input_bytes = row * static_cast<double>(t.part_x);
  nest.tile_weight_bytes = row * static_cast<double>(t.part_f);
  nest.tile_output_bytes = static_cast<double>(t.part_f * t.part_x * kFloatBytes);
  return nest;
}

}  // namespace tilesmith::cuda_gemm
