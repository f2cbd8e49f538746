#include "tuner/records/replace_log.h"

#include "layouts/base/text_file.h"
#include "tuner/records/json_fields.h"

namespace tilesmith {

void ReplaceLog(const std::string& path, std::span<const std::string_view> lines) {
  NewFile file(path);
  for (const std::string_view line : lines) {
    file.Write(line);
    file.Write("\n");
  }
  file.Finish();
}

void ReplaceLog(const std::string& path, std::span<const Record* const> records) {
  NewFile file(path);
  for (const Record* record : records) file.Write(JsonLine(RecordToJson(*record)) + '\n');
  file.Finish();
}

}  // namespace tilesmith
