// Standard output and standard error: the one place where text leaves the program.
//
// Results go to stdout, everything else to stderr. A stdout that takes no more is remembered until the
// command is over, so that what it writes to files is written all the same; a stderr that nobody reads is no
// reason to lose what was measured. Text is printed so that a terminal acts on none of it (visible.h).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tilesmith {

// First thing in main. Opens those of the descriptors 0 to 2 that the process was started without, so that no
// file of ours gets their numbers; to write to a stdout that was closed fails all the same. From now on a
// reader that went away, and a file that may not grow any more, are errors of the write, not the end of the
// process.
void PrepareStreams();

void PrintOut(std::string_view text);  // to stdout
void PrintErr(std::string_view text) noexcept;
// To stderr likewise, unless the user wants it quiet: for all but errors.
void PrintNote(std::string_view text) noexcept;
// How much a command says besides its results: warnings and progress, neither, or every step in a line.
enum class Verbosity { kQuiet, kNormal, kVerbose };
Verbosity ProgramVerbosity();
// Takes -q, --quiet, -v and --verbose out of the arguments and sets it; of several the last one counts.
void SetVerbosity(std::vector<std::string>& arguments);

// The width that text on stdout should have: $COLUMNS or, where that is not set, the terminal's. 0: any, when
// stdout is none.
size_t OutputColumns();

// As it is, to draw on a terminal: of text that is not ours only what VisibleLine made of it.
void DrawErr(std::string_view text) noexcept;

// The exit code of a command that ended with `code`: kEnvironment instead of 0 when something printed to
// stdout did not get there, which a line on stderr explains. A reader that left, as `head` does, knows: then
// there is no line.
int ExitCodeAfterPrinting(int code);

}  // namespace tilesmith
