// Text that others wrote, made safe to look at. Names in models, lines of files and arguments may hold what a
// terminal acts on: sequences that move its cursor, retitle it, or hide what was printed before.
#pragma once

#include <string>
#include <string_view>

namespace tilesmith {

// Control characters and those that change the direction of text become "\u001b", bytes that are no UTF-8
// "\xff"; newlines, tabs and all other UTF-8 stay as they are. JSON stays JSON with the same values.
std::string Visible(std::string_view text);

// The same on one line: newlines and tabs become "\n" and "\t".
std::string VisibleLine(std::string_view text);

// The first `most` bytes, or fewer where a character would be cut.
std::string_view Shortened(std::string_view text, size_t most);

}  // namespace tilesmith
