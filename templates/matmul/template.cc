#include "templates/matmul/template.h"

#include "templates/base/schedule_template.h"
#include "templates/matmul/config.h"
#include "templates/matmul/schedule.h"

namespace tilesmith {
namespace matmul {
namespace {

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target& cpu) {
  return {w, ReadConfig(config), cpu.vector_floats()};
}

}  // namespace
}  // namespace matmul

MatMulSchedule MatMulScheduleOf(const Config& config) { return matmul::ReadConfig(config); }

const ConvTemplate& MatMulTemplate() {
  static const ScheduleTemplate<matmul::Schedule> instance({.name = "matmul",
                                                            .products = true,
                                                            .supports = matmul::Supports,
                                                            .space = matmul::Space,
                                                            .preset = matmul::Default,
                                                            .read = matmul::ReadSchedule,
                                                            .layout_knobs = {}});
  return instance;
}

}  // namespace tilesmith
