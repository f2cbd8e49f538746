#include "tools/cli/command.h"

int main(int argc, char** argv) {
  return tilesmith::RunCommandLine(std::vector<std::string>(argv + 1, argv + argc));
}
