// A connection as a slow and lossy network makes it, where the kernel cannot: what comes in at a port goes
// out to another one later. TCP shows a lost packet as a wait for its repetition, and so does this.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <deque>
#include <list>
#include <string>
#include <vector>

#include "layouts/base/error.h"
#include "layouts/base/stop_flag.h"
#include "layouts/measure/clock.h"
#include "tests/support/random.h"

namespace tilesmith {

struct SlowWire {
  int from_port = 0, to_port = 0;  // of 127.0.0.1 and, to listen, of all addresses
  double delay_seconds = 0;        // each way
  double lost = 0;                 // share of what is read at once
};

namespace slow_wire {

constexpr double kRepetitionSeconds = 0.2;

// Bytes one way, in their order.
struct Way {
  int from = -1, to = -1;
  std::deque<std::pair<double, std::string>> late = {};  // when they are due
};

inline int Socket(int port, bool listens) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(listens ? INADDR_ANY : INADDR_LOOPBACK);
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  const int failed =
      listens ? bind(fd, raw, sizeof(address)) + listen(fd, 64) : connect(fd, raw, sizeof(address));
  if (failed == 0) return fd;
  close(fd);
  return -1;
}

// False when the way is over.
inline bool Forward(Way& way, bool readable, const SlowWire& wire, TestRandom& random) {
  if (readable) {
    char bytes[1 << 14];
    const ssize_t count = read(way.from, bytes, sizeof(bytes));
    if (count <= 0) return false;
    double due = NowSeconds() + wire.delay_seconds;
    if (static_cast<double>(random.Integer(0, 999999)) < wire.lost * 1e6) due += kRepetitionSeconds;
    if (!way.late.empty()) due = std::max(due, way.late.back().first);
    way.late.emplace_back(due, std::string(bytes, static_cast<size_t>(count)));
  }
  while (!way.late.empty() && way.late.front().first <= NowSeconds()) {
    std::string_view rest = way.late.front().second;
    while (!rest.empty()) {
      const ssize_t sent = send(way.to, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      rest.remove_prefix(static_cast<size_t>(sent));
    }
    way.late.pop_front();
  }
  return true;
}

}  // namespace slow_wire

// Until stopped.
inline void RunSlowWire(const SlowWire& wire, const StopFlag& stop) {
  using slow_wire::Way;
  struct Pair {
    Way there, back;
  };
  const int listening = slow_wire::Socket(wire.from_port, true);
  if (listening < 0)
    throw Error(ErrorCode::kEnvironment, "cannot listen at port " + std::to_string(wire.from_port));
  TestRandom random(1);
  std::list<Pair> pairs;
  while (!stop) {
    std::vector<pollfd> ready = {{listening, POLLIN, 0}};
    for (const Pair& pair : pairs) {
      ready.push_back({pair.there.from, POLLIN, 0});
      ready.push_back({pair.back.from, POLLIN, 0});
    }
    poll(ready.data(), ready.size(), 1);
    size_t at = 1;
    for (auto pair = pairs.begin(); pair != pairs.end(); at += 2) {
      const bool there = slow_wire::Forward(pair->there, ready[at].revents != 0, wire, random);
      const bool back = slow_wire::Forward(pair->back, ready[at + 1].revents != 0, wire, random);
      if (there && back) {
        ++pair;
        continue;
      }
      close(pair->there.from);
      close(pair->there.to);
      pair = pairs.erase(pair);
    }
    if (ready[0].revents == 0) continue;
    const int in = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
    const int out = slow_wire::Socket(wire.to_port, false);
    if (in < 0 || out < 0) {
      if (in >= 0) close(in);
      if (out >= 0) close(out);
      continue;
    }
    const int yes = 1;
    for (const int fd : {in, out}) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    pairs.push_back({{in, out}, {out, in}});
  }
  close(listening);
}

}  // namespace tilesmith
