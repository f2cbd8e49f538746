#include "templates/matmul/config.h"

#include <fmt/format.h>

#include <algorithm>

#include "templates/base/image_strides.h"

namespace tilesmith::matmul {
namespace {

// What a panel, and what is packed for it, may take of a thread's caches.
constexpr int64_t kMaxScratchBytes = 2 << 20;

std::string WhyInvalid(const MatMulSchedule& s, int vector_floats) {
  const int most = MostTileRows(vector_floats, s.tile_vectors);
  if (s.tile_rows > most) {
    return fmt::format("the registers have room for {} rows of {} vectors", most, s.tile_vectors);
  }
  if (s.tile_rows > s.panel_rows) return "a register tile has more rows than a panel";
  if (s.tile_vectors > 1 && int64_t{s.tile_vectors} * vector_floats > s.panel_columns) {
    return "a register tile has more columns than a panel";
  }
  const int64_t left = s.pack_left ? s.panel_terms * s.panel_rows : 0;
  const int64_t floats = s.panel_rows * s.panel_columns + s.panel_terms * s.panel_columns + left;
  if (floats * kFloatBytes > kMaxScratchBytes) {
    return fmt::format("a thread's panels take {} KiB, allowed are {}", floats * kFloatBytes >> 10,
                       kMaxScratchBytes >> 10);
  }
  return "";
}

// The first values, up to one that covers `size`, but all up to `at_least`.
std::vector<int64_t> UpToCover(int64_t size, int64_t at_least, std::initializer_list<int64_t> values) {
  std::vector<int64_t> kept;
  for (const int64_t value : values) {
    if (!kept.empty() && kept.back() >= std::max(size, at_least)) break;
    kept.push_back(value);
  }
  return kept;
}

std::vector<int64_t> UpToAll(int most) {
  std::vector<int64_t> values;
  for (int value = 1; value <= most; ++value) values.push_back(value);
  return values;
}

}  // namespace

MatMulSchedule ReadConfig(const Config& config) {
  return {.tile_rows = static_cast<int>(config.Get("tile_rows")),
          .tile_vectors = static_cast<int>(config.Get("tile_vectors")),
          .panel_rows = config.Get("panel_rows"),
          .panel_columns = config.Get("panel_columns"),
          .panel_terms = config.Get("panel_terms"),
          .pack_left = config.Get("pack_left") != 0,
          .pack_right = static_cast<Packing>(config.Get("pack_right")),
          .rows_inner = config.Get("rows_inner") != 0};
}

Support Supports(const ConvWorkload&, const Target&) { return Support::Yes(); }

ConfigSpace Space(const ConvWorkload& w, const Target& cpu) {
  const int vector = cpu.vector_floats();
  std::vector<Knob> knobs = {
      {"tile_rows", UpToAll(MostTileRows(vector, 1)), "register tile: rows"},
      {"tile_vectors", UpToAll(kMaxTileVectors), "register tile: vectors of columns"},
      {"panel_rows", UpToCover(w.oh, kPanelRows, {8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256}),
       "rows of a task, at most; all tasks have about as many"},
      {"panel_columns", UpToCover(w.oc, kPanelColumns, {16, 32, 48, 64, 96, 128}), "columns of a task"},
      {"panel_terms", UpToCover(w.ic, kPanelTerms, {32, 64, 128, 256, 512, 1024}),
       "terms added up before the next ones are looked at"},
      {"pack_left", {0, 1}, "1: the left side is copied, rows side by side"},
      {"pack_right",
       {0, 1, 2},
       "the right side is copied: 0 where that pays by experience, 1 where needed, 2 always"},
      {"rows_inner", {0, 1}, "neighbouring tasks: 0 read the same rows, 1 the same columns"}};
  return ConfigSpace(std::move(knobs),
                     [vector](const Config& config) { return WhyInvalid(ReadConfig(config), vector); });
}

Config Default(const ConvWorkload& w, const Target& cpu) {
  const MatMulSchedule s;
  Config config;
  config.Set("tile_rows", DefaultTileRows(cpu.vector_floats()));
  config.Set("tile_vectors", s.tile_vectors);
  config.Set("panel_rows", kPanelRows);
  config.Set("panel_columns", DefaultPanelColumns(w.oh, w.oc, w.ic, cpu));
  config.Set("panel_terms", s.panel_terms);
  config.Set("pack_left", s.pack_left);
  config.Set("pack_right", static_cast<int64_t>(s.pack_right));
  config.Set("rows_inner", s.rows_inner);
  return config;
}

}  // namespace tilesmith::matmul
