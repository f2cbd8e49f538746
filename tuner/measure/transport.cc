#include "tuner/measure/transport.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "layouts/measure/clock.h"

namespace tilesmith {
namespace {

// For poll, which waits for as long as it is asked to and at most an hour; -1: for ever.
int WaitMs(double deadline) {
  if (deadline == Transport::kNever) return -1;
  constexpr double kLongestMs = 60 * 60 * 1000;
  return static_cast<int>(std::clamp(std::ceil((deadline - NowSeconds()) * 1e3), 0.0, kLongestMs));
}

}  // namespace

Transport::Receipt LineTransport::Receive(std::string& line, double deadline) {
  size_t searched = 0;
  for (;;) {
    if (const size_t end = pending_.find('\n', searched); end != std::string::npos) {
      line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return Receipt::kMessage;
    }
    searched = pending_.size();
    if (searched > kMaxMessageBytes) return Receipt::kEnd;
    pollfd request = {in_fd_, POLLIN, 0};
    const int ready = poll(&request, 1, WaitMs(deadline));
    if (ready < 0 && errno != EINTR) return Receipt::kEnd;
    if (ready <= 0) {
      if (NowSeconds() >= deadline) return Receipt::kTimeout;
      continue;
    }
    char bytes[1 << 16];
    const ssize_t count = read(in_fd_, bytes, sizeof(bytes));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Receipt::kEnd;
    pending_.append(bytes, count);
  }
}

bool LineTransport::Send(const std::string& line) {
  const std::string text = line + '\n';
  for (size_t done = 0; done < text.size();) {
    ssize_t count = send(out_fd_, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (count < 0 && errno == ENOTSOCK) count = write(out_fd_, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += count;
  }
  return true;
}

}  // namespace tilesmith
