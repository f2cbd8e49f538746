#include "tools/cli/command.h"
#include "tools/cli/streams.h"

int main(int argc, char** argv) {
  tilesmith::PrepareStreams();
  return tilesmith::RunCommandLine(std::vector<std::string>(argv + 1, argv + argc));
}
