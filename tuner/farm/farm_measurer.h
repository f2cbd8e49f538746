// A coordinator's side of a farm: a queue of trials behind which stand all machines of a class.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tuner/farm/farm.h"
#include "tuner/measure/measurer.h"

namespace tilesmith {

struct FarmRequest {
  FarmAddress address;
  FarmTiming timing;
  std::string class_name;
  // Called before answers are taken out of the farm: what was done with them until then is to be kept safe.
  // May be empty.
  std::function<void()> sync = {};
  std::function<void(const std::string&)> on_warning = {};  // may be empty
  const StopFlag* stop = nullptr;
};

// Each trial is answered once, by whichever machine was first, whatever becomes of workers and of Redis
// meanwhile. A trial that is kept together with others goes to one machine's own stream, and to another one's
// when that machine is lost. Stopping ends the wait for machines that do not answer: Error(kInterrupted).
// Begin and the functions behind it throw Error(kEnvironment) as well when the class has no workers, or Redis
// is out of reach, for longer than the timing's patience, and when a worker refuses the session.
class FarmMeasurer : public Measurer {
 public:
  explicit FarmMeasurer(FarmRequest request);
  ~FarmMeasurer() override;  // what is in flight is forgotten

  void Begin(const MeasureSession& session) override;
  // One running and one waiting trial for each worker, as they were when last looked at.
  int Capacity() const override;
  Ticket Submit(const TrialRequest& request) override;
  std::pair<Ticket, TrialResult> Next() override;
  void KeepTogether(bool together) override;

  // Waits for the first, until the patience is over. All are alike: a class has one kind of machine.
  const std::vector<FarmWorker>& AwaitWorkers();

 private:
  struct InFlight {
    Ticket ticket = 0;
    TrialRequest request;
    int garbled = 0;  // answers that were none
  };

  void Look();
  void Send(const std::string& id, const InFlight& trial);
  std::string Stream();
  void Receive(double seconds);
  void Enter(const FarmFields& fields);
  void EnterGarbled(const std::string& id, const std::string& why);
  void FindLost();
  void ForgetInFlight();
  void CheckStop();
  void Trim();
  void Warn(const std::string& text) const;

  const FarmRequest request_;
  Farm farm_;
  const std::string id_;
  MeasureSession session_;
  std::string session_text_;
  std::vector<FarmWorker> workers_;                        // of the class, alive
  double looked_ = 0, without_workers_ = 0, stopped_ = 0;  // since when; 0: not
  std::map<std::string, int> repetitions_;               // of a trial of the session: how often it was asked
  std::map<std::string, InFlight> in_flight_;            // by the trial's id
  std::vector<std::pair<Ticket, TrialResult>> results_;  // not handed out yet
  std::string read_ = "0";                               // the last answer that was read
  std::vector<std::string> read_entries_;                // not trimmed yet
  bool together_ = false;
  std::string machine_;  // that all trials go to, when together
  Ticket last_ = 0;
};

}  // namespace tilesmith
