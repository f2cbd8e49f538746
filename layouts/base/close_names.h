// Which names a user may have meant by one that does not exist.
#pragma once

#include <string>
#include <vector>

namespace tilesmith {

// Names that contain `text` whatever the case, then those that few letters tell apart from it: two, or a
// third of its length, of at most three letters one. The closest first, at most `most`.
std::vector<std::string> CloseNames(const std::string& text, const std::vector<std::string>& names,
                                    size_t most);

// "did you mean resnet50?" of the closest one; "" when none is close.
std::string MeantText(const std::string& text, const std::vector<std::string>& names);

}  // namespace tilesmith
