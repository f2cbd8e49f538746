#include "graph_tuner/compiled/compiled_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <tuple>

#include "graph_tuner/executor/network_regions.h"
#include "layouts/base/arm_cpu.h"
#include "layouts/base/check.h"
#include "layouts/base/thread_team.h"
#include "ops/base/saved_op.h"
#include "ops/quantize/quantized_conv.h"

namespace tilesmith {

void Put(ByteWriter& writer, const Config& config) { writer.Write(config.knobs()); }

void Get(ByteReader& reader, Config& config) {
  config = {};
  for (const auto& [name, value] : reader.Read<std::vector<std::pair<std::string, int64_t>>>())
    config.Set(name, value);
}

void Put(ByteWriter& writer, const KernelPart& part) {
  DataWriter& memory = part.is_code ? writer.code() : writer.data();
  writer.WriteAll(part.is_code, memory.Add(part.memory.bytes()), part.functions);
}

void Get(ByteReader& reader, KernelPart& part) {
  reader.Read(part.is_code);
  const auto place = reader.Read<DataPlace>();
  part.memory = SharedBuffer(part.is_code ? reader.CodeAt(place) : reader.DataAt(place));
  reader.Read(part.functions);
  for (const uint32_t begin : part.functions)
    if (begin >= place.bytes)
      ByteReader::Refuse(fmt::format("a function at {} of {} bytes", begin, place.bytes));
}

// It is known from the region.
void Put(ByteWriter&, const StepRegion&) {}
void Get(ByteReader&, StepRegion&) {}

namespace {

constexpr std::array<char, 8> kMagic = {'T', 'S', 'M', 'I', 'T', 'H', 'C', '\n'};
constexpr uint32_t kFormatVersion = 4;
constexpr int64_t kSectionAlignment = 4096;

enum SectionNumber { kTables, kData, kCode, kSections };

struct Header {
  std::array<char, 8> magic = kMagic;
  uint32_t version = kFormatVersion;
  uint32_t header_bytes = sizeof(Header);
  int64_t file_bytes = 0;
  std::array<CompiledSection, kSections> sections;
  uint64_t sum = 0;  // of the header in front of it
};
static_assert(sizeof(Header) == 8 + 4 + 4 + 8 + kSections * 24 + 8);

// Over words of 8 bytes, little-endian, the last one filled up with zeros, like StableHash over bytes; in
// four lanes, since each product waits for the one before.
class StableSum {
 public:
  void Add(std::span<const std::byte> bytes) {
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), sizeof(uint64_t)))) {
      uint64_t word = 0;
      std::memcpy(&word, bytes.data(), std::min(bytes.size(), sizeof(word)));
      uint64_t& lane = lanes_[words_++ % lanes_.size()];
      lane = (lane ^ word) * kPrime;
      lane ^= lane >> 29;
    }
  }
  uint64_t value() const {
    uint64_t sum = words_;
    for (const uint64_t lane : lanes_) sum = (sum ^ lane) * kPrime;
    return sum;
  }

 private:
  static constexpr uint64_t kPrime = 1099511628211U;
  std::array<uint64_t, 4> lanes_ = {1, 2, 3, 4};
  uint64_t words_ = 0;
};

uint64_t SumOf(std::span<const std::byte> bytes) {
  StableSum sum;
  sum.Add(bytes);
  return sum.value();
}

// What a network's tables hold behind its summary, which has inputs and outputs.
template <typename Stream, typename Network>
void ForEachTable(Network& network, const Stream& stream) {
  stream(network.program);
  stream(network.places);
  stream(network.recipes);
  stream(network.memory);
  stream(network.steps);
  stream(network.touches);
  stream(network.neighbour_waits);
  stream(network.tail);
}

void CheckWritable(const CompiledModel& model) {
  const CompiledNetwork& network = *model.network;
  if (network.device->target().device != kCpuDevice) {
    throw Error(ErrorCode::kUsage,
                fmt::format("network \"{}\" is compiled for {}: only networks on CPUs can be "
                            "written to files",
                            model.origin.network, network.device->target().device));
  }
  for (size_t i = 0; i < network.recipes.size(); ++i) {
    const Op* op = network.recipes[i].op.get();
    if (dynamic_cast<const QuantizedConvOp*>(op) == nullptr) continue;
    if (dynamic_cast<const ConvKernel*>(network.kernels[i].get()) != nullptr) continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("node \"{}\" ({}) has no kernel but its reference, which cannot "
                            "be written to a file",
                            network.steps[i].name, op->Signature()));
  }
}

// Writes pieces one behind the other, zeros between them.
class PiecewiseWriter {
 public:
  explicit PiecewiseWriter(const std::function<void(std::span<const std::byte>)>& write) : write_(write) {}
  void WriteAt(int64_t offset, std::span<const std::byte> bytes) {
    static constexpr std::array<std::byte, kSectionAlignment> kZeros = {};
    while (at_ < offset) {
      const auto count = static_cast<size_t>(std::min(offset - at_, kSectionAlignment));
      write_(std::span(kZeros).first(count));
      at_ += static_cast<int64_t>(count);
    }
    TILESMITH_CHECK(at_ == offset, "{} is behind {}", at_, offset);
    if (!bytes.empty()) write_(bytes);
    at_ += std::ssize(bytes);
  }

 private:
  const std::function<void(std::span<const std::byte>)>& write_;
  int64_t at_ = 0;
};

// What a section of memory sums up to, zeros between its pieces.
uint64_t SumOf(const DataWriter& data) {
  StableSum sum;
  int64_t at = 0;
  for (const auto& [place, bytes] : data.all()) {
    static constexpr std::array<std::byte, 64> kZeros = {};
    sum.Add(std::span(kZeros).first(static_cast<size_t>(place.offset - RoundUp(at, 8))));
    sum.Add(bytes);
    at = place.offset + place.bytes;
  }
  sum.Add(std::vector<std::byte>(static_cast<size_t>(data.bytes() - RoundUp(at, 8))));
  return sum.value();
}

std::string NeedsOf(const CompiledSummary& summary) {
  std::string text = VectorsText(summary.target);
  if (summary.target.amx) text += " with AMX";
  if (!summary.target.amx && summary.target.bf16) text += " with BF16";
  if (!summary.target.bf16 && summary.target.vnni) text += " with VNNI";
  std::vector<std::string> shapes;
  shapes.reserve(summary.inputs.size());
  for (const UserTensor& input : summary.inputs) shapes.push_back(ShapeToString(input.shape));
  return fmt::format("{}, {} threads, inputs {}", text, summary.threads, fmt::join(shapes, " and "));
}

void CheckSummary(const CompiledSummary& summary) {
  constexpr int kMostThreads = 1 << 12;
  if (summary.threads < 1 || summary.threads > kMostThreads)
    ByteReader::Refuse(fmt::format("a network for {} threads", summary.threads));
  for (const std::vector<UserTensor>* tensors : {&summary.inputs, &summary.outputs}) {
    for (const UserTensor& tensor : *tensors)
      CheckShape(tensor.shape, {.tensor_elements = kMaxTensorElements});
  }
}

// Refuses tables whose numbers lead out of them.
class TableCheck {
 public:
  explicit TableCheck(const CompiledNetwork& network) : network_(network), program_(network.program) {}

  void Run() const {
    const size_t steps = program_.steps.size(), buffers = program_.buffers.size();
    const bool fit = network_.places.size() == buffers && network_.recipes.size() == steps &&
                     network_.steps.size() == steps && network_.touches.size() == steps &&
                     network_.neighbour_waits.size() == steps &&
                     network_.memory.offsets.size() == buffers + steps + program_.regions.size();
    Need(fit, "tables of different sizes");
    for (size_t i = 0; i < buffers; ++i) CheckBuffer(i);
    for (const Value& value : program_.values) {
      Need(Below(value.buffer, buffers), "a value without a buffer");
      CheckShape(value.shape, {.tensor_elements = kMaxTensorElements});
      const TensorBuffer& buffer = program_.buffers[value.buffer];
      const int64_t images = value.shape.empty() ? 1 : value.shape[0];
      const int64_t bytes = PaddedBytes(value.shape, value.layout);
      Need(bytes <= (Checked(buffer.images) * buffer.image_bytes).value() &&
               (images == buffer.images || buffer.dense_only || buffer.images <= 1 || images <= 1),
           "a value larger than its buffer");
    }
    for (size_t i = 0; i < steps; ++i) CheckStep(i);
    CheckRegions();
  }

 private:
  static void Need(bool holds, std::string_view wrong) {
    if (!holds) ByteReader::Refuse(std::string(wrong));
  }
  static bool Below(int64_t index, size_t count) { return index >= 0 && index < static_cast<int64_t>(count); }

  void CheckBuffer(size_t i) const {
    const TensorBuffer& buffer = program_.buffers[i];
    const Place& place = network_.places[i];
    Need(buffer.images >= 0 && buffer.image_bytes >= 0, "a buffer of a negative size");
    Need(Below(place.root, program_.buffers.size()) && place.offset >= 0 && place.image_stride >= 0,
         "a buffer without a place");
    const TensorBuffer& root = program_.buffers[place.root];
    Need(buffer.slice_of < 0 ||
             (std::cmp_greater(buffer.slice_of, i) && Below(buffer.slice_of, program_.buffers.size())),
         "a slice of no concat");
    Need(!root.rolls || std::cmp_equal(place.root, i), "a buffer in one that rolls");
    const Checked end = buffer.images == 0 ? Checked(0)
                                           : Checked(place.offset) + buffer.image_bytes +
                                                 Checked(buffer.images - 1) * place.image_stride;
    switch (root.source) {
      case TensorBuffer::Source::kConstant:
        Need(root.constant != nullptr && end.value() <= root.constant->bytes(),
             "a constant that is too small");
        break;
      case TensorBuffer::Source::kInput:
        Need(Below(root.input, network_.inputs.size()) && end.value() <= BytesOf(network_.inputs[root.input]),
             "a buffer outside its input");
        break;
      case TensorBuffer::Source::kComputed:
        if (root.output >= 0) {
          Need(Below(root.output, network_.outputs.size()) &&
                   end.value() <= BytesOf(network_.outputs[root.output]),
               "a buffer outside its output");
        } else {
          if (root.rolls) break;
          const int64_t offset = network_.memory.offsets[place.root];
          Need(offset >= 0 && (end + offset).value() <= network_.memory.bytes, "a buffer outside the memory");
        }
        break;
      default:
        Need(false, "a buffer of no known kind");
    }
  }

  // Regions follow each other, and their steps say so; nobody else reads what rolls.
  void CheckRegions() const {
    int end = 0;
    for (size_t i = 0; i < program_.regions.size(); ++i) {
      const Region& region = program_.regions[i];
      Need(region.first >= end && region.first < region.last && region.last <= std::ssize(program_.steps) &&
               region.band_rows >= 1 && region.band_rows <= kMaxTensorElements,
           "a region of no steps");
      end = region.last;
    }
    std::vector<int> written_in(program_.buffers.size(), -1);
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      const Step& step = program_.steps[i];
      const auto inside = std::ranges::find_if(program_.regions, [&](const Region& region) {
        return std::cmp_greater_equal(i, region.first) && std::cmp_less(i, region.last);
      });
      const int region =
          inside == program_.regions.end() ? -1 : static_cast<int>(inside - program_.regions.begin());
      Need(step.region == region, "a step of another region");
      written_in[program_.values[step.write].buffer] = region;
    }
    for (const Step& step : program_.steps) {
      const auto check = [&](int value) {
        const int index = program_.values[value].buffer;
        const TensorBuffer& buffer = program_.buffers[index];
        if (!buffer.rolls) return;
        Need(buffer.source == TensorBuffer::Source::kComputed && buffer.slice_of < 0 && buffer.output < 0 &&
                 written_in[index] == step.region && step.region >= 0,
             "a buffer that rolls outside of its region");
      };
      check(step.write);
      for (const int value : step.reads) check(value);
    }
  }

  static int64_t BytesOf(const UserTensor& tensor) { return PaddedBytes(tensor.shape, tensor.layout); }

  void CheckStep(size_t i) const {
    const Step& step = program_.steps[i];
    const KernelRecipe& recipe = network_.recipes[i];
    Need(step.kind >= StepKind::kNode && step.kind <= StepKind::kCopy && recipe.kind == step.kind,
         "a step of no known kind");
    Need(step.split >= Split::kEven && step.split <= Split::kOne, "a step dealt in no known way");
    Need(Below(step.write, program_.values.size()), "a step that writes no value");
    Need(std::ranges::all_of(step.reads, [&](int value) { return Below(value, program_.values.size()); }),
         "a step that reads no value");
    Need(step.kind == StepKind::kNode || step.reads.size() == 1, "a step that moves more than one value");
    const int64_t scratch = network_.memory.offsets[network_.ScratchIndex(i)];
    Need(scratch >= 0 && scratch <= network_.memory.bytes, "scratch outside the memory");
    if (step.kind != StepKind::kNode) return;
    if (recipe.conv_template.empty()) {
      Need(recipe.op != nullptr && recipe.inputs.size() == step.reads.size(), "a step without an op");
      for (size_t slot = 0; slot < step.reads.size(); ++slot)
        Need(recipe.inputs[slot] == program_.values[step.reads[slot]].shape, "an op of other inputs");
      Need(recipe.output == program_.values[step.write].shape, "an op of another output");
    } else {
      Need(KnownConvTemplate(recipe.conv_template) != nullptr, "a template that is not known");
      ValidateWorkload(recipe.workload);
    }
  }

  const CompiledNetwork& network_;
  const Program& program_;
};

void BuildKernels(CompiledNetwork& network) {
  network.kernels.resize(network.recipes.size());
  ForEachIndex(
      std::ssize(network.recipes),
      [&](int64_t i) {
        const auto index = static_cast<size_t>(i);
        network.kernels[index] = RebuildKernel(network.recipes[index], *network.device);
      },
      network.device->threads());
  try {
    network.regions = CompileRegions(network, TouchesOf(network));
  } catch (const Error& error) {
    ByteReader::Refuse(error.what());
  }
  const auto check = [&](size_t index, int64_t bytes) {
    const int64_t offset = network.memory.offsets[index];
    if (offset < 0 || (Checked(offset) + bytes).value() > network.memory.bytes)
      ByteReader::Refuse("scratch outside the memory");
  };
  for (size_t i = 0; i < network.recipes.size(); ++i) {
    if (network.program.steps[i].region < 0)
      check(network.ScratchIndex(i), network.kernels[i]->ScratchBytes(network.device->threads()));
  }
  for (size_t i = 0; i < network.regions.size(); ++i)
    check(network.RegionIndex(i), RegionScratchBytes(network, i));
}

}  // namespace

bool RunsCode(const Target& compiled, const Target& cpu) {
  return compiled.device == kCpuDevice && cpu.device == kCpuDevice && Includes(cpu.isa, compiled.isa) &&
         compiled.sve_bytes <= cpu.sve_bytes && (cpu.dot || !compiled.dot) && (cpu.i8mm || !compiled.i8mm) &&
         (cpu.vnni || !compiled.vnni) && (cpu.bf16 || !compiled.bf16) && (cpu.amx || !compiled.amx);
}

void WriteCompiled(std::span<const CompiledModel> models,
                   const std::function<void(std::span<const std::byte>)>& write) {
  DataWriter data, code;
  std::vector<std::vector<std::byte>> tables;
  std::vector<CompiledSummary> summaries;
  for (const CompiledModel& model : models) {
    const CompiledNetwork& network = *model.network;
    CheckWritable(model);
    ByteWriter writer(&data, &code);
    ForEachTable(network, [&](const auto& table) { writer.Write(table); });
    tables.push_back(writer.bytes());
    summaries.push_back({.origin = model.origin,
                         .target = network.device->target(),
                         .threads = network.device->threads(),
                         .inputs = network.inputs,
                         .outputs = network.outputs});
  }
  ByteWriter all_summaries(&data, &code), all(&data, &code);
  all_summaries.Write(summaries);
  all.WriteAll(uint64_t{tables.size()}, uint64_t{all_summaries.bytes().size()});
  const size_t front =
      all.bytes().size() + tables.size() * sizeof(CompiledSection) + all_summaries.bytes().size();
  auto end = static_cast<int64_t>(front);
  for (const std::vector<std::byte>& table : tables) {
    all.Write(CompiledSection{end, std::ssize(table), SumOf(table)});
    end += std::ssize(table);
  }
  all.WriteBytes(all_summaries.bytes());
  for (const std::vector<std::byte>& table : tables) all.WriteBytes(table);

  Header header;
  header.sections[kTables] = {kSectionAlignment, end, SumOf(std::span(all.bytes()).first(front))};
  const auto behind = [](const CompiledSection& section) {
    return RoundUp(section.offset + section.bytes, kSectionAlignment);
  };
  header.sections[kData] = {behind(header.sections[kTables]), data.bytes(), SumOf(data)};
  header.sections[kCode] = {behind(header.sections[kData]), code.bytes(), SumOf(code)};
  header.file_bytes = behind(header.sections[kCode]);
  const auto header_bytes = std::as_bytes(std::span(&header, 1));
  header.sum = SumOf(header_bytes.first(offsetof(Header, sum)));

  PiecewiseWriter writer(write);
  writer.WriteAt(0, header_bytes);
  writer.WriteAt(header.sections[kTables].offset, all.bytes());
  for (const auto& [section, memory] : {std::pair(kData, &data), std::pair(kCode, &code)}) {
    for (const auto& [place, bytes] : memory->all())
      writer.WriteAt(header.sections[section].offset + place.offset, bytes);
  }
  writer.WriteAt(header.file_bytes, {});
}

// The whole file, readable; and its code, executable, which is never writable.
struct CompiledFile::Mapping {
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (file >= 0) close(file);
    if (all != MAP_FAILED) munmap(all, bytes);
    if (code != MAP_FAILED) munmap(code, code_bytes);
  }

  int file = -1;
  void* all = MAP_FAILED;
  size_t bytes = 0;
  void* code = MAP_FAILED;
  size_t code_bytes = 0;
};

namespace {

Header HeaderAt(const std::byte* begin) {
  Header header;
  std::memcpy(&header, begin, sizeof(header));
  return header;
}

}  // namespace

int64_t BytesBeforeCode(std::span<const std::byte> begin) {
  return HeaderAt(begin.data()).sections[kCode].offset;
}

bool IsCompiledFile(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  std::array<char, kMagic.size()> magic = {};
  const bool is = read(file, magic.data(), magic.size()) == std::ssize(magic) && magic == kMagic;
  close(file);
  return is;
}

void CompiledFile::Refuse(const std::string& reason) const {
  throw Error(ErrorCode::kBadModel, fmt::format("{}: {}", path_, reason));
}

CompiledFile::CompiledFile(const std::string& path, bool verify) : path_(path) {
  const auto mapping = std::make_shared<Mapping>();
  const auto fail = [&](std::string_view what) {
    throw Error(ErrorCode::kEnvironment, fmt::format("cannot {} {}: {}", what, path, std::strerror(errno)));
  };
  mapping->file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status = {};
  if (mapping->file < 0 || fstat(mapping->file, &status) != 0) fail("read");
  if (!S_ISREG(status.st_mode)) Refuse("is no file");
  mapping->bytes = static_cast<size_t>(status.st_size);
  if (mapping->bytes < sizeof(Header))
    Refuse(
        fmt::format("{} bytes are no compiled network, whose header has {}", mapping->bytes, sizeof(Header)));
  mapping->all = mmap(nullptr, mapping->bytes, PROT_READ, MAP_SHARED, mapping->file, 0);
  if (mapping->all == MAP_FAILED) fail("map");
  mapping_ = mapping;
  ReadHeader({static_cast<const std::byte*>(mapping->all), mapping->bytes}, verify);
  const int64_t code_offset = code_.data() - static_cast<const std::byte*>(mapping->all);
  if (!code_.empty()) {
    mapping->code_bytes = code_.size();
    mapping->code =
        mmap(nullptr, code_.size(), PROT_READ | PROT_EXEC, MAP_PRIVATE, mapping->file, code_offset);
    if (mapping->code == MAP_FAILED) fail("map the code of");
    code_ = {static_cast<const std::byte*>(mapping->code), code_.size()};
  }
  close(mapping->file);
  mapping->file = -1;
}

CompiledFile::CompiledFile(const std::byte* before_code, const std::byte* code, std::string name)
    : path_(std::move(name)), mapping_(std::make_shared<const Mapping>()) {
  ReadHeader({before_code, static_cast<size_t>(HeaderAt(before_code).file_bytes)}, false);
  code_ = {code, code_.size()};
}

void CompiledFile::ReadSummaries(uint64_t sum) {
  try {
    ByteReader reader(tables_, {}, {}, nullptr);
    const auto networks = reader.Read<uint64_t>(), summary_bytes = reader.Read<uint64_t>();
    const size_t most = tables_.size(), directory_bytes = networks * sizeof(CompiledSection);
    const size_t front = 2 * sizeof(uint64_t) + directory_bytes + summary_bytes;
    const bool fits = networks <= most / sizeof(CompiledSection) && summary_bytes <= most && front <= most;
    if (!fits || SumOf(tables_.first(front)) != sum) ByteReader::Refuse("its tables are damaged");
    for (uint64_t i = 0; i < networks; ++i) directory_.push_back(reader.Read<CompiledSection>());
    ByteReader summaries(reader.ReadBytes(summary_bytes), {}, {}, nullptr);
    summaries.Read(networks_);
    summaries.ExpectEnd();
    if (networks_.empty()) ByteReader::Refuse("holds no network");
    if (networks_.size() != networks) ByteReader::Refuse("networks and their tables differ in number");
    for (const CompiledSummary& network : networks_) CheckSummary(network);
  } catch (const Error& error) {
    Refuse(error.what());
  }
}

void CompiledFile::ReadHeader(std::span<const std::byte> all, bool verify) {
  const Header header = HeaderAt(all.data());
  if (header.magic != kMagic) Refuse("is no compiled network");
  if (header.version != kFormatVersion || header.header_bytes != sizeof(Header)) {
    Refuse(
        fmt::format("is of version {} of the format, this program reads {}", header.version, kFormatVersion));
  }
  if (header.sum != SumOf(all.first(offsetof(Header, sum)))) Refuse("its header is damaged");
  const auto size = std::ssize(all);
  if (header.file_bytes != size)
    Refuse(fmt::format("has {} bytes, {} were written: it is cut off, or was added to", size,
                       header.file_bytes));
  const auto section = [&](SectionNumber number, std::string_view name, bool check) {
    const auto& [offset, bytes, sum] = header.sections[number];
    if (offset < 0 || bytes < 0 || offset % kSectionAlignment != 0 || offset > size || bytes > size - offset)
      Refuse(fmt::format("its {} lie at {} and have {} bytes of {}", name, offset, bytes, size));
    const auto found = all.subspan(static_cast<size_t>(offset), static_cast<size_t>(bytes));
    if (check && SumOf(found) != sum) Refuse(fmt::format("its {} are damaged", name));
    return found;
  };
  tables_ = section(kTables, "tables", false);
  data_ = section(kData, "weights", verify);
  code_ = section(kCode, "instructions", verify);
  ReadSummaries(header.sections[kTables].sum);
}

size_t CompiledFile::Choose(const Target& cpu, int threads, const std::vector<Shape>* inputs) const {
  std::optional<size_t> best;
  const auto rank = [&](const CompiledSummary& summary) {
    const Target& target = summary.target;
    const bool below = summary.threads <= threads;
    return std::tuple(target.isa, target.sve_bytes, target.amx, target.bf16, target.i8mm, target.vnni,
                      target.dot, below, below ? summary.threads : -summary.threads);
  };
  for (size_t i = 0; i < networks_.size(); ++i) {
    const CompiledSummary& summary = networks_[i];
    if (!RunsCode(summary.target, cpu)) continue;
    if (inputs && !std::ranges::equal(*inputs, summary.inputs, {}, {}, &UserTensor::shape)) continue;
    if (!best || rank(summary) > rank(networks_[*best])) best = i;
  }
  if (best) return *best;
  constexpr size_t kMostNamed = 6;
  std::vector<std::string> there;
  for (const CompiledSummary& summary : networks_) {
    if (there.size() < kMostNamed) there.push_back(NeedsOf(summary));
  }
  if (networks_.size() > kMostNamed)
    there.push_back(fmt::format("and {} more, the last one for {}", networks_.size() - kMostNamed,
                                NeedsOf(networks_.back())));
  std::vector<std::string> shapes;
  for (size_t i = 0; inputs && i < inputs->size(); ++i) shapes.push_back(ShapeToString((*inputs)[i]));
  throw Error(ErrorCode::kUsage,
              fmt::format("{}: is compiled for {}; this CPU has {}{}", path_, fmt::join(there, "; "),
                          VectorsText(cpu),
                          inputs ? fmt::format(", and the inputs are {}", fmt::join(shapes, " and ")) : ""));
}

std::shared_ptr<CompiledNetwork> CompiledFile::ReadTables(size_t index) const {
  const CompiledSummary& summary = networks_.at(index);
  const auto network = std::make_shared<CompiledNetwork>();
  network->inputs = summary.inputs;
  network->outputs = summary.outputs;
  try {
    const auto& [offset, bytes, sum] = directory_.at(index);
    const auto all = std::ssize(tables_);
    if (offset < 0 || bytes < 0 || offset > all || bytes > all - offset)
      ByteReader::Refuse("tables outside the file");
    const auto tables = tables_.subspan(static_cast<size_t>(offset), static_cast<size_t>(bytes));
    if (SumOf(tables) != sum) ByteReader::Refuse("its tables are damaged");
    ByteReader reader(tables, data_, code_, mapping_);
    ForEachTable(*network, [&](auto& table) { reader.Read(table); });
    reader.ExpectEnd();
    TableCheck(*network).Run();
  } catch (const Error& error) {
    Refuse(error.what());
  }
  return network;
}

std::shared_ptr<const CompiledNetwork> CompiledFile::Load(size_t index, DevicePtr device) const {
  const CompiledSummary& summary = networks_.at(index);
  TILESMITH_CHECK(device->target() == summary.target && device->threads() == summary.threads);
  const std::shared_ptr<CompiledNetwork> network = ReadTables(index);
  network->device = std::move(device);
  try {
    BuildKernels(*network);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInterrupted) throw;
    Refuse(error.what());
  }
  return network;
}

std::shared_ptr<const CompiledNetwork> LoadCompiled(const CompiledFile& file, size_t index, WaitPolicy wait) {
  const CompiledSummary& summary = file.networks().at(index);
  return file.Load(index, OpenDevice(summary.target, summary.threads, wait));
}

}  // namespace tilesmith
