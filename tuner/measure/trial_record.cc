#include "tuner/measure/trial_record.h"

#include "tuner/measure/estimator.h"
#include "tuner/records/utc_time.h"

namespace tilesmith {

Record TrialRecord(const MeasureSession& session, const ConvTemplate& conv_template, const Config& config,
                   const TrialResult& result) {
  Record record;
  record.target = result.target;
  record.workload = session.workload;
  record.template_name = conv_template.Name();
  record.config = config;
  record.layouts = conv_template.Layouts(session.workload, config);
  record.conditions = session.conditions;
  record.status = result.status;
  record.detail = result.detail;
  record.sample_seconds = result.sample_seconds;
  record.seconds = result.seconds;
  record.error = result.error;
  record.statistic = kEstimatorName;
  record.early_stopped = result.early_stopped;
  record.seed = session.seed;
  record.time = UtcNow();
  return record;
}

}  // namespace tilesmith
