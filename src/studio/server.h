// server.h: HTTP/1.1 and server-sent events for one user on one machine: one thread, one loop over poll().
// Contract: listens on 127.0.0.1 only. Requests that Access does not know are answered 403 before they are routed and
// before their body is read; POST has a body of application/json. A connection has one request. There are limits on
// connections, bytes and time: who is slower than them is dropped, and who does not read events fast enough, too.
// run() belongs to one thread; publish() and answer() may be called by any. Errors: Error of kind input for a
// port that cannot be had.
// Leaves to others: what is answered.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "studio/access.h"
#include "studio/http.h"

namespace graphrun::studio {

// A connection that waits for its answer.
using Ticket = std::uint64_t;

struct Limits {
  std::size_t connections = 64;
  double head_seconds = 5, body_seconds = 30, write_seconds = 10, answer_seconds = 600;
  std::size_t unread_bytes = 4 << 20;  // of events
  std::size_t body_bytes = 48 << 20;   // of all connections
  double beat_seconds = 15;            // between signs of life of a stream
};

class Server {
 public:
  // Answers at once, or later by answer(): then it returns nothing. It throws nothing.
  using Handler = std::function<std::optional<Response>(const Request& request, Ticket ticket)>;

  Server(int port, const Limits& limits = {});  // 0: any that is free
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  const Access& access() const;

  // Until `stop` can be read. A Response of type text/event-stream begins a stream with its body.
  void run(int stop, const Handler& handler);

  void publish(std::string_view event, std::string_view json);
  void answer(Ticket ticket, Response response);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

std::string event_text(std::string_view event, std::string_view json);

}  // namespace graphrun::studio
