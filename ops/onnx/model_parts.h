// The parts of a model that are not its own file: data of tensors in other files, which the model names by
// their location, or the same in memory.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tilesmith {

// Thread-safe. Errors are Error(kBadModel), whose message goes on behind "data in LOCATION, ": "which is not
// there".
class ModelParts {
 public:
  virtual ~ModelParts() = default;
  // Bytes of a part, the same as long as the object lives.
  virtual int64_t Size(const std::string& location) const = 0;
  // Copies to.size() bytes from `offset` on. Precondition: they lie within Size. Throws also when the part no
  // longer has them.
  virtual void Read(const std::string& location, int64_t offset, std::span<std::byte> to) const = 0;
};
using ModelPartsPtr = std::shared_ptr<const ModelParts>;

// Bytes of a part.
struct PartPlace {
  std::string location = "";
  int64_t offset = 0, bytes = 0;
};

// Files in the folder of the model, and in folders of that. A location is a relative path that, with its "."
// and ".." resolved, stays inside; no step of it may be a symbolic link, and its end must be a regular file.
// What is anything else is not opened. Each file is opened once, when it is first asked for, and read, not
// mapped: one that shrinks meanwhile is an Error.
ModelPartsPtr FilesBeside(const std::string& model_path);
// One regular file, opened here, as a part of any location; null where there is none to read.
ModelPartsPtr WholeFile(const std::string& path);

// Memory by location, which outlives the object.
ModelPartsPtr PartsInMemory(std::map<std::string, std::span<const std::byte>> parts);
// One part, which the object holds.
ModelPartsPtr OwnPart(const std::string& location, std::string bytes);

// A model in memory, the bytes of its own file and its parts: null where it has none. Both outlive the view.
struct ModelView {
  ModelView(std::string_view model, const ModelParts* of = nullptr) : bytes(model), parts(of) {}  // NOLINT
  ModelView(const std::string& model) : bytes(model) {}                                           // NOLINT
  std::string_view bytes;
  const ModelParts* parts = nullptr;
};

// The same, of which the parts are held.
struct ModelInMemory {
  std::string_view bytes = {};
  ModelPartsPtr parts = nullptr;
  operator ModelView() const { return {bytes, parts.get()}; }  // NOLINT
};

// The same, all of it held.
struct ModelBytes {
  std::string bytes = {};
  ModelPartsPtr parts = nullptr;
  operator ModelView() const { return {bytes, parts.get()}; }  // NOLINT
};

// Where weights are to be put that do not go into the model's own file.
struct DataPlacement {
  std::string location = "weights";  // of the other part
  bool always = false;               // else only where one file would be too large
  int64_t largest = INT_MAX;         // bytes of one file, where ONNX's end
};

}  // namespace tilesmith
