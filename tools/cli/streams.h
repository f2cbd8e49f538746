// Standard output and standard error: the one place where text leaves the program.
//
// Results go to stdout, everything else to stderr. A stdout that takes no more is remembered until the
// command is over, so that what it writes to files is written all the same; a stderr that nobody reads is no
// reason to lose what was measured. Text is printed so that a terminal acts on none of it (visible.h).
#pragma once

#include <string_view>

namespace tilesmith {

// First thing in main. Opens those of the descriptors 0 to 2 that the process was started without, so that no
// file of ours gets their numbers; to write to a stdout that was closed fails all the same. From now on a
// reader that went away, and a file that may not grow any more, are errors of the write, not the end of the
// process.
void PrepareStreams();

void PrintOut(std::string_view text);  // to stdout
void PrintErr(std::string_view text) noexcept;
// As it is, to draw on a terminal: of text that is not ours only what VisibleLine made of it.
void DrawErr(std::string_view text) noexcept;

// The exit code of a command that ended with `code`: kEnvironment instead of 0 when something printed to
// stdout did not get there, which a line on stderr explains. A reader that left, as `head` does, knows: then
// there is no line.
int ExitCodeAfterPrinting(int code);

}  // namespace tilesmith
