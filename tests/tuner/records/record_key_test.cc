#include "tuner/records/record_key.h"

#include <gtest/gtest.h>

#include "tests/tuner/support/random_records.h"

namespace tilesmith {
namespace {

// Keys, their hashes and their texts agree on what is the same.
template <typename Key>
void ExpectAgreement(const Record& a, const Record& b) {
  const Key key_a(a), key_b(b);
  EXPECT_EQ(key_a == key_b, key_a.ToString() == key_b.ToString()) << key_a.ToString() << key_b.ToString();
  if (key_a == key_b) {
    EXPECT_EQ(KeyHash()(key_a), KeyHash()(key_b));
  }
}

TEST(RecordKey, TextsAndHashesFollowEquality) {
  TestRandom random(6);
  const std::vector<Record> records = RandomRecords(random, 100);
  for (const Record& a : records) {
    for (const Record& b : records) {
      ExpectAgreement<TaskKey>(a, b);
      ExpectAgreement<ScheduleKey>(a, b);
      ExpectAgreement<RecordKey>(a, b);
      EXPECT_EQ(RecordKey(a) == RecordKey(b), TaskKey(a) == TaskKey(b) && ScheduleKey(a) == ScheduleKey(b));
    }
  }
}

TEST(RecordKey, WhatWasMeasuredIsNoPartOfIt) {
  const Record record = SampleRecord();
  Record other = SampleRecord(1);
  other.status = TrialStatus::kRunCrash;
  other.target.version = "9.9";
  other.tuner = "grid";
  other.purpose = kPurposeRetime;
  EXPECT_EQ(RecordKey(record), RecordKey(other));
  EXPECT_EQ(ScheduleKey(record).ToString(), "direct ic_block=16 oc_block=32 rows=2");
  other.conditions.pinned = !other.conditions.pinned;
  EXPECT_NE(TaskKey(record), TaskKey(other));
  EXPECT_EQ(ScheduleKey(record), ScheduleKey(other));
}

}  // namespace
}  // namespace tilesmith
