// shared_rings.h: streams of bytes between rank 0 and the other ranks of one host, in memory that their processes
// share. Contract: each other rank has a ring to rank 0 and one from it, each with one writer and one reader. The
// memory has no name in a folder; the system frees it with the last process. Not here: messages (socket_ranks.cpp).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "base/descriptor.h"

namespace graphrun {

class SharedRings {
 public:
  struct Offer {  // identifies rings to other processes of the host
    std::int64_t process = 0, file = -1;
    std::array<std::uint64_t, 2> name{};
  };
  static std::shared_ptr<SharedRings> create(int ranks);                    // null: the system has no memory for them
  static std::shared_ptr<SharedRings> open(const Offer& offer, int ranks);  // null: they are not on this host
  SharedRings(Descriptor file, int ranks, const Offer& offer);
  ~SharedRings();
  const Offer& offer() const { return offer_; }

  // Writes or reads all bytes: from rank to rank, one of them 0. Waits for the other rank. Returns false if that one
  // has ended: its `socket` is readable.
  bool move(int from, int to, bool writes, std::span<std::byte> bytes, int socket);

 private:
  struct Ring;
  Descriptor file_;
  Offer offer_;
  std::size_t bytes_;
  std::atomic<int> max_checks_, vain_{0};  // fewer after vain ones: another process may need the core
  Ring* rings_ = nullptr;                  // null: no memory
};

}  // namespace graphrun
