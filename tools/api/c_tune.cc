#include <atomic>

#include "tools/api/c_values.h"

struct tilesmith_stop {
  std::atomic<bool> flag = false;
};

namespace {

using namespace tilesmith::c;  // NOLINT: all of it

// Calls work(model, settings); `path`, an argument of that name, is what it writes.
template <typename Settings, typename Model, typename Given, typename Work>
int Do(const Model* model, const char* name, const char* path, const Given* settings, const Work& work) {
  return Guard([&] {
    const auto of = ModelOf(model);
    RequirePointer(path, name);
    const Given given = settings != nullptr ? *settings : Given{};
    auto taken = SettingsOf<Settings>(given);
    if (given.on_progress != nullptr) {
      taken.on_progress = [tell = given.on_progress, user_data = given.user_data](const std::string& stage) {
        tell(stage.c_str(), user_data);
      };
    }
    if (given.stop != nullptr) taken.stop = &given.stop->flag;
    work(of, taken);
  });
}

template <typename Model>
int Tune(const Model* model, const char* plan, const tilesmith_tune_settings* settings) {
  return Do<tilesmith::TuneSettings>(model, "plan", plan, settings, [&](const auto& of, const auto& taken) {
    tilesmith::Tune(of, plan, taken);
  });
}

template <typename Model>
int Optimize(const Model* model, const char* plan, const tilesmith_tune_settings* settings) {
  return Do<tilesmith::OptimizeSettings>(
      model, "plan", plan, settings,
      [&](const auto& of, const auto& taken) { tilesmith::Optimize(of, plan, taken); });
}

template <typename Model>
int GraphTune(const Model* model, const char* log, const char* plan,
              const tilesmith_tune_settings* settings) {
  tilesmith_tune_settings given = settings != nullptr ? *settings : tilesmith_tune_settings{};
  given.seconds = given.graph_seconds;
  return Do<tilesmith::GraphTuneSettings>(model, "plan", plan, &given,
                                          [&](const auto& of, const auto& taken) {
                                            tilesmith::GraphTune(of, log != nullptr ? log : "", plan, taken);
                                          });
}

template <typename Model>
int Quantize(const Model* model, const char* output, const tilesmith_quantize_settings* settings) {
  return Do<tilesmith::QuantizeSettings>(
      model, "output", output, settings,
      [&](const auto& of, const auto& taken) { tilesmith::Quantize(of, output, taken); });
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
