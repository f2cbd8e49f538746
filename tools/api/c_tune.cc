#include <algorithm>
#include <atomic>

#include "tools/api/c_values.h"

struct tilesmith_stop {
  std::atomic<bool> flag = false;
};

namespace {

using namespace tilesmith::c;  // NOLINT: all of it

// What those of Tune, Optimize and GraphTune have in common.
template <typename Settings>
void TakeChoosing(const tilesmith_tune_settings& given, Settings& settings) {
  TakeTarget(given, settings);
  settings.max_output_error = given.max_output_error;
  settings.max_error = given.max_error;
  settings.forbid = TextsOf("forbid", given.forbid, given.forbid_count);
  if (given.input_layout != nullptr) settings.input_layout = given.input_layout;
  if (given.output_layout != nullptr) settings.output_layout = given.output_layout;
  settings.max_weights = given.max_weights;
  settings.max_elements = given.max_elements;
  settings.max_memory = given.max_memory;
  if (given.wait != nullptr) settings.wait = given.wait;
}

// What all settings have in common.
template <typename Settings, typename Given>
Settings SettingsOf(const Given& given) {
  Settings settings;
  if constexpr (requires { settings.rounds, given.rounds; })
    if (given.rounds != 0) settings.rounds = std::max(given.rounds, 0);
  settings.threads = given.threads;
  settings.batch = given.batch;
  settings.input_shapes = TextsOf("input_shapes", given.input_shapes, given.input_shape_count);
  if (given.on_progress != nullptr) {
    settings.on_progress = [tell = given.on_progress, user_data = given.user_data](const std::string& stage) {
      tell(stage.c_str(), user_data);
    };
  }
  if (given.stop != nullptr) settings.stop = &given.stop->flag;
  settings.calibrate = TextsOf("calibrate", given.calibrate, given.calibrate_count);
  if constexpr (requires { given.target; }) TakeChoosing(given, settings);
  return settings;
}

// What those of Tune and Optimize have besides.
template <typename Settings>
void TakeMeasuring(const tilesmith_tune_settings& given, Settings& settings) {
  if (given.log != nullptr) settings.log = given.log;
  if (given.seconds != 0) settings.seconds = given.seconds;
  settings.database = given.no_database == 0;
  if (given.program != nullptr) settings.program = given.program;
}

template <typename Given>
int Tune(const Given* model, const char* plan, const tilesmith_tune_settings* settings) {
  return Guard([&] {
    const auto of = ModelOf(model);
    RequirePointer(plan, "plan");
    const tilesmith_tune_settings given = settings != nullptr ? *settings : tilesmith_tune_settings{};
    auto options = SettingsOf<tilesmith::TuneSettings>(given);
    TakeMeasuring(given, options);
    if (given.graph_seconds != 0) options.graph_seconds = given.graph_seconds;
    tilesmith::Tune(of, plan, options);
  });
}

template <typename Given>
int Optimize(const Given* model, const char* plan, const tilesmith_tune_settings* settings) {
  return Guard([&] {
    const auto of = ModelOf(model);
    RequirePointer(plan, "plan");
    const tilesmith_tune_settings given = settings != nullptr ? *settings : tilesmith_tune_settings{};
    auto options = SettingsOf<tilesmith::OptimizeSettings>(given);
    TakeMeasuring(given, options);
    tilesmith::Optimize(of, plan, options);
  });
}

template <typename Given>
int GraphTune(const Given* model, const char* log, const char* plan,
              const tilesmith_tune_settings* settings) {
  return Guard([&] {
    const auto of = ModelOf(model);
    RequirePointer(plan, "plan");
    const tilesmith_tune_settings given = settings != nullptr ? *settings : tilesmith_tune_settings{};
    auto options = SettingsOf<tilesmith::GraphTuneSettings>(given);
    if (given.graph_seconds != 0) options.seconds = given.graph_seconds;
    tilesmith::GraphTune(of, log != nullptr ? log : "", plan, options);
  });
}

template <typename Given>
int Quantize(const Given* model, const char* output, const tilesmith_quantize_settings* settings) {
  return Guard([&] {
    const auto of = ModelOf(model);
    RequirePointer(output, "output");
    const tilesmith_quantize_settings given = settings != nullptr ? *settings : tilesmith_quantize_settings{};
    auto options = SettingsOf<tilesmith::QuantizeSettings>(given);
    options.samples = given.samples;
    if (given.method != nullptr) options.method = given.method;
    if (given.percentile != 0) options.percentile = given.percentile;
    if (given.activations != nullptr) options.activations = given.activations;
    options.reduce_range = given.reduce_range != 0;
    options.keep = TextsOf("keep", given.keep, given.keep_count);
    options.keep_first = given.keep_first != 0;
    options.keep_last = given.keep_last != 0;
    options.op_types = TextsOf("op_types", given.op_types, given.op_type_count);
    options.external_data = given.external_data != 0;
    options.check = given.no_check == 0;
    tilesmith::Quantize(of, output, options);
  });
}

}  // namespace

tilesmith_stop* tilesmith_new_stop(void) { return new (std::nothrow) tilesmith_stop; }
void tilesmith_cancel(tilesmith_stop* stop) {
  if (stop != nullptr) stop->flag = true;
}
void tilesmith_free_stop(tilesmith_stop* stop) { delete stop; }

int tilesmith_tune(const char* model_name, const char* plan, const tilesmith_tune_settings* settings) {
  return Tune(model_name, plan, settings);
}
int tilesmith_tune_memory(const tilesmith_memory* memory, const char* plan,
                          const tilesmith_tune_settings* settings) {
  return Tune(memory, plan, settings);
}

int tilesmith_optimize(const char* model_name, const char* plan, const tilesmith_tune_settings* settings) {
  return Optimize(model_name, plan, settings);
}
int tilesmith_optimize_memory(const tilesmith_memory* memory, const char* plan,
                              const tilesmith_tune_settings* settings) {
  return Optimize(memory, plan, settings);
}

int tilesmith_graph_tune(const char* model_name, const char* log, const char* plan,
                         const tilesmith_tune_settings* settings) {
  return GraphTune(model_name, log, plan, settings);
}
int tilesmith_graph_tune_memory(const tilesmith_memory* memory, const char* log, const char* plan,
                                const tilesmith_tune_settings* settings) {
  return GraphTune(memory, log, plan, settings);
}

int tilesmith_quantize(const char* model_name, const char* output,
                       const tilesmith_quantize_settings* settings) {
  return Quantize(model_name, output, settings);
}
int tilesmith_quantize_memory(const tilesmith_memory* memory, const char* output,
                              const tilesmith_quantize_settings* settings) {
  return Quantize(memory, output, settings);
}
