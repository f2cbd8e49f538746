// Results that commands printed with --json, read back. They may hold anything: what is not of the type asked
// for is as if it were not there.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "graph_tuner/plan/plan.h"

namespace tilesmith {

class SavedResults {
 public:
  // Members come behind those of what was added before: of one name the first counts. Throws Error(kUsage)
  // naming the source when the text is no JSON object that says its command, or says that it is of another
  // network or was measured with another plan (GraphHash, PlanHash).
  void Add(const std::string& text, const std::string& source, const Plan& plan);

  bool Has(const std::string& name) const;  // not null
  std::optional<double> Number(const std::string& name) const;
  std::string Text(const std::string& name) const;  // "" when it is not there
  std::vector<double> Numbers(const std::string& name) const;
  // The objects of a list: of each these members, null where they are no texts or numbers.
  std::vector<nlohmann::ordered_json> Rows(const std::string& name, std::initializer_list<const char*> texts,
                                           std::initializer_list<const char*> numbers) const;
  // A list of what each of them says of where it is from.
  nlohmann::ordered_json Origins() const;
  // The sources of those of a network that do not say which plan was measured, as older versions' do.
  const std::vector<std::string>& without_plan() const { return without_plan_; }

 private:
  const nlohmann::json* Find(const std::string& name) const;  // null: nowhere
  std::vector<nlohmann::json> results_;
  std::vector<std::string> without_plan_;
};

// The number or the text, else null.
nlohmann::ordered_json NumberOrNull(const nlohmann::json& object, const char* name);
nlohmann::ordered_json TextOrNull(const nlohmann::json& object, const char* name);

}  // namespace tilesmith
