// Values as bytes, and back: what compiled networks are written as (graph_tuner/compiled/README.md).
//
// Integers and floats are little-endian, of their own size; an enum is an int32, a bool a byte. A string, a
// vector or a map is a count of 64 bits and its elements; an optional or a pointer is a byte, 1 where there
// is something, and that. A variant is a byte, its alternative, and that. A struct is its members in their
// order (FieldsOf). Other types have functions Put(ByteWriter&, value) and Get(ByteReader&, value&), which
// are found by their namespace. Large memory (weights, constants) is kept apart, with a place among the data
// in the stream.
#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "layouts/base/error.h"
#include "layouts/base/fields.h"
#include "layouts/base/target.h"
#include "layouts/tensor.h"

namespace tilesmith {

static_assert(std::endian::native == std::endian::little);

class ByteWriter;
class ByteReader;

void Put(ByteWriter& writer, const Layout& layout);
void Get(ByteReader& reader, Layout& layout);
void Put(ByteWriter& writer, const Tensor& tensor);
void Get(ByteReader& reader, Tensor& tensor);
// The members of one architecture are written of its targets only.
void Put(ByteWriter& writer, const Target& target);
void Get(ByteReader& reader, Target& target);

// Memory that lies beside the stream, aligned to whole cache lines there.
struct DataPlace {
  int64_t offset = 0, bytes = 0;
};

// What streams refer to. Memory that was added before is not added again.
class DataWriter {
 public:
  // `memory` must live, where it is, as long as this.
  DataPlace Add(std::span<const std::byte> memory);
  int64_t bytes() const { return bytes_; }
  // What was added, each with its place.
  const std::vector<std::pair<DataPlace, std::span<const std::byte>>>& all() const { return all_; }

 private:
  std::map<std::pair<const std::byte*, size_t>, DataPlace> known_;
  std::vector<std::pair<DataPlace, std::span<const std::byte>>> all_;
  int64_t bytes_ = 0;
};

namespace byte_stream_internal {

template <typename T, template <typename...> typename Template>
constexpr bool kIs = false;
template <template <typename...> typename Template, typename... Args>
constexpr bool kIs<Template<Args...>, Template> = true;
template <typename T>
constexpr bool kIsArray = false;
template <typename T, size_t kSize>
constexpr bool kIsArray<std::array<T, kSize>> = true;

template <typename T>
constexpr bool kIsPair = kIs<T, std::pair> || kIs<T, std::tuple>;
template <typename T>
constexpr bool kIsSequence = std::is_same_v<T, std::string> || kIs<T, std::vector>;

}  // namespace byte_stream_internal

class ByteWriter {
 public:
  // Machine code is kept by itself, too.
  ByteWriter(DataWriter* data, DataWriter* code) : data_(data), code_(code) {}

  template <typename T>
  void Write(const T& value);
  template <typename... Types>
  void WriteAll(const Types&... values) {
    (Write(values), ...);
  }
  void WriteBytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }

  DataWriter& data() { return *data_; }
  DataWriter& code() { return *code_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  DataWriter *const data_, *const code_;
  std::vector<std::byte> bytes_;
};

// Throws Error(kBadModel) where the bytes are too few, or are none that were written so.
class ByteReader {
 public:
  // What is read may refer to `data` and `code`, which `owner` keeps alive.
  ByteReader(std::span<const std::byte> bytes, std::span<const std::byte> data,
             std::span<const std::byte> code, std::shared_ptr<const void> owner)
      : bytes_(bytes), data_(data), code_(code), owner_(std::move(owner)) {}

  template <typename T>
  void Read(T& value);
  template <typename T>
  T Read() {
    T value;
    Read(value);
    return value;
  }
  std::span<const std::byte> ReadBytes(size_t count);
  // Memory among them, which lives as long as the owner.
  AlignedBuffer DataAt(const DataPlace& place) const { return At(data_, place); }
  AlignedBuffer CodeAt(const DataPlace& place) const { return At(code_, place); }
  // Throws where something is left.
  void ExpectEnd() const;
  [[noreturn]] static void Refuse(const std::string& reason);

 private:
  size_t ReadCount(size_t least_bytes);
  AlignedBuffer At(std::span<const std::byte> memory, const DataPlace& place) const;

  std::span<const std::byte> bytes_, data_, code_;
  std::shared_ptr<const void> owner_;
};

template <typename T>
void ByteWriter::Write(const T& value) {
  namespace internal = byte_stream_internal;
  if constexpr (std::is_same_v<T, bool>) {
    Write(static_cast<uint8_t>(value));
  } else if constexpr (std::is_enum_v<T>) {
    Write(static_cast<int32_t>(value));
  } else if constexpr (std::is_arithmetic_v<T>) {
    WriteBytes(std::as_bytes(std::span(&value, 1)));
  } else if constexpr (std::is_same_v<T, std::vector<bool>>) {
    Write(static_cast<uint64_t>(value.size()));
    for (const bool element : value) Write(element);
  } else if constexpr (internal::kIsSequence<T>) {
    Write(static_cast<uint64_t>(value.size()));
    if constexpr (std::is_arithmetic_v<typename T::value_type>) {
      WriteBytes(std::as_bytes(std::span(value)));
    } else {
      for (const auto& element : value) Write(element);
    }
  } else if constexpr (internal::kIs<T, std::map>) {
    Write(static_cast<uint64_t>(value.size()));
    for (const auto& [key, element] : value) WriteAll(key, element);
  } else if constexpr (internal::kIsArray<T>) {
    for (const auto& element : value) Write(element);
  } else if constexpr (internal::kIsPair<T>) {
    std::apply([&](const auto&... members) { WriteAll(members...); }, value);
  } else if constexpr (internal::kIs<T, std::optional>) {
    Write(value.has_value());
    if (value) Write(*value);
  } else if constexpr (internal::kIs<T, std::variant>) {
    Write(static_cast<uint8_t>(value.index()));
    std::visit([&](const auto& alternative) { Write(alternative); }, value);
  } else if constexpr (requires { Put(*this, value); }) {
    Put(*this, value);
  } else if constexpr (internal::kIs<T, std::shared_ptr>) {
    Write(value != nullptr);
    if (value) Write(*value);
  } else {
    std::apply([&](const auto&... members) { WriteAll(members...); }, FieldsOf(value));
  }
}

template <typename T>
void ByteReader::Read(T& value) {
  namespace internal = byte_stream_internal;
  if constexpr (std::is_same_v<T, bool>) {
    const auto byte = Read<uint8_t>();
    if (byte > 1) Refuse("a byte is neither yes nor no");
    value = byte == 1;
  } else if constexpr (std::is_enum_v<T>) {
    value = static_cast<T>(Read<int32_t>());
  } else if constexpr (std::is_arithmetic_v<T>) {
    std::memcpy(&value, ReadBytes(sizeof(T)).data(), sizeof(T));
  } else if constexpr (std::is_same_v<T, std::vector<bool>>) {
    value.resize(ReadCount(1));
    for (size_t i = 0; i < value.size(); ++i) value[i] = Read<bool>();
  } else if constexpr (internal::kIsSequence<T>) {
    using Element = typename T::value_type;
    if constexpr (std::is_arithmetic_v<Element>) {
      value.resize(ReadCount(sizeof(Element)));
      const std::span<const std::byte> bytes = ReadBytes(value.size() * sizeof(Element));
      if (!bytes.empty()) std::memcpy(value.data(), bytes.data(), bytes.size());
    } else {
      value.clear();
      for (size_t left = ReadCount(1); left > 0; --left) Read(value.emplace_back());
    }
  } else if constexpr (internal::kIs<T, std::map>) {
    value.clear();
    for (size_t left = ReadCount(1); left > 0; --left) {
      auto key = Read<typename T::key_type>();
      Read(value[std::move(key)]);
    }
  } else if constexpr (internal::kIsArray<T>) {
    for (auto& element : value) Read(element);
  } else if constexpr (internal::kIsPair<T>) {
    std::apply([&](auto&... members) { (Read(members), ...); }, value);
  } else if constexpr (internal::kIs<T, std::optional>) {
    value.reset();
    if (Read<bool>()) Read(value.emplace());
  } else if constexpr (internal::kIs<T, std::variant>) {
    const auto index = Read<uint8_t>();
    const auto take = [&]<size_t... kIndex>(std::index_sequence<kIndex...>) {
      return ((index == kIndex && (Read(value.template emplace<kIndex>()), true)) || ...);
    };
    if (!take(std::make_index_sequence<std::variant_size_v<T>>()))
      Refuse("a variant has no such alternative");
  } else if constexpr (requires { Get(*this, value); }) {
    Get(*this, value);
  } else if constexpr (internal::kIs<T, std::shared_ptr>) {
    value = nullptr;
    if (!Read<bool>()) return;
    auto pointee = std::make_shared<std::remove_const_t<typename T::element_type>>();
    Read(*pointee);
    value = std::move(pointee);
  } else {
    std::apply([&](auto&... members) { (Read(members), ...); }, FieldsOf(value));
  }
}

}  // namespace tilesmith
