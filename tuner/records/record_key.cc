#include "tuner/records/record_key.h"

#include <fmt/format.h>

#include <functional>

namespace tilesmith {
namespace {

void Mix(size_t& hash, size_t value) { hash = (hash ^ value) * 0x9E3779B97F4A7C15u + (hash >> 29); }

}  // namespace

std::string TaskKey::ToString() const {
  const std::string model =
      target->device == kCpuDevice ? target->model : target->device + ' ' + target->model;
  return fmt::format("{}|{}|{}|{}|{}|{}", WorkloadToString(*workload), model, IsaName(target->isa),
                     conditions->threads, conditions->cold_weights, conditions->pinned);
}

std::string ScheduleKey::ToString() const { return std::string(template_name) + ' ' + config->ToString(); }

std::string RecordKey::ToString() const { return task().ToString() + '|' + schedule().ToString(); }

size_t KeyHash::operator()(const TaskKey& key) const {
  const ConvWorkload& w = *key.workload;
  size_t hash = std::hash<std::string_view>()(key.target->model);
  for (const int64_t value : {w.mb, w.g, w.ic, w.ih, w.iw, w.oc, w.oh, w.ow, w.kh, w.sh, w.ph, w.dh})
    Mix(hash, static_cast<size_t>(value));
  Mix(hash, static_cast<size_t>(key.conditions->threads) * 2 + (key.conditions->cold_weights ? 1 : 0));
  return hash;
}

size_t KeyHash::operator()(const ScheduleKey& key) const {
  size_t hash = std::hash<std::string_view>()(key.template_name);
  for (const auto& [name, value] : key.config->knobs()) Mix(hash, static_cast<size_t>(value));
  return hash;
}

size_t KeyHash::operator()(const RecordKey& key) const {
  size_t hash = (*this)(key.task());
  Mix(hash, (*this)(key.schedule()));
  return hash;
}

}  // namespace tilesmith
