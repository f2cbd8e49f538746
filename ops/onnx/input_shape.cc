#include "ops/onnx/input_shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include "layouts/base/error.h"
#include "layouts/base/settings.h"
#include "ops/base/onnx_type.h"

namespace tilesmith {
namespace {

using Dimension = onnx::TensorShapeProto_Dimension;

[[noreturn]] void Fail(const onnx::ValueInfoProto& input, const std::string& reason) {
  throw Error(ErrorCode::kBadModel, fmt::format("input \"{}\": {}", input.name(), reason));
}

// None where neither file nor options say.
std::optional<int64_t> DeclaredSize(const onnx::ValueInfoProto& input, int index,
                                    const ImportOptions& options) {
  const Dimension& dim = input.type().tensor_type().shape().dim(index);
  if (index == 0 && options.batch) return *options.batch;
  if (dim.has_dim_value() && dim.dim_value() >= 0) return dim.dim_value();
  if (const auto given = options.dims.find(dim.dim_param()); given != options.dims.end())
    return given->second;
  for (const std::string& name : {input.name(), std::string()}) {
    const auto open = options.open_shapes.find(name);
    if (open != options.open_shapes.end() && index < std::ssize(open->second)) return open->second[index];
  }
  return std::nullopt;
}

// Height and width that models for a purpose are mostly used with.
struct ImageSize {
  int64_t height, width;
  std::string_view purpose;
};
constexpr ImageSize kImageSizes[] = {
    {224, 224, "classifiers"}, {640, 640, "detectors"}, {48, 320, "readers of lines of text"}};

bool Fits(const Shape& declared, const ImageSize& size) {
  return (declared[2] < 0 || declared[2] == size.height) && (declared[3] < 0 || declared[3] == size.width);
}

bool IsImage(const Shape& declared) {
  return declared.size() == 4 && (declared[1] < 0 || declared[1] == 1 || declared[1] == 3);
}

// The known sizes, and for the others what is usual.
Shape UsualShape(const Shape& declared) {
  constexpr int64_t kSequence = 128;
  Shape usual = declared;
  const ImageSize* size = &kImageSizes[0];
  if (IsImage(declared)) {
    const auto fitting =
        std::ranges::find_if(kImageSizes, [&](const ImageSize& s) { return Fits(declared, s); });
    if (fitting != std::end(kImageSizes)) size = fitting;
    // Of one side the other, unless it is usual.
    const int64_t side = std::max(declared[2], declared[3]);
    const bool one = side > 0 && fitting == std::end(kImageSizes);
    usual = {1, 3, one ? side : size->height, one ? side : size->width};
  } else {
    for (size_t i = 0; i < usual.size(); ++i)
      usual[i] = i == 0 ? 1 : usual.size() <= 3 ? kSequence : size->width;
  }
  for (size_t i = 0; i < usual.size(); ++i)
    if (declared[i] >= 0) usual[i] = declared[i];
  return usual;
}

}  // namespace

bool MayHaveRankOne(const onnx::ValueInfoProto& input) {
  const onnx::TypeProto_Tensor& type = input.type().tensor_type();
  return !type.has_shape() || type.shape().dim_size() == 1;
}

Shape DeclaredShape(const onnx::ValueInfoProto& input, const ImportOptions& options) {
  if (!input.type().has_tensor_type()) Fail(input, "it is not a tensor");
  const onnx::TypeProto_Tensor& type = input.type().tensor_type();
  const int rank = type.shape().dim_size();
  Shape shape;
  std::vector<size_t> open;
  if (const auto given = options.input_shapes.find(input.name()); given != options.input_shapes.end()) {
    shape = given->second;
    if (type.has_shape() && static_cast<int>(shape.size()) != rank) {
      Fail(input, fmt::format("the shape given, {}, has {} dimensions, the model's has {}",
                              ShapeToString(shape), shape.size(), rank));
    }
  } else if (const auto size = options.dims.find(input.name());
             size != options.dims.end() && MayHaveRankOne(input)) {
    shape = {size->second};
  } else {
    if (!type.has_shape()) {
      Fail(input, fmt::format("the model gives no shape; add {} {}=1x3x224x224", settings::kInputShapes,
                              input.name()));
    }
    for (int i = 0; i < rank; ++i) {
      const std::optional<int64_t> size = DeclaredSize(input, i, options);
      if (!size) open.push_back(shape.size());
      shape.push_back(size.value_or(0));
    }
  }
  for (const int64_t size : shape) {
    if (size < 0) Fail(input, fmt::format("its shape {} must not be negative", ShapeToString(shape)));
  }
  for (const size_t index : open) shape[index] = -1;
  return shape;
}

bool LeavesSizesOpen(const Shape& declared) {
  return std::ranges::find(declared.begin() + !declared.empty(), declared.end(), -1) != declared.end();
}

void OpenSizes::Add(const onnx::ValueInfoProto& input, const Shape& declared) {
  std::vector<std::string> sizes;
  for (size_t i = 0; i < declared.size(); ++i) {
    const std::string& name = input.type().tensor_type().shape().dim(static_cast<int>(i)).dim_param();
    sizes.push_back(declared[i] >= 0 ? std::to_string(declared[i]) : name.empty() ? "?" : name);
  }
  inputs_.push_back(fmt::format("\"{}\" is [{}]", input.name(), fmt::join(sizes, ", ")));
  const Shape usual = UsualShape(declared);
  usual_.push_back(fmt::format("{} {}={}", settings::kInputShapes, input.name(), ShapeToString(usual)));
  if (!IsImage(declared)) return;
  for (const ImageSize& size : kImageSizes) {
    if (Fits(declared, size))
      alternatives_.push_back(fmt::format("{}x{} of {}", size.height, size.width, size.purpose));
  }
}

std::string OpenSizes::Text() const {
  std::set<std::string> once;
  std::vector<std::string> usual;
  for (const std::string& text : alternatives_)
    if (once.insert(text).second) usual.push_back(text);
  return fmt::format(
      "sizes of inputs are left open: {}; give them, such as {}{}", fmt::join(inputs_, ", "),
      fmt::join(usual_, " "),
      usual.empty() ? ""
                    : fmt::format(" (usual, which need not be this model's: {})", fmt::join(usual, ", ")));
}

DataType InputType(const onnx::ValueInfoProto& input) {
  const int32_t number = input.type().tensor_type().elem_type();
  const std::optional<DataType> type = TypeOfOnnx(number);
  if (!type) {
    Fail(input, fmt::format("its elements are {}, which is not supported", OnnxTypeName(number)));
  }
  return *type;
}

}  // namespace tilesmith
