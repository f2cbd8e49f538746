#include "layouts/byte_stream.h"

#include <fmt/format.h>

namespace tilesmith {
namespace {

constexpr int64_t kDataAlignment = 64;

}  // namespace

DataPlace DataWriter::Add(std::span<const std::byte> memory) {
  if (memory.empty()) return {};
  const auto [at, is_new] = known_.try_emplace({memory.data(), memory.size()});
  if (is_new) {
    at->second = {bytes_, std::ssize(memory)};
    all_.emplace_back(at->second, memory);
    bytes_ = RoundUp((Checked(bytes_) + std::ssize(memory)).value(), kDataAlignment);
  }
  return at->second;
}

void ByteReader::Refuse(const std::string& reason) { throw Error(ErrorCode::kBadModel, reason); }

std::span<const std::byte> ByteReader::ReadBytes(size_t count) {
  if (count > bytes_.size())
    Refuse(fmt::format("{} bytes are left where {} are expected", bytes_.size(), count));
  const std::span<const std::byte> read = bytes_.first(count);
  bytes_ = bytes_.subspan(count);
  return read;
}

size_t ByteReader::ReadCount(size_t least_bytes) {
  const auto count = Read<uint64_t>();
  if (count > bytes_.size() / least_bytes)
    Refuse(fmt::format("{} bytes are left where {} elements are expected", bytes_.size(), count));
  return count;
}

AlignedBuffer ByteReader::At(std::span<const std::byte> memory, const DataPlace& place) const {
  if (place.bytes == 0) return {};
  const auto all = std::ssize(memory);
  if (place.offset < 0 || place.bytes < 0 || place.offset > all || place.bytes > all - place.offset ||
      place.offset % kDataAlignment != 0) {
    Refuse(fmt::format("memory at {} of {} bytes, where there are {}", place.offset, place.bytes, all));
  }
  return {memory.subspan(static_cast<size_t>(place.offset), static_cast<size_t>(place.bytes)), owner_};
}

void ByteReader::ExpectEnd() const {
  if (!bytes_.empty()) Refuse(fmt::format("{} bytes are left at the end", bytes_.size()));
}

void Put(ByteWriter& writer, const Layout& layout) { writer.Write(layout.ToString()); }

void Get(ByteReader& reader, Layout& layout) {
  const auto text = reader.Read<std::string>();
  try {
    layout = Layout::Parse(text);
  } catch (const Error& error) {
    ByteReader::Refuse(error.what());
  }
}

namespace {

// Calls `each` with the members that targets of all architectures have, then with those of its own.
template <typename T, typename Each>
void ForTargetMembers(T& t, const Each& each) {
  each(t.model, t.isa, t.vnni, t.bf16, t.amx, t.cores, t.l1d_bytes, t.l2_bytes, t.l3_bytes, t.version,
       t.device, t.compute, t.tf32, t.reproducible);
  if (ArchitectureOf(t.isa) == Architecture::kArm) each(t.sve_bytes, t.dot, t.i8mm);
}

}  // namespace

void Put(ByteWriter& writer, const Target& target) {
  ForTargetMembers(target, [&](const auto&... members) { writer.WriteAll(members...); });
}

void Get(ByteReader& reader, Target& target) {
  ForTargetMembers(target, [&](auto&... members) { (reader.Read(members), ...); });
}

void Put(ByteWriter& writer, const Tensor& tensor) {
  const std::span<const std::byte> elements(tensor.raw(), static_cast<size_t>(tensor.bytes()));
  writer.WriteAll(tensor.shape(), tensor.layout(), writer.data().Add(elements));
}

void Get(ByteReader& reader, Tensor& tensor) {
  auto shape = reader.Read<Shape>();
  const auto layout = reader.Read<Layout>();
  const auto place = reader.Read<DataPlace>();
  CheckShape(shape, {.tensor_elements = kMaxTensorElements});
  if (PaddedBytes(shape, layout) != place.bytes)
    ByteReader::Refuse(fmt::format("{} bytes for a tensor of {}", place.bytes, ShapeToString(shape)));
  tensor = Tensor(std::move(shape), layout, reader.DataAt(place));
}

}  // namespace tilesmith
