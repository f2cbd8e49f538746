// The part of the Python package that is C++: models and sessions over lists of arrays.
#include <fmt/format.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <mutex>
#include <stdexcept>

#include "tools/api/tilesmith.h"

namespace py = pybind11;

namespace {

using tilesmith::TensorInfo;
using Array = py::array_t<float, py::array::c_style | py::array::forcecast>;

// Tensors in plain layouts have the shape they are declared with, blocked ones are flat.
bool IsPlain(const TensorInfo& info) { return info.layout == "NCHW" || info.shape.size() != 4; }

std::vector<py::ssize_t> ArrayShape(const TensorInfo& info) {
  if (!IsPlain(info)) return {py::ssize_t(info.floats)};
  return {info.shape.begin(), info.shape.end()};
}

void CheckShape(const Array& array, const TensorInfo& info) {
  const std::vector<py::ssize_t> shape(array.shape(), array.shape() + array.ndim());
  const std::vector<py::ssize_t> expected = ArrayShape(info);
  if (shape == expected) return;
  throw py::value_error(py::str("input \"{}\" has shape {}, expected {}")
                            .format(info.name, py::tuple(py::cast(shape)), py::tuple(py::cast(expected))));
}

// Python's threads may share a session, so runs take turns.
class PythonSession {
 public:
  PythonSession(const tilesmith::Model& model, std::vector<int> cores)
      : model_(model), session_(model.NewSession({std::move(cores)})) {}

  std::vector<Array> Run(const std::vector<Array>& inputs) {
    std::vector<Array> outputs = NewOutputs();
    With(inputs, outputs, [&](auto from, auto to) { session_.Run(from, to); });
    return outputs;
  }

  std::vector<tilesmith::StepTime> Profile(const std::vector<Array>& inputs, int runs) {
    std::vector<Array> outputs = NewOutputs();
    std::vector<tilesmith::StepTime> steps;
    With(inputs, outputs, [&](auto from, auto to) { steps = session_.Profile(from, to, runs); });
    return steps;
  }

  size_t ActivationBytes() const { return session_.activation_bytes(); }

 private:
  std::vector<Array> NewOutputs() const {
    std::vector<Array> outputs;
    for (const TensorInfo& info : model_.outputs()) outputs.emplace_back(ArrayShape(info));
    return outputs;
  }

  template <typename Body>
  void With(const std::vector<Array>& inputs, std::vector<Array>& outputs, const Body& body) {
    if (inputs.size() != model_.inputs().size())
      throw py::value_error(
          py::str("{} inputs given, expected {}").format(inputs.size(), model_.inputs().size()));
    std::vector<const float*> from;
    std::vector<float*> to;
    for (size_t i = 0; i < inputs.size(); ++i) {
      CheckShape(inputs[i], model_.inputs()[i]);
      from.push_back(inputs[i].data());
    }
    to.reserve(outputs.size());
    for (Array& output : outputs) to.push_back(output.mutable_data());
    const py::gil_scoped_release released;
    const std::lock_guard lock(mutex_);
    body(std::span<const float* const>(from), std::span<float* const>(to));
  }

  const tilesmith::Model model_;
  tilesmith::Session session_;
  std::mutex mutex_;
};

tilesmith::Model Load(const std::string& model, const std::string& plan, int threads, int64_t batch,
                      const std::vector<std::string>& input_shapes, int64_t max_elements,
                      int64_t max_memory) {
  const py::gil_scoped_release released;
  return tilesmith::Model::Load(model, {.plan = plan,
                                        .threads = threads,
                                        .batch = batch,
                                        .input_shapes = input_shapes,
                                        .max_elements = max_elements,
                                        .max_memory = max_memory});
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
      .def("__repr__", [](const TensorInfo& info) {
        return py::str("<TensorInfo {} {} {}>").format(info.name, info.shape, info.layout);
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
      .def(py::init<const tilesmith::Model&, std::vector<int>>())
      .def("run", &PythonSession::Run)
      .def("profile", &PythonSession::Profile)
      .def_property_readonly("activation_bytes", &PythonSession::ActivationBytes);
  module.def("cores_of_numa_node", &tilesmith::CoresOfNumaNode);
}
