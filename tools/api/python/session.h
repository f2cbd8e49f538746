// A session over NumPy's arrays.
#pragma once

#include <fmt/format.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>

#include "tools/api/tilesmith.h"

namespace tilesmith::python {

namespace py = pybind11;

using tilesmith::TensorInfo;
using Array = py::array;

// NumPy has no bfloat16: its bytes, as ml_dtypes stores them.
inline py::dtype DtypeOf(const std::string& type) {
  if (type == "bool") return py::dtype("?");
  if (type == "bf16") return py::dtype("V2");
  return py::dtype(fmt::format("{}{}", type[0], std::stoi(type.substr(1)) / 8));  // "f4", "u1"
}

// Tensors in plain layouts have the shape they are declared with, those with channels last that in the same
// order, blocked ones are flat.
inline bool IsPlain(const TensorInfo& info) { return info.layout == "NCHW" || info.shape.size() != 4; }

inline std::vector<py::ssize_t> ArrayShape(const TensorInfo& info) {
  const auto& shape = info.shape;
  if (IsPlain(info)) return {shape.begin(), shape.end()};
  if (info.layout == "NHWC") return {shape[0], shape[2], shape[3], shape[1]};
  return {static_cast<py::ssize_t>(info.elements)};
}

// The strides are given since the header files of pybind11 2.10 read the size of an element wrongly from
// NumPy 2's dtypes.
inline Array NewArray(const TensorInfo& info) {
  const std::vector<py::ssize_t> shape = ArrayShape(info);
  std::vector<py::ssize_t> strides(shape.size());
  auto stride = static_cast<py::ssize_t>(info.bytes / std::max<size_t>(info.elements, 1));
  for (size_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) strides[axis] = stride;
  return Array(DtypeOf(info.type), shape, strides);
}

inline bool IsTwoRawBytes(const py::dtype& dtype) {
  return py::cast<std::string>(dtype.attr("kind")) == "V" && py::cast<int>(dtype.attr("itemsize")) == 2;
}

// What is to be done about an object that NumPy makes no array of: PyTorch's tensors say why.
inline std::string WhyNoArray(const py::object& object) {
  const auto has = [&](const char* attribute) { return py::hasattr(object, attribute); };
  if (!has("detach") || !has("dtype")) return "is no array";
  if (has("requires_grad") && object.attr("requires_grad").cast<bool>())
    return "is a tensor that needs a gradient: give it as x.detach()";
  const auto type = py::str(object.attr("dtype")).cast<std::string>();
  if (type == "torch.bfloat16")
    return "is a tensor of bfloat16, which NumPy has not: give it as x.float(), or for an input of bf16 as "
           "x.view(torch.int16).numpy().view(\"V2\")";
  return "is a tensor that NumPy does not take: give it as x.detach().cpu().numpy()";
}

// Shape as the model counts it, of an array in the order of the input's layout; empty where that is flat.
inline std::vector<int64_t> ModelShape(const Array& array, const TensorInfo& info) {
  std::vector<int64_t> shape(array.shape(), array.shape() + array.ndim());
  if (IsPlain(info)) return shape;
  if (info.layout == "NHWC" && shape.size() == 4) return {shape[0], shape[3], shape[1], shape[2]};
  return {};
}

// The input as the session takes it: whatever is given is converted to float32, other types must be given as
// they are. Sizes that the model leaves open (-1) are the array's; another shape is the session's to judge
// where `other_sizes`.
inline Array InputArray(const py::object& object, const TensorInfo& info, bool other_sizes) {
  const Array given = Array::ensure(object);
  if (!given) throw py::value_error(py::str("input \"{}\" {}").format(info.name, WhyNoArray(object)));
  const std::vector<py::ssize_t> shape(given.shape(), given.shape() + given.ndim());
  const std::vector<py::ssize_t> expected = ArrayShape(info);
  const bool fits = std::ranges::equal(shape, expected,
                                       [](auto size, auto wanted) { return wanted < 0 || size == wanted; });
  if (!fits && !(other_sizes && IsPlain(info) && shape.size() == expected.size())) {
    throw py::value_error(py::str("input \"{}\" has shape {}, expected {}")
                              .format(info.name, py::tuple(py::cast(shape)), py::tuple(py::cast(expected))));
  }
  const py::dtype wanted = DtypeOf(info.type);
  const bool is_real = std::string_view("cSUmMO").find(given.dtype().kind()) == std::string_view::npos &&
                       !given.dtype().has_fields();
  const bool converts = info.type == "f32" && is_real;
  if (!converts && !given.dtype().equal(wanted) && !(info.type == "bf16" && IsTwoRawBytes(given.dtype()))) {
    throw py::value_error(py::str("input \"{}\" is an array of {}, expected {} ({})")
                              .format(info.name, given.dtype(), wanted, info.type));
  }
  if (converts) return py::array_t<float, py::array::c_style | py::array::forcecast>(given);
  return Array::ensure(given, py::array::c_style);
}

// A copy of what a run gave.
inline Array OutputArray(const tilesmith::OutputTensor& output) {
  const TensorInfo info{.name = "",
                        .shape = output.shape,
                        .layout = output.layout,
                        .type = output.type,
                        .elements = output.elements,
                        .bytes = output.bytes};
  Array array = NewArray(info);
  if (output.bytes > 0) std::memcpy(array.mutable_data(), output.data, output.bytes);
  return array;
}

// Inputs as arrays, with their shapes where those are of another size than the model's first.
class Inputs {
 public:
  Inputs(const tilesmith::Model& model, const std::vector<py::object>& given, bool other_sizes) {
    const std::vector<TensorInfo>& infos = model.inputs();
    if (given.size() != infos.size())
      throw py::value_error(py::str("{} inputs given, expected {}").format(given.size(), infos.size()));
    for (size_t i = 0; i < given.size(); ++i) {
      const Array& array = arrays_.emplace_back(InputArray(given[i], infos[i], other_sizes));
      memory_.push_back(array.data());
      shapes_.push_back(ModelShape(array, infos[i]));
      first_size_ = first_size_ && (shapes_[i].empty() || shapes_[i] == infos[i].shape);
    }
    for (size_t i = 0; i < given.size(); ++i) tensors_.push_back({memory_[i], shapes_[i]});
  }

  bool first_size() const { return first_size_; }
  std::span<const void* const> memory() const { return memory_; }
  std::span<const tilesmith::InputTensor> tensors() const { return tensors_; }

 private:
  std::vector<Array> arrays_;
  std::vector<const void*> memory_;
  std::vector<std::vector<int64_t>> shapes_;
  std::vector<tilesmith::InputTensor> tensors_;
  bool first_size_ = true;
};

// Python's threads may share a session, so runs take turns.
class PythonSession {
 public:
  PythonSession(const tilesmith::Model& model, std::vector<int> cores, bool other_sizes)
      : model_(model), session_(model.NewSession({std::move(cores)})), other_sizes_(other_sizes) {}

  std::vector<Array> Run(const std::vector<py::object>& given) {
    const Inputs inputs(model_, given, other_sizes_);
    if (!inputs.first_size() || DependsOnValues()) return RunTensors(inputs.tensors());
    std::vector<Array> outputs;
    for (const TensorInfo& info : model_.outputs()) outputs.push_back(NewArray(info));
    std::vector<void*> to;
    to.reserve(outputs.size());
    for (Array& output : outputs) to.push_back(output.mutable_data());
    RunMemory(inputs.memory(), to);
    return outputs;
  }

  // Inputs by their addresses, of types and layouts that the caller has checked. With addresses of outputs,
  // shapes are the model's; without, the outputs are returned.
  std::vector<Array> RunPointers(const std::vector<uintptr_t>& inputs,
                                 const std::vector<std::vector<int64_t>>& shapes,
                                 const std::vector<uintptr_t>& outputs) {
    if (inputs.size() != model_.inputs().size() || shapes.size() != inputs.size() ||
        (!outputs.empty() && outputs.size() != model_.outputs().size()))
      throw py::value_error("addresses and shapes must be as many as the model's inputs and outputs");
    // Python gives addresses as integers.
    const auto memory = [](uintptr_t address) {
      return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
    };
    std::vector<const void*> from(inputs.size());
    std::ranges::transform(inputs, from.begin(), memory);
    std::vector<void*> to(outputs.size());
    std::ranges::transform(outputs, to.begin(), memory);
    if (!to.empty()) {
      RunMemory(from, to);
      return {};
    }
    std::vector<tilesmith::InputTensor> tensors;
    tensors.reserve(from.size());
    for (size_t i = 0; i < from.size(); ++i) tensors.push_back({from[i], shapes[i]});
    return RunTensors(tensors);
  }

  std::vector<tilesmith::StepTime> Profile(const std::vector<py::object>& given, int runs) {
    const Inputs inputs(model_, given, other_sizes_);
    std::mutex& turn = Turn();
    const py::gil_scoped_release released;
    const std::lock_guard lock(turn);
    return session_.Profile(inputs.tensors(), runs);
  }

  size_t ActivationBytes() const { return session_.activation_bytes(); }

 private:
  void RunMemory(std::span<const void* const> inputs, std::span<void* const> outputs) {
    std::mutex& turn = Turn();
    const py::gil_scoped_release released;
    const std::lock_guard lock(turn);
    session_.Run(inputs, outputs);
  }

  // The outputs lie in the session until they are copied.
  std::vector<Array> RunTensors(std::span<const tilesmith::InputTensor> inputs) {
    std::unique_lock lock(Turn(), std::defer_lock);
    const std::vector<tilesmith::OutputTensor>* results = nullptr;
    {
      const py::gil_scoped_release released;
      lock.lock();
      results = &session_.Run(inputs);
    }
    std::vector<Array> outputs;
    for (const tilesmith::OutputTensor& output : *results) outputs.push_back(OutputArray(output));
    return outputs;
  }

  bool DependsOnValues() const {
    return std::ranges::any_of(model_.outputs(), [](const TensorInfo& info) { return info.type.empty(); });
  }

  // Behind a fork nobody is there who could end a turn that was under way. With the GIL held.
  std::mutex& Turn() {
    if (process_ == getpid()) return *turn_;
    [[maybe_unused]] const std::mutex* const for_ever = turn_.release();
    turn_ = std::make_unique<std::mutex>();
    process_ = getpid();
    return *turn_;
  }

  const tilesmith::Model model_;
  tilesmith::Session session_;
  const bool other_sizes_;
  std::unique_ptr<std::mutex> turn_ = std::make_unique<std::mutex>();
  pid_t process_ = getpid();  // in which turns were taken
};

}  // namespace tilesmith::python
