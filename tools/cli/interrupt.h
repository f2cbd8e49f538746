// Ctrl-C: the first one asks the command to finish what it is at and report; the second one ends it.
#pragma once

namespace tilesmith {

// SIGINT and SIGTERM set the flag from now on, once.
void CatchInterrupts();
bool Interrupted();
// A file that may not grow any more is an error of the write, not the end of the process.
void IgnoreFileSizeSignal();
// For child processes: Ctrl-C reaches them too, but it is their parent's to act on.
void IgnoreInterrupts();

}  // namespace tilesmith
