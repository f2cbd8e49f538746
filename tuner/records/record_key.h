// Records are told apart by their keys: a task, and within a task a schedule.
//
// Keys are views, cheap to compare and to hash; what they are made from outlives them. Where a key has to
// outlive it, its text takes its place: two keys are equal exactly when their texts are.
#pragma once

#include <string>
#include <string_view>

#include "tuner/records/record.h"

namespace tilesmith {

// A workload on a machine (SameMachine) under certain conditions. Times of one task are compared with each
// other.
struct TaskKey {
  explicit TaskKey(const Record& record) : TaskKey(record.target, record.workload, record.conditions) {}
  TaskKey(const Target& on, const ConvWorkload& of, const MeasureConditions& under)
      : target(&on), workload(&of), conditions(&under) {}

  std::string ToString() const;
  friend bool operator==(const TaskKey& a, const TaskKey& b) {
    return *a.workload == *b.workload && *a.conditions == *b.conditions && SameMachine(*a.target, *b.target);
  }

  const Target* target;
  const ConvWorkload* workload;
  const MeasureConditions* conditions;
};

// A template's config.
struct ScheduleKey {
  explicit ScheduleKey(const Record& record) : ScheduleKey(record.template_name, record.config) {}
  ScheduleKey(std::string_view of_template, const Config& with) : template_name(of_template), config(&with) {}

  std::string ToString() const;  // "direct ic_block=16 oc_block=32"
  friend bool operator==(const ScheduleKey& a, const ScheduleKey& b) {
    return *a.config == *b.config && a.template_name == b.template_name;
  }

  std::string_view template_name;
  const Config* config;
};

// ScheduleKey's text, one for each config of a workload.
inline std::string ScheduleText(const Record& record) { return ScheduleKey(record).ToString(); }

// A trial tries a schedule for a task. Two records of one key measured the same.
class RecordKey {
 public:
  explicit RecordKey(const Record& record) : record_(&record) {}

  TaskKey task() const { return TaskKey(*record_); }
  ScheduleKey schedule() const { return ScheduleKey(*record_); }
  std::string ToString() const;
  friend bool operator==(const RecordKey& a, const RecordKey& b) {
    return a.schedule() == b.schedule() && a.task() == b.task();
  }

 private:
  const Record* record_;
};

// For unordered containers.
struct KeyHash {
  size_t operator()(const TaskKey& key) const;
  size_t operator()(const ScheduleKey& key) const;
  size_t operator()(const RecordKey& key) const;
};

}  // namespace tilesmith
