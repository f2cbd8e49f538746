// The part of the Python package that is C++: models, and what makes plans for them.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <functional>
#include <list>
#include <stdexcept>
#include <string_view>
#include <type_traits>

#include "tools/api/python/session.h"
#include "tools/api/setting_list.h"
#include "tools/api/tilesmith.h"

namespace py = pybind11;

namespace {

using namespace tilesmith::python;

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

// The argument of that name. Throws TypeError, which names it and does not print what it was given.
template <typename Value>
void Take(const py::dict& options, const char* name, Value& value) {
  const py::object given = options[name];
  constexpr bool is_text = std::is_same_v<Value, std::string>;
  try {
    if (is_text && !py::isinstance<py::str>(given)) throw py::cast_error("bytes are none");
    value = given.cast<Value>();
  } catch (const py::cast_error&) {
    constexpr bool is_list = !is_text && !std::is_arithmetic_v<Value>;
    const char* const wanted = is_text                       ? "a str"
                               : is_list                     ? "a str or several"
                               : std::is_same_v<Value, bool> ? "a bool"
                               : std::is_integral_v<Value>   ? "an int that is not too large"
                                                             : "a number";
    throw py::type_error(
        py::str("{} must be {}, got {}").format(name, wanted, py::type::of(given).attr("__name__")));
  }
}

void TakeSeconds(const py::dict& options, const char* name, double& seconds) {
  const py::object given = options[name];
  if (!py::isinstance<py::str>(given)) return Take(options, name, seconds);
  seconds = tilesmith::DurationSeconds(name, given.cast<std::string>());
}

template <typename Settings>
void TakeSettings(const py::dict& options, Settings& settings) {
  tilesmith::VisitSettings(settings, [&](const char* name, auto& value) {
    if constexpr (std::is_same_v<decltype(value), double&>)
      if (std::string_view(name).ends_with("seconds")) return TakeSeconds(options, name, value);
    Take(options, name, value);
  });
}

tilesmith::Model Load(const py::object& given, const py::dict& parts, const py::dict& options) {
  const GivenModel model(given, parts);
  tilesmith::LoadOptions load;
  TakeSettings(options, load);
  const py::gil_scoped_release released;
  return model.With([&](const auto& of) { return tilesmith::Model::Load(of, load); });
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
  py::dict options;
  options[name.c_str()] = duration;
  double seconds = 0;
  TakeSeconds(options, name.c_str(), seconds);
  return seconds;
}

// Calls work(model, settings), whatever the model is given as.
template <typename Settings, typename Work>
auto Do(const py::object& given, const py::dict& parts, const py::dict& options, const py::object& progress,
        const Work& work) {
  Settings settings;
  TakeSettings(options, settings);
  settings.on_progress = Progress(progress);
  const GivenModel model(given, parts);
  const py::gil_scoped_release released;
  return model.With([&](const auto& of) { return work(of, settings); });
}

void Tune(const py::object& model, const py::dict& parts, const std::string& plan, const py::dict& options,
          const py::object& progress) {
  Do<tilesmith::TuneSettings>(model, parts, options, progress, [&](const auto& of, const auto& settings) {
    tilesmith::Tune(of, plan, settings);
  });
}

void Optimize(const py::object& model, const py::dict& parts, const std::string& plan,
              const py::dict& options, const py::object& progress) {
  Do<tilesmith::OptimizeSettings>(model, parts, options, progress, [&](const auto& of, const auto& settings) {
    tilesmith::Optimize(of, plan, settings);
  });
}

void GraphTune(const py::object& model, const py::dict& parts, const std::string& plan,
               const py::dict& options, const py::object& progress) {
  std::string log;
  Take(options, "log", log);
  Do<tilesmith::GraphTuneSettings>(
      model, parts, options, progress,
      [&](const auto& of, const auto& settings) { tilesmith::GraphTune(of, log, plan, settings); });
}

std::string Quantize(const py::object& model, const py::dict& parts, const std::string& output,
                     const py::dict& options, const py::object& progress) {
  return Do<tilesmith::QuantizeSettings>(
      model, parts, options, progress,
      [&](const auto& of, const auto& settings) { return tilesmith::Quantize(of, output, settings); });
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
      .def_property_readonly("warnings", &tilesmith::Model::warnings)
      .def_property_readonly("threads", &tilesmith::Model::threads)
      .def_property_readonly("reproducible", &tilesmith::Model::reproducible)
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
