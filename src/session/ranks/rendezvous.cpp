// rendezvous.cpp: how the ranks of a job find and check each other (RankJob of communicator.h).
// Rank 0 listens and greets each connection with a nonce. A rank answers with its number, a nonce of its own and a MAC
// of all of it under the job's secret; rank 0 answers with a MAC of both nonces. So each proves the secret to the
// other, and neither sends it. Whoever sends anything else, or nothing for five seconds, is disconnected; others may
// join meanwhile. Without a secret, rank 0 listens on the loopback interface only.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <string>
#include <type_traits>
#include <vector>

#include "base/descriptor.h"
#include "graphrun/communicator.h"
#include "graphrun/error.h"
#include "session/ranks/sha256.h"
#include "session/ranks/socket_ranks.h"

namespace graphrun {
namespace rendezvous {

struct Greeting {
  char magic[8] = {'G', 'R', 'R', 'A', 'N', 'K', 'S', '2'};
  std::array<char, 16> nonce;
};
struct Reply {
  std::uint32_t rank, ranks;
  std::array<char, 16> nonce;
  Digest proof;
};
static_assert(std::is_trivially_copyable_v<Greeting> && std::is_trivially_copyable_v<Reply> && sizeof(Reply) == 56);

struct Guest {
  Descriptor socket;
  std::chrono::steady_clock::time_point since;
  Greeting greeting;
  std::array<char, sizeof(Reply)> reply;
  std::size_t got = 0;
};

}  // namespace rendezvous

namespace {

using rendezvous::Greeting, rendezvous::Reply, rendezvous::Guest;
using Clock = std::chrono::steady_clock;
constexpr std::size_t kMaxGuests = 64;  // connections that have not proved the secret yet
constexpr double kGuestSeconds = 5, kNoticeSeconds = 5;
constexpr int kMaxRanks = 256;

[[noreturn]] void fail(std::string code, const std::string& message, std::string hint = {}) {
  throw Error(ErrorKind::device, std::move(code), message, std::move(hint));
}

std::array<char, 16> random_nonce() {
  std::array<char, 16> nonce;
  if (::getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size()))
    fail("ranks.random", "the system gives no random bytes");
  return nonce;
}

Digest proof_of(const std::string& secret, std::string_view role, const Greeting& greeting, const Reply& reply) {
  std::string text(role);
  text.append(greeting.nonce.data(), greeting.nonce.size()).append(reply.nonce.data(), reply.nonce.size());
  return hmac_sha256(secret, text + fmt::format("{}/{}", reply.rank, reply.ranks));
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Small messages leave at once, and a host that is gone is noticed.
void prepare(int socket) {
  const auto set = [&](int level, int name, int value) {
    (void)::setsockopt(socket, level, name, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(IPPROTO_TCP, TCP_KEEPCNT, 5);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 10000);
}

bool send_all(int socket, const void* bytes, std::size_t size) {
  return ::send(socket, bytes, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size);  // it fits an empty buffer
}

template <class T>
bool receive_all(int socket, T& to, double seconds) {
  timeval limit{static_cast<time_t>(seconds), 0};
  (void)::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const bool whole = ::recv(socket, &to, sizeof to, MSG_WAITALL) == static_cast<ssize_t>(sizeof to);
  limit = {};
  (void)::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return whole;
}

}  // namespace

struct RankJob::Impl {
  RankPlace place;
  Descriptor listener;
  std::vector<Descriptor> peers;
  std::deque<Guest> guests;

  explicit Impl(RankPlace at) : place(std::move(at)) {
    if (place.ranks < 1 || place.ranks > kMaxRanks || place.rank < 0 || place.rank >= place.ranks)
      throw Error(ErrorKind::input, "ranks.place", fmt::format("rank {} of {} ranks", place.rank, place.ranks),
                  fmt::format("a job has up to {} ranks, counted from 0", kMaxRanks));
    peers.resize(static_cast<std::size_t>(place.ranks - 1));
    if (place.rank == 0) listen();
  }

  void listen() {
    listener = Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    (void)::setsockopt(listener.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(place.port));
    address.sin_addr.s_addr = htonl(place.secret.empty() || place.host == "127.0.0.1" ? INADDR_LOOPBACK : INADDR_ANY);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (listener.number() < 0 || ::bind(listener.number(), any, size) != 0 || ::listen(listener.number(), 64) != 0 ||
        ::getsockname(listener.number(), any, &size) != 0)
      fail("ranks.port", fmt::format("rank 0 cannot listen on port {}: {}", place.port, std::strerror(errno)),
           "GRAPHRUN_RENDEZVOUS=HOST:PORT chooses another port, on all ranks");
    place.port = ntohs(address.sin_port);
  }

  std::string missing() const {
    std::vector<std::size_t> list;
    for (std::size_t peer = 0; peer < peers.size(); ++peer)
      if (peers[peer].number() < 0) list.push_back(peer + 1);
    return fmt::format("rank{} {}", list.size() == 1 ? "" : "s", fmt::join(list, ", "));
  }
  bool is_complete() const {
    return std::ranges::all_of(peers, [](const Descriptor& peer) { return peer.number() >= 0; });
  }

  void accept() {
    Descriptor socket(::accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket.number() < 0) return;
    Guest guest{std::move(socket), Clock::now(), {}, {}};
    guest.greeting.nonce = random_nonce();
    if (!send_all(guest.socket.number(), &guest.greeting, sizeof guest.greeting)) return;
    if (guests.size() == kMaxGuests) guests.pop_front();
    guests.push_back(std::move(guest));
  }

  // Returns whether the guest may stay: it has not sent all of its reply yet.
  bool hear(Guest& guest) {
    const ssize_t got =
        ::recv(guest.socket.number(), guest.reply.data() + guest.got, guest.reply.size() - guest.got, MSG_DONTWAIT);
    if (got <= 0) return got < 0 && (errno == EAGAIN || errno == EINTR);
    guest.got += static_cast<std::size_t>(got);
    if (guest.got < guest.reply.size()) return true;
    Reply reply;
    std::memcpy(&reply, guest.reply.data(), sizeof reply);
    if (!is_same(reply.proof, proof_of(place.secret, "rank", guest.greeting, reply))) return false;
    if (reply.ranks != static_cast<std::uint32_t>(place.ranks) || reply.rank < 1 || reply.rank >= reply.ranks)
      return false;
    Descriptor& peer = peers[reply.rank - 1];
    if (peer.number() >= 0) return false;
    const Digest proof = proof_of(place.secret, "root", guest.greeting, reply);
    if (!send_all(guest.socket.number(), proof.data(), proof.size())) return false;
    prepare(guest.socket.number());
    peer = std::move(guest.socket);
    return false;
  }

  void wait(int milliseconds) {
    std::vector<pollfd> polled = {{listener.number(), POLLIN, 0}};
    for (const Guest& guest : guests) polled.push_back({guest.socket.number(), POLLIN, 0});
    if (::poll(polled.data(), polled.size(), milliseconds) < 0) return;
    std::deque<Guest> staying;
    for (std::size_t i = 0; i < guests.size(); ++i) {
      const bool stays = polled[i + 1].revents == 0 || hear(guests[i]);
      if (stays && seconds_since(guests[i].since) < kGuestSeconds) staying.push_back(std::move(guests[i]));
    }
    guests = std::move(staying);
    if (polled[0].revents != 0) accept();
  }

  // Returns no socket if rank 0 does not listen, or has no address, yet. `missing` says which.
  Descriptor connect(std::string& missing) const {
    addrinfo hints{}, *found = nullptr;
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    if (const int error = ::getaddrinfo(place.host.c_str(), std::to_string(place.port).c_str(), &hints, &found);
        error != 0) {
      missing = fmt::format("rank 0 on '{}' ({})", place.host, ::gai_strerror(error));
      return {};
    }
    missing = "rank 0";
    Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const bool connected = ::connect(socket.number(), found->ai_addr, found->ai_addrlen) == 0;
    ::freeaddrinfo(found);
    return connected ? std::move(socket) : Descriptor();
  }

  // Connects all ranks: fills `peers`, which on other ranks than 0 has the socket of rank 0.
  void meet(double seconds, const std::function<void(std::string_view)>& waits) {
    const Clock::time_point start = Clock::now();
    bool noticed = false;
    const auto pass = [&](const std::string& missing) {
      const bool late = seconds_since(start) > kNoticeSeconds;
      if (waits) waits(late && !noticed ? "waiting for " + missing : "");
      noticed = late;
      if (seconds_since(start) > seconds)
        fail("ranks.missing", fmt::format("{} did not join within {:g} s", missing, seconds));
    };
    if (place.rank == 0) {
      while (!is_complete()) {
        wait(50);
        if (!is_complete()) pass(missing());
      }
      guests.clear();
      listener = Descriptor();
      return;
    }
    peers.resize(1);
    std::string missing_root;
    while ((peers[0] = connect(missing_root)).number() < 0) {
      pass(missing_root);
      ::poll(nullptr, 0, 50);
    }
    introduce(peers[0].number(), seconds);
  }

  void introduce(int socket, double seconds) const {
    Greeting greeting;
    Reply reply{static_cast<std::uint32_t>(place.rank), static_cast<std::uint32_t>(place.ranks), random_nonce(), {}};
    Digest proof;
    if (!receive_all(socket, greeting, seconds) ||
        std::memcmp(greeting.magic, Greeting().magic, sizeof greeting.magic) != 0)
      fail("ranks.other", fmt::format("{}:{} is not rank 0 of a graphrun job", place.host, place.port));
    reply.proof = proof_of(place.secret, "rank", greeting, reply);
    if (!send_all(socket, &reply, sizeof reply) || !receive_all(socket, proof, seconds) ||
        !is_same(proof, proof_of(place.secret, "root", greeting, reply)))
      fail(
          "ranks.rejected",
          fmt::format("rank 0 at {}:{} does not accept rank {} of {}", place.host, place.port, place.rank, place.ranks),
          "all ranks need the same GRAPHRUN_JOB_SECRET and number of ranks, and no rank may be started twice");
    prepare(socket);
  }
};

RankJob::RankJob(RankPlace place) : impl_(std::make_unique<Impl>(std::move(place))) {}
RankJob::~RankJob() = default;

int RankJob::port() const {
  return impl_->place.port;
}

std::shared_ptr<Communicator> RankJob::join(double seconds, const std::function<void(std::string_view)>& waits) {
  impl_->meet(seconds, waits);
  auto ranks = socket_ranks(impl_->place.rank, impl_->place.ranks, std::move(impl_->peers));
  share_memory(*ranks);
  return ranks;
}

std::vector<std::shared_ptr<Communicator>> RankJob::join_in_pairs(double seconds,
                                                                  const std::function<void(std::string_view)>& waits) {
  impl_->meet(seconds, waits);
  std::vector<std::shared_ptr<Communicator>> pairs;
  for (Descriptor& peer : impl_->peers) {
    std::vector<Descriptor> one;
    one.push_back(std::move(peer));
    pairs.push_back(socket_ranks(impl_->place.rank, 2, std::move(one), static_cast<int>(pairs.size()) + 1));
  }
  return pairs;
}

}  // namespace graphrun
