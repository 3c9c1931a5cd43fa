#include "session/ranks/socket_ranks.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "graphrun/error.h"

namespace graphrun {

Communicator::~Communicator() = default;
void Communicator::look() {}
void Communicator::leave(std::string_view) noexcept {}
std::string Communicator::transport() const {
  return {};
}

namespace {

constexpr std::uint32_t kData = 0x47524e31, kEnd = 0x47524e32;
constexpr std::size_t kMaxReason = 512;

struct Header {
  std::uint32_t kind = kData;
  std::uint32_t number = 0;  // counts the messages of its connection
  std::uint64_t bytes = 0;
};

class SocketRanks final : public Communicator {
 public:
  SocketRanks(int rank, int ranks, std::vector<Descriptor> peers, int first, std::shared_ptr<SharedRings> rings)
      : rank_(rank),
        ranks_(ranks),
        first_(first),
        peers_(std::move(peers)),
        rings_(std::move(rings)),
        arrivals_(peers_.size()),
        polled_(peers_.size()) {}

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  std::string transport() const override { return rings_ == nullptr ? "TCP" : "shared memory"; }
  void use(std::shared_ptr<SharedRings> rings) { rings_ = std::move(rings); }

  void gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    ++number_;
    if (rank_ != 0) return send(0, {kData, number_, mine.size()}, mine);
    if (all.size() != mine.size() * static_cast<std::size_t>(ranks_))
      throw Error(ErrorKind::run, "ranks.size", "a gather has capacity for another number of ranks");
    std::ranges::copy(mine, all.begin());
    receive(all.subspan(mine.size()), mine.size());
  }

  void broadcast(std::span<std::byte> bytes) override {
    ++number_;
    if (rank_ != 0) return receive(bytes, bytes.size());
    for (std::size_t peer = 0; peer < peers_.size(); ++peer) send(peer, {kData, number_, bytes.size()}, bytes);
  }

  void look() override {
    for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
      pollfd polled{peers_[peer].number(), POLLIN | POLLRDHUP, 0};
      if (::poll(&polled, 1, 0) <= 0) continue;
      Header header{};
      const bool whole = ::recv(polled.fd, &header, sizeof header, MSG_PEEK | MSG_DONTWAIT) == sizeof header;
      if (!whole && (polled.revents & ~POLLIN) == 0) continue;
      if (whole && header.kind == kData) continue;  // for the next call
      arrivals_[peer].got = 0;
      while (whole && arrivals_[peer].got < sizeof header) advance(peer, {});  // says why it has left
      lose(peer);
    }
  }

  void leave(std::string_view why) noexcept override {
    why = why.substr(0, kMaxReason);
    for (std::size_t peer = 0; peer < peers_.size(); ++peer)
      (void)try_send(peer, {kEnd, number_, why.size()}, std::as_bytes(std::span(why)));
  }

 private:
  struct Arrival {
    Header header;
    std::size_t got = 0;  // bytes of the header and then of the message
  };

  int rank_of(std::size_t peer) const { return rank_ == 0 ? static_cast<int>(peer) + first_ : 0; }

  // Ends the training on the ranks that are left.
  [[noreturn]] void lose(std::size_t peer, std::string reason) {
    if (rank_ == 0) {
      peers_[peer] = Descriptor();
      leave(reason);
    }
    throw Error(ErrorKind::device, "ranks.lost", std::move(reason), "--resume continues from the last checkpoint");
  }
  [[noreturn]] void lose(std::size_t peer) { lose(peer, fmt::format("rank {} is gone", rank_of(peer))); }

  bool try_send(std::size_t peer, const Header& header, std::span<const std::byte> bytes) {
    for (std::span<const std::byte> part : {std::as_bytes(std::span(&header, 1)), bytes}) {
      while (!part.empty()) {
        const ssize_t sent = ::send(peers_[peer].number(), part.data(), part.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        part = part.subspan(static_cast<std::size_t>(sent));
      }
    }
    return true;
  }
  void send(std::size_t peer, const Header& header, std::span<const std::byte> bytes) {
    if (rings_ == nullptr && try_send(peer, header, bytes)) return;
    if (rings_ == nullptr) lose_ended(peer);
    move(peer, true, std::as_bytes(std::span(&header, 1)));
    move(peer, true, bytes);
  }

  // Through the ring to or from a peer. Its socket is readable when it has ended.
  void move(std::size_t peer, bool writes, std::span<const std::byte> bytes) {
    const int from = writes ? rank_ : rank_of(peer), to = writes ? rank_of(peer) : rank_;
    const std::span<std::byte> moved(const_cast<std::byte*>(bytes.data()), bytes.size());
    if (!rings_->move(from, to, writes, moved, peers_[peer].number())) lose_ended(peer);
  }
  // The peer may have said why it ended.
  [[noreturn]] void lose_ended(std::size_t peer) {
    arrivals_[peer].got = 0;
    while ((rank_ != 0 || rings_ != nullptr) && arrivals_[peer].got < sizeof(Header)) advance(peer, {});
    lose(peer);
  }

  // Reads what has arrived from a peer. Returns whether the message is complete.
  bool advance(std::size_t peer, std::span<std::byte> to) {
    Arrival& arrival = arrivals_[peer];
    const bool in_header = arrival.got < sizeof(Header);
    const std::size_t done = in_header ? arrival.got : arrival.got - sizeof(Header);
    const std::span<std::byte> part =
        (in_header ? std::as_writable_bytes(std::span(&arrival.header, 1)) : to).subspan(done);
    if (!part.empty()) {
      const ssize_t got = ::recv(peers_[peer].number(), part.data(), part.size(), 0);
      if (got < 0 && errno == EINTR) return false;
      if (got <= 0) lose(peer);
      arrival.got += static_cast<std::size_t>(got);
    }
    if (in_header && arrival.got == sizeof(Header)) check(peer, to.size());
    return arrival.got == sizeof(Header) + to.size();
  }

  void check(std::size_t peer, std::size_t bytes) {
    const Header& header = arrivals_[peer].header;
    if (header.kind == kEnd && header.bytes <= kMaxReason && arrivals_[peer].got > 0) {
      std::string reason(header.bytes, '\0');
      const ssize_t got = ::recv(peers_[peer].number(), reason.data(), reason.size(), MSG_WAITALL);
      reason.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
      lose(peer, rank_ == 0 ? fmt::format("rank {}: {}", rank_of(peer), reason) : reason);
    }
    if (header.kind != kData) lose(peer, fmt::format("rank {} sent something that is not a message", rank_of(peer)));
    if (header.number != number_ || header.bytes != bytes)
      lose(peer, fmt::format("rank {} is at message {} of {} bytes, rank {} at {} of {}", rank_of(peer), header.number,
                             header.bytes, rank_, number_, bytes));
  }

  // Gets one message of `size` bytes from each peer; they arrive in any order.
  void receive(std::span<std::byte> all, std::size_t size) {
    for (std::size_t peer = 0; rings_ != nullptr && peer < peers_.size(); ++peer) {
      arrivals_[peer].got = 0;
      move(peer, false, std::as_writable_bytes(std::span(&arrivals_[peer].header, 1)));
      check(peer, size);
      move(peer, false, all.subspan(peer * size, size));
    }
    std::size_t left = rings_ == nullptr ? peers_.size() : 0;
    for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
      arrivals_[peer].got = 0;
      polled_[peer] = {peers_[peer].number(), POLLIN, 0};
    }
    while (left > 0) {
      if (::poll(polled_.data(), polled_.size(), -1) < 0) continue;  // a signal
      for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
        if (polled_[peer].fd < 0 || polled_[peer].revents == 0) continue;
        if (!advance(peer, all.subspan(peer * size, size))) continue;
        polled_[peer].fd = -1;
        --left;
      }
    }
  }

  int rank_, ranks_, first_;
  std::vector<Descriptor> peers_;
  std::shared_ptr<SharedRings> rings_;  // null: messages go over the sockets
  std::vector<Arrival> arrivals_;
  std::vector<pollfd> polled_;
  std::uint32_t number_ = 0;
};

}  // namespace

std::shared_ptr<Communicator> socket_ranks(int rank, int ranks, std::vector<Descriptor> peers, int first,
                                           std::shared_ptr<SharedRings> rings) {
  return std::make_shared<SocketRanks>(rank, ranks, std::move(peers), first, std::move(rings));
}

void share_memory(Communicator& sockets) {
  const std::string_view chosen = std::getenv("GRAPHRUN_TRANSPORT") ? std::getenv("GRAPHRUN_TRANSPORT") : "";
  if (!chosen.empty() && chosen != "tcp")
    throw Error(ErrorKind::input, "ranks.variable", fmt::format("GRAPHRUN_TRANSPORT: expected tcp, got '{}'", chosen));
  const bool is_root = sockets.rank() == 0;
  std::shared_ptr<SharedRings> rings = is_root && chosen.empty() ? SharedRings::create(sockets.ranks()) : nullptr;
  SharedRings::Offer offer = rings == nullptr ? SharedRings::Offer() : rings->offer();
  sockets.broadcast(std::as_writable_bytes(std::span(&offer, 1)));
  if (!is_root && chosen.empty()) rings = SharedRings::open(offer, sockets.ranks());
  char opened = rings != nullptr ? 1 : 0;
  std::string all(is_root ? static_cast<std::size_t>(sockets.ranks()) : 0, '\0');
  sockets.gather(std::as_bytes(std::span(&opened, 1)), std::as_writable_bytes(std::span(all)));
  if (is_root) opened = std::ranges::min(all);
  sockets.broadcast(std::as_writable_bytes(std::span(&opened, 1)));
  if (opened != 0) static_cast<SocketRanks&>(sockets).use(std::move(rings));
}

std::vector<std::shared_ptr<Communicator>> thread_ranks(int ranks, bool share_memory) {
  const std::shared_ptr<SharedRings> rings = share_memory ? SharedRings::create(ranks) : nullptr;
  std::vector<Descriptor> of_root;
  std::vector<std::shared_ptr<Communicator>> all(static_cast<std::size_t>(ranks));
  for (int rank = 1; rank < ranks; ++rank) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
      throw Error(ErrorKind::device, "ranks.start",
                  fmt::format("no socket for rank {}: {}", rank, std::strerror(errno)));
    of_root.emplace_back(pair[0]);
    std::vector<Descriptor> own;
    own.emplace_back(pair[1]);
    all[static_cast<std::size_t>(rank)] = socket_ranks(rank, ranks, std::move(own), 1, rings);
  }
  all[0] = socket_ranks(0, ranks, std::move(of_root), 1, rings);
  return all;
}

}  // namespace graphrun
