// server.h: HTTP/1.1 and server-sent events for one user on one machine: one thread, one loop over poll().
// Contract: listens on 127.0.0.1 only. Requests that Access does not know get 403, before routing and before their body
// is read. The body of a POST is application/json. A connection serves one request. Connections, bytes and time are
// limited: the server drops slow clients, including those that read events too slowly. run() belongs to one thread;
// publish() and answer() may be called from any thread. Throws Error (kind input) if the port is not available.
// Not handled here: content of the answers.
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

// Identifies a connection that waits for its answer.
using Ticket = std::uint64_t;

struct Limits {
  std::size_t connections = 64;
  double head_seconds = 5, body_seconds = 30, write_seconds = 10, answer_seconds = 600;
  std::size_t unread_bytes = 4 << 20;  // events not yet sent, per stream
  std::size_t body_bytes = 48 << 20;   // total of all connections
  double beat_seconds = 15;            // interval between keep-alive messages of a stream
};

class Server {
 public:
  // Returns the response, or nothing if answer() follows later. Must not throw.
  using Handler = std::function<std::optional<Response>(const Request& request, Ticket ticket)>;

  Server(int port, const Limits& limits = {});  // port 0: any free port
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  const Access& access() const;

  // Runs until `stop` is readable. A Response of type text/event-stream starts a stream with its body.
  void run(int stop, const Handler& handler);

  void publish(std::string_view event, std::string_view json);
  void answer(Ticket ticket, Response response);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

std::string event_text(std::string_view event, std::string_view json);

}  // namespace graphrun::studio
