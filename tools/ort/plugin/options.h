// What a session's owner can ask of the plug-in.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tilesmith {

struct PluginOptions {
  std::vector<std::string>
      plans;        // files of optimize or graph-tune; each is for the region whose network it was made for
  int threads = 0;  // 0: one for each core of this process
  bool strict = false;  // a plan for other threads than there are is an error
  std::string dump;     // a folder for the regions as ONNX files, to be tuned; empty: none
};

// From texts by name: "plan" (several separated by ";"), "threads", "strict" ("0" or "1"), "dump". Throws
// Error(kUsage) for another name, and for a value that is none.
PluginOptions ParsePluginOptions(const std::map<std::string, std::string>& texts);

}  // namespace tilesmith
