// The part of the Python package that is C++: models and sessions over lists of arrays.
#include <fmt/format.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <list>
#include <mutex>
#include <stdexcept>

#include "tools/api/tilesmith.h"

namespace py = pybind11;

namespace {

using tilesmith::TensorInfo;
using Array = py::array;

// NumPy has no bfloat16: its bytes, as ml_dtypes stores them.
py::dtype DtypeOf(const std::string& type) {
  if (type == "bool") return py::dtype("?");
  if (type == "bf16") return py::dtype("V2");
  return py::dtype(fmt::format("{}{}", type[0], std::stoi(type.substr(1)) / 8));  // "f4", "u1"
}

// Tensors in plain layouts have the shape they are declared with, those with channels last that in the same
// order, blocked ones are flat.
bool IsPlain(const TensorInfo& info) { return info.layout == "NCHW" || info.shape.size() != 4; }

std::vector<py::ssize_t> ArrayShape(const TensorInfo& info) {
  const auto& shape = info.shape;
  if (IsPlain(info)) return {shape.begin(), shape.end()};
  if (info.layout == "NHWC") return {shape[0], shape[2], shape[3], shape[1]};
  return {static_cast<py::ssize_t>(info.elements)};
}

// The strides are given since the header files of pybind11 2.10 read the size of an element wrongly from
// NumPy 2's dtypes.
Array NewArray(const TensorInfo& info) {
  const std::vector<py::ssize_t> shape = ArrayShape(info);
  std::vector<py::ssize_t> strides(shape.size());
  auto stride = static_cast<py::ssize_t>(info.bytes / std::max<size_t>(info.elements, 1));
  for (size_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) strides[axis] = stride;
  return Array(DtypeOf(info.type), shape, strides);
}

bool IsTwoRawBytes(const py::dtype& dtype) {
  return py::cast<std::string>(dtype.attr("kind")) == "V" && py::cast<int>(dtype.attr("itemsize")) == 2;
}

// The input as the session takes it: whatever is given is converted to float32, other types must be given as
// they are. Another shape is the session's to judge where `other_sizes`.
Array InputArray(const py::object& object, const TensorInfo& info, bool other_sizes) {
  const Array given = Array::ensure(object);
  if (!given) throw py::value_error(py::str("input \"{}\" is no array").format(info.name));
  const std::vector<py::ssize_t> shape(given.shape(), given.shape() + given.ndim());
  const std::vector<py::ssize_t> expected = ArrayShape(info);
  if (shape != expected && !(other_sizes && IsPlain(info) && shape.size() == expected.size())) {
    throw py::value_error(py::str("input \"{}\" has shape {}, expected {}")
                              .format(info.name, py::tuple(py::cast(shape)), py::tuple(py::cast(expected))));
  }
  if (info.type == "f32") return py::array_t<float, py::array::c_style | py::array::forcecast>(given);
  const py::dtype wanted = DtypeOf(info.type);
  if (!given.dtype().equal(wanted) && !(info.type == "bf16" && IsTwoRawBytes(given.dtype()))) {
    throw py::value_error(py::str("input \"{}\" is an array of {}, expected {} ({})")
                              .format(info.name, given.dtype(), wanted, info.type));
  }
  return Array::ensure(given, py::array::c_style);
}

// A copy of what a run gave.
Array OutputArray(const tilesmith::OutputTensor& output) {
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
      shapes_.emplace_back();
      if (IsPlain(infos[i])) shapes_[i].assign(array.shape(), array.shape() + array.ndim());
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
    std::vector<const void*> from;
    for (const uintptr_t address : inputs) from.push_back(reinterpret_cast<const void*>(address));
    std::vector<void*> to;
    for (const uintptr_t address : outputs) to.push_back(reinterpret_cast<void*>(address));
    if (!to.empty()) {
      RunMemory(from, to);
      return {};
    }
    std::vector<tilesmith::InputTensor> tensors;
    for (size_t i = 0; i < from.size(); ++i) tensors.push_back({from[i], shapes[i]});
    return RunTensors(tensors);
  }

  std::vector<tilesmith::StepTime> Profile(const std::vector<py::object>& given, int runs) {
    const Inputs inputs(model_, given, other_sizes_);
    const py::gil_scoped_release released;
    const std::lock_guard lock(mutex_);
    return session_.Profile(inputs.tensors(), runs);
  }

  size_t ActivationBytes() const { return session_.activation_bytes(); }

 private:
  void RunMemory(std::span<const void* const> inputs, std::span<void* const> outputs) {
    const py::gil_scoped_release released;
    const std::lock_guard lock(mutex_);
    session_.Run(inputs, outputs);
  }

  // The outputs lie in the session until they are copied.
  std::vector<Array> RunTensors(std::span<const tilesmith::InputTensor> inputs) {
    std::unique_lock lock(mutex_, std::defer_lock);
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

  const tilesmith::Model model_;
  tilesmith::Session session_;
  const bool other_sizes_;
  std::mutex mutex_;
};

// A model as Python gives it: a path, or bytes with those of its parts by location. Holds the bytes' views.
class GivenModel {
 public:
  GivenModel(const py::object& model, const py::dict& parts) {
    if (py::isinstance<py::str>(model)) {
      path_ = model.cast<std::string>();
      return;
    }
    in_memory_ = true;
    memory_.bytes = View(model);
    for (const auto& [location, bytes] : parts)
      memory_.parts[location.cast<std::string>()] = View(py::reinterpret_borrow<py::object>(bytes));
  }

  // Calls body with either. Needs no GIL.
  template <typename Body>
  auto With(const Body& body) const {
    return in_memory_ ? body(memory_) : body(path_);
  }

 private:
  std::span<const std::byte> View(const py::object& object) {
    const py::buffer_info& info = views_.emplace_back(py::buffer(object).request());
    py::ssize_t stride = info.itemsize;
    for (size_t axis = info.shape.size(); axis-- > 0; stride *= info.shape[axis])
      if (info.strides[axis] != stride) throw py::value_error("a model's bytes must be contiguous");
    return {static_cast<const std::byte*>(info.ptr), static_cast<size_t>(info.size * info.itemsize)};
  }

  std::string path_;
  bool in_memory_ = false;
  std::list<py::buffer_info> views_;
  tilesmith::ModelMemory memory_;
};

tilesmith::Model Load(const py::object& given, const py::dict& parts, const std::string& plan, int threads,
                      int64_t batch, const std::vector<std::string>& input_shapes, int64_t max_elements,
                      int64_t max_memory, int sizes, const std::string& wait, const std::string& target,
                      const std::string& precision) {
  const GivenModel model(given, parts);
  const tilesmith::LoadOptions options = {.plan = plan,
                                          .threads = threads,
                                          .batch = batch,
                                          .input_shapes = input_shapes,
                                          .sizes = sizes,
                                          .max_elements = max_elements,
                                          .max_memory = max_memory,
                                          .wait = wait,
                                          .target = target,
                                          .precision = precision};
  const py::gil_scoped_release released;
  return model.With([&](const auto& of) { return tilesmith::Model::Load(of, options); });
}

// What Python calls with a text, or None. Called without the GIL; also where Ctrl-C is noticed, which raises
// KeyboardInterrupt out of the tuning.
std::function<void(const std::string&)> Progress(const py::object& progress) {
  return [&progress](const std::string& stage) {
    const py::gil_scoped_acquire acquired;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (!progress.is_none()) progress(py::bytes(stage).attr("decode")("utf-8", "backslashreplace"));
  };
}

double Seconds(const std::string& name, const py::object& duration) {
  if (py::isinstance<py::str>(duration))
    return tilesmith::DurationSeconds(name, duration.cast<std::string>());
  return duration.cast<double>();
}

void Tune(const py::object& given, const py::dict& parts, const std::string& plan, const std::string& log,
          const py::object& seconds, const py::object& graph_seconds, int rounds, int threads, int64_t batch,
          const std::vector<std::string>& input_shapes, bool database, const std::string& target,
          const std::string& precision, const std::vector<std::string>& calibrate, const std::string& program,
          const py::object& progress) {
  const tilesmith::TuneSettings settings = {.log = log,
                                            .seconds = Seconds("seconds", seconds),
                                            .graph_seconds = Seconds("graph_seconds", graph_seconds),
                                            .rounds = rounds,
                                            .database = database,
                                            .threads = threads,
                                            .batch = batch,
                                            .input_shapes = input_shapes,
                                            .target = target,
                                            .precision = precision,
                                            .calibrate = calibrate,
                                            .program = program,
                                            .on_progress = Progress(progress)};
  const GivenModel model(given, parts);
  const py::gil_scoped_release released;
  model.With([&](const auto& of) { tilesmith::Tune(of, plan, settings); });
}

void Optimize(const py::object& given, const py::dict& parts, const std::string& plan, const std::string& log,
              const py::object& seconds, int threads, int64_t batch,
              const std::vector<std::string>& input_shapes, bool database, const std::string& target,
              const std::string& precision, const std::vector<std::string>& calibrate,
              const std::string& program, const py::object& progress) {
  const tilesmith::OptimizeSettings settings = {.log = log,
                                                .seconds = Seconds("seconds", seconds),
                                                .database = database,
                                                .threads = threads,
                                                .batch = batch,
                                                .input_shapes = input_shapes,
                                                .target = target,
                                                .precision = precision,
                                                .calibrate = calibrate,
                                                .program = program,
                                                .on_progress = Progress(progress)};
  const GivenModel model(given, parts);
  const py::gil_scoped_release released;
  model.With([&](const auto& of) { tilesmith::Optimize(of, plan, settings); });
}

void GraphTune(const py::object& given, const py::dict& parts, const std::string& log,
               const std::string& plan, const py::object& seconds, int rounds, int threads, int64_t batch,
               const std::vector<std::string>& input_shapes, const std::string& target,
               const std::string& precision, const std::vector<std::string>& calibrate,
               const py::object& progress) {
  const tilesmith::GraphTuneSettings settings = {.seconds = Seconds("seconds", seconds),
                                                 .rounds = rounds,
                                                 .threads = threads,
                                                 .batch = batch,
                                                 .input_shapes = input_shapes,
                                                 .target = target,
                                                 .precision = precision,
                                                 .calibrate = calibrate,
                                                 .on_progress = Progress(progress)};
  const GivenModel model(given, parts);
  const py::gil_scoped_release released;
  model.With([&](const auto& of) { tilesmith::GraphTune(of, log, plan, settings); });
}

std::string Quantize(const py::object& given, const py::dict& parts, const std::string& output,
                     const py::dict& options, const py::object& progress) {
  tilesmith::QuantizeSettings settings;
  const auto take = [&](const char* name, auto& value) {
    value = options[name].cast<std::decay_t<decltype(value)>>();
  };
  take("calibrate", settings.calibrate);
  take("samples", settings.samples);
  take("method", settings.method);
  take("percentile", settings.percentile);
  take("activations", settings.activations);
  take("reduce_range", settings.reduce_range);
  take("keep", settings.keep);
  take("keep_first", settings.keep_first);
  take("keep_last", settings.keep_last);
  take("op_types", settings.op_types);
  take("external_data", settings.external_data);
  take("check", settings.check);
  take("threads", settings.threads);
  take("batch", settings.batch);
  take("input_shapes", settings.input_shapes);
  settings.on_progress = Progress(progress);
  const GivenModel model(given, parts);
  const py::gil_scoped_release released;
  return model.With([&](const auto& of) { return tilesmith::Quantize(of, output, settings); });
}

// Messages quote files, which may hold anything; Python's own conversion would fail on what is not UTF-8.
void RaiseAsRuntimeError(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const py::builtin_exception&) {
    throw;  // says itself what it is in Python
  } catch (const std::runtime_error& error) {
    const std::string_view text = error.what();
    const auto message = py::reinterpret_steal<py::object>(
        PyUnicode_DecodeUTF8(text.data(), py::ssize_t(text.size()), "backslashreplace"));
    PyErr_SetObject(PyExc_RuntimeError, message.ptr());
  }
}

}  // namespace

PYBIND11_MODULE(_tilesmith, module) {
  module.doc() = "C++ part of tilesmith";
  module.attr("__version__") = TILESMITH_VERSION;
  py::register_local_exception_translator(&RaiseAsRuntimeError);
  py::class_<TensorInfo>(module, "TensorInfo")
      .def_readonly("name", &TensorInfo::name)
      .def_readonly("shape", &TensorInfo::shape)
      .def_readonly("layout", &TensorInfo::layout)
      .def_readonly("type", &TensorInfo::type)
      .def_readonly("elements", &TensorInfo::elements)
      .def_readonly("bytes", &TensorInfo::bytes)
      .def("__repr__", [](const TensorInfo& info) {
        return py::str("<TensorInfo {} {} {} {}>").format(info.name, info.shape, info.layout, info.type);
      });
  py::class_<tilesmith::StepTime>(module, "StepTime")
      .def_readonly("name", &tilesmith::StepTime::name)
      .def_readonly("kind", &tilesmith::StepTime::kind)
      .def_readonly("layouts", &tilesmith::StepTime::layouts)
      .def_readonly("seconds", &tilesmith::StepTime::seconds)
      .def_readonly("predicted_seconds", &tilesmith::StepTime::predicted_seconds)
      .def("__repr__", [](const tilesmith::StepTime& step) {
        return fmt::format("<StepTime {} {} {:.1f} us>", step.name, step.kind, step.seconds * 1e6);
      });
  py::class_<tilesmith::Model>(module, "Model")
      .def_static("load", &Load)
      .def_property_readonly("inputs", &tilesmith::Model::inputs)
      .def_property_readonly("outputs", &tilesmith::Model::outputs)
      .def_property_readonly("threads", &tilesmith::Model::threads)
      .def_property_readonly("packed_weight_bytes", &tilesmith::Model::packed_weight_bytes)
      .def_property_readonly("predicted_seconds", &tilesmith::Model::predicted_seconds);
  py::class_<PythonSession>(module, "Session")
      .def(py::init<const tilesmith::Model&, std::vector<int>, bool>())
      .def("run", &PythonSession::Run)
      .def("run_pointers", &PythonSession::RunPointers)
      .def("profile", &PythonSession::Profile)
      .def_property_readonly("activation_bytes", &PythonSession::ActivationBytes);
  module.def("cores_of_numa_node", &tilesmith::CoresOfNumaNode);
  module.def("core_distance", &tilesmith::CoreDistance);
  module.def("seconds", &Seconds);
  module.def("tune", &Tune);
  module.def("optimize", &Optimize);
  module.def("graph_tune", &GraphTune);
  module.def("quantize", &Quantize);
}
