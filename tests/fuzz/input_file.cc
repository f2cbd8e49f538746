#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "tests/fuzz/target.h"

namespace tilesmith::fuzz {

InputFile::InputFile(std::string_view bytes) : fd_(memfd_create("input", MFD_CLOEXEC)) {
  const bool written =
      fd_ >= 0 && write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  if (!written) throw std::system_error(errno, std::generic_category(), "memfd_create");
  lseek(fd_, 0, SEEK_SET);
}

InputFile::~InputFile() { close(fd_); }

}  // namespace tilesmith::fuzz
