#include "tools/peers/scratch_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include "layouts/base/error.h"

namespace tilesmith {

ScratchFolder::ScratchFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "tilesmith-peer-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr)
    throw Error(ErrorCode::kEnvironment, fmt::format("cannot make a folder like {}", name));
  folder_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
}

}  // namespace tilesmith
