#include "studio/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

#include "base/text.h"
#include "graphrun/error.h"
#include "studio/connection.h"

namespace graphrun::studio {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] void reject_port(int port, int error) {
  throw Error(ErrorKind::input, "studio.port", fmt::format("cannot listen on port {}: {}", port, std::strerror(error)),
              error == EADDRINUSE ? "another program has it; --port 0 takes any that is free" : "");
}

Descriptor listening(int port) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // Lets a restarted server bind despite old connections in TIME_WAIT. bind() still fails if another server listens.
  if (socket.number() < 0 || ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.number(), 64) != 0)
    reject_port(port, errno);
  return socket;
}

int port_of(const Descriptor& socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

}  // namespace

std::string event_text(std::string_view event, std::string_view json) {
  std::string text = fmt::format("event: {}\n", event);
  // Each line needs its own "data:", because a newline ends the field.
  for (const std::string_view line : lines_of(json)) text += fmt::format("data: {}\n", line);
  return text + "\n";
}

struct Server::Impl {
  Impl(int port, const Limits& how) : limits(how), socket(listening(port)), access(port_of(socket)) {
    if (wake.number() < 0) reject_port(port, errno);
  }

  Limits limits;
  Descriptor socket;
  Access access;
  Descriptor wake{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};  // signals entries in the two lists below

  std::mutex mutex;
  std::string events;  // not yet sent to the streams
  std::vector<std::pair<Ticket, Response>> answers;

  // Used only by the thread of run().
  const Handler* handler = nullptr;
  std::list<Connection> connections;
  Ticket last_ticket = 0;
  double beat = 0;

  void woken() {
    const std::uint64_t once = 1;
    if (::write(wake.number(), &once, sizeof once) < 0) return;  // counter is full: already signaled
  }

  // ---- output

  void say(Connection& to, const Response& response) {
    to.in.clear();
    to.in.shrink_to_fit();
    const bool streams = response.type == "text/event-stream" && response.status == 200;
    to.out = to_string(response, !streams);
    to.written = 0;
    to.state = streams ? State::streaming : State::writing;
    to.until = seconds_now() + limits.write_seconds;
    flush(to);
  }

  void flush(Connection& to) {
    while (to.written < to.out.size()) {
      const ssize_t n =
          ::send(to.socket.number(), to.out.data() + to.written, to.out.size() - to.written, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK) to.state = State::gone;
        return;
      }
      to.written += static_cast<std::size_t>(n);
      to.until = seconds_now() + limits.write_seconds;
    }
    to.out.clear();
    to.written = 0;
    if (to.state != State::writing) return;
    ::shutdown(to.socket.number(), SHUT_WR);
    to.state = State::leaving;
    to.until = seconds_now() + 1;
  }

  void spread(const std::string& text) {
    for (Connection& to : connections) {
      if (to.state != State::streaming) continue;
      if (to.out.empty()) to.until = seconds_now() + limits.write_seconds;
      to.out.append(text);
      flush(to);
      if (to.out.size() - to.written > limits.unread_bytes) to.state = State::gone;
    }
  }

  void take_lists() {
    std::uint64_t ignored = 0;
    while (::read(wake.number(), &ignored, sizeof ignored) > 0) continue;
    std::string text;
    std::vector<std::pair<Ticket, Response>> ready;
    {
      const std::lock_guard lock(mutex);
      text.swap(events);
      ready.swap(answers);
    }
    for (auto& [ticket, response] : ready) {
      for (Connection& to : connections) {
        if (to.ticket == ticket && to.state == State::waiting) say(to, response);
      }
    }
    if (!text.empty()) spread(text);
  }

  // ---- input

  void take_new() {
    for (;;) {
      Descriptor made(::accept4(socket.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (made.number() < 0) return;
      if (connections.size() >= limits.connections) continue;  // closes it
      Connection connection;
      connection.socket = std::move(made);
      connection.ticket = ++last_ticket;
      connection.until = seconds_now() + limits.head_seconds;
      connections.push_back(std::move(connection));
    }
  }

  void take_bytes(Connection& from) {
    char bytes[16384];
    for (int round = 0; round < 64; ++round) {  // bounded, for fairness to the other connections
      const ssize_t n = ::recv(from.socket.number(), bytes, sizeof bytes, 0);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (n <= 0) {
        from.state = State::gone;
        return;
      }
      if (from.state != State::head && from.state != State::body) continue;  // discards input after the request
      from.in.append(bytes, static_cast<std::size_t>(n));
      if (from.state == State::head) take_head(from);
      if (from.state == State::body) take_body(from);
    }
  }

  void take_head(Connection& from) {
    ParsedHead parsed = parse_head(from.in);
    if (parsed.status != 0) return say(from, rejection(parsed.status, parsed.reason));
    if (parsed.bytes == 0) return;
    from.request = std::move(parsed.request);
    from.in.erase(0, parsed.bytes);
    switch (access.judge(from.request)) {
      case Access::Verdict::stranger:
        return say(from, rejection(403, "access denied: open the address that graphrun studio printed"));
      case Access::Verdict::newcomer:
        return say(from, {303, "text/plain", "", {{"Set-Cookie", access.cookie()}, {"Location", "/"}}});
      case Access::Verdict::known:
        break;
    }
    const bool posts = from.request.method == "POST";
    if (!posts && from.request.method != "GET")
      return say(from, {405, "text/plain", "only GET and POST\n", {{"Allow", "GET, POST"}}});
    const std::string& type = from.request.content_type;
    if (posts && type != "application/json" && !type.starts_with("application/json;"))
      return say(from, rejection(415, "a POST request needs the content type application/json"));
    std::uint64_t expected = from.request.content_length;
    for (const Connection& other : connections) {
      if (other.state == State::body) expected += other.request.content_length;
    }
    if (expected > limits.body_bytes) return say(from, rejection(503, "the requests are too large"));
    from.state = State::body;
    from.until = seconds_now() + limits.body_seconds;
    if (from.request.expects_continue && from.in.size() < from.request.content_length) {
      from.out = "HTTP/1.1 100 Continue\r\n\r\n";
      flush(from);
    }
  }

  void take_body(Connection& from) {
    if (from.in.size() < from.request.content_length) return;
    if (from.in.size() > from.request.content_length)
      return say(from, rejection(400, "only one request per connection"));
    from.request.body = std::move(from.in);
    from.in = {};
    from.state = State::waiting;
    from.until = seconds_now() + limits.answer_seconds;
    const std::optional<Response> response = (*handler)(from.request, from.ticket);
    from.request.body = {};
    if (response) say(from, *response);
  }

  // ---- event loop

  void drop_late(double now) {
    for (Connection& one : connections) {
      const bool idle = one.state == State::streaming && one.out.empty();
      if (one.state == State::gone || idle || now < one.until) continue;
      if (one.state == State::head || one.state == State::body)
        say(one, rejection(408, "the request took too long"));
      else
        one.state = State::gone;
    }
    connections.remove_if([](const Connection& one) { return one.state == State::gone; });
  }

  double next_deadline(double now) const {
    double next = beat;
    for (const Connection& one : connections) {
      if (one.state != State::streaming || !one.out.empty()) next = std::min(next, one.until);
    }
    return std::max(0.0, next - now);
  }

  void run(int stop) {
    std::vector<pollfd> polled;
    beat = seconds_now() + limits.beat_seconds;
    for (;;) {
      polled = {{stop, POLLIN, 0}, {wake.number(), POLLIN, 0}, {socket.number(), POLLIN, 0}};
      for (const Connection& one : connections)
        polled.push_back({one.socket.number(), static_cast<short>(one.out.empty() ? POLLIN : POLLIN | POLLOUT), 0});
      const double wait = std::min(60.0, next_deadline(seconds_now()));
      if (::poll(polled.data(), polled.size(), static_cast<int>(std::ceil(wait * 1000))) < 0 && errno != EINTR) return;
      if (polled[0].revents != 0) return;
      if (polled[1].revents != 0) take_lists();
      std::size_t at = 3;
      for (Connection& one : connections) {
        const short seen = polled[at++].revents;
        if ((seen & POLLOUT) != 0 && one.state != State::gone) flush(one);
        if ((seen & (POLLIN | POLLERR | POLLHUP)) != 0 && one.state != State::gone) take_bytes(one);
      }
      if (polled[2].revents != 0) take_new();
      const double now = seconds_now();
      if (now >= beat) {
        spread(": still here\n\n");
        beat = now + limits.beat_seconds;
      }
      drop_late(now);
    }
  }
};

Server::Server(int port, const Limits& limits) : impl_(std::make_unique<Impl>(port, limits)) {}
Server::~Server() = default;

int Server::port() const {
  return port_of(impl_->socket);
}
const Access& Server::access() const {
  return impl_->access;
}

void Server::run(int stop, const Handler& handler) {
  impl_->handler = &handler;
  impl_->run(stop);
}

void Server::publish(std::string_view event, std::string_view json) {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->events += event_text(event, json);
  }
  impl_->woken();
}

void Server::answer(Ticket ticket, Response response) {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->answers.emplace_back(ticket, std::move(response));
  }
  impl_->woken();
}

}  // namespace graphrun::studio
