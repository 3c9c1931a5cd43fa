#include "session/ranks/shared_rings.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace graphrun {

// The counters of bytes have one writer each, and overflow. Accesses to atomics have one order, for all processes.
struct SharedRings::Ring {
  static constexpr std::uint32_t kBytes = 1 << 20;
  alignas(64) std::atomic<std::uint32_t> written;
  alignas(64) std::atomic<std::uint32_t> read;
  alignas(64) std::atomic<std::uint32_t> sleeps;  // one of the two ranks, until the other one's counter changes
  alignas(64) std::byte bytes[kBytes];
};

namespace {

constexpr int kMinChecks = 32, kMaxChecks = 2048;  // before a rank sleeps: 1 to 50 µs
constexpr std::size_t kMaxPart = 1 << 16;          // one rank writes while the other one reads
constexpr timespec kMaxSleep{0, 100'000'000};      // a rank that is gone wakes nobody

std::string file_name(const SharedRings::Offer& offer) {
  return fmt::format("graphrun-{:016x}{:016x}", offer.name[0], offer.name[1]);
}

void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* timeout = nullptr) {
  ::syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

}  // namespace

SharedRings::SharedRings(Descriptor file, int ranks, const Offer& offer)
    : file_(std::move(file)),
      offer_(offer),
      bytes_(2 * static_cast<std::size_t>(ranks - 1) * sizeof(Ring)),
      max_checks_(kMaxChecks) {
  // All memory is there from the start: without it later, a write would be a fatal signal.
  if (::posix_fallocate(file_.number(), 0, static_cast<off_t>(bytes_)) != 0) return;
  void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.number(), 0);
  if (memory != MAP_FAILED) rings_ = static_cast<Ring*>(memory);
}

SharedRings::~SharedRings() {
  if (rings_ != nullptr) ::munmap(rings_, bytes_);
}

std::shared_ptr<SharedRings> SharedRings::create(int ranks) {
  Offer offer{::getpid(), -1, {}};
  if (::getrandom(&offer.name, sizeof offer.name, 0) != sizeof offer.name) return nullptr;
  Descriptor file(::memfd_create(file_name(offer).c_str(), MFD_CLOEXEC));
  offer.file = file.number();
  auto rings = std::make_shared<SharedRings>(std::move(file), ranks, offer);
  return rings->rings_ == nullptr ? nullptr : rings;
}

// On another host, or in another container, the same path is another file, and may be a device.
std::shared_ptr<SharedRings> SharedRings::open(const Offer& offer, int ranks) {
  const std::string path = fmt::format("/proc/{}/fd/{}", offer.process, offer.file);
  const std::string expected = "/memfd:" + file_name(offer);
  std::string target(expected.size(), '\0');
  if (::readlink(path.c_str(), target.data(), target.size()) < 0 || target != expected) return nullptr;
  auto rings = std::make_shared<SharedRings>(Descriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC)), ranks, offer);
  return rings->rings_ == nullptr ? nullptr : rings;
}

bool SharedRings::move(int from, int to, bool writes, std::span<std::byte> bytes, int socket) {
  Ring& ring = rings_[from == 0 ? 2 * to - 1 : 2 * from - 2];
  std::atomic<std::uint32_t>&mine = writes ? ring.written : ring.read, &other = writes ? ring.read : ring.written;
  for (int checks = 0; !bytes.empty(); ++checks) {
    const std::uint32_t at = mine, seen = other, used = std::min(writes ? at - seen : seen - at, Ring::kBytes);
    const std::size_t ready = std::min(writes ? Ring::kBytes - used : used, Ring::kBytes - at % Ring::kBytes);
    if (ready > 0) {
      const std::span<std::byte> part = bytes.first(std::min({bytes.size(), ready, kMaxPart}));
      std::byte* const place = ring.bytes + at % Ring::kBytes;
      std::memcpy(writes ? place : part.data(), writes ? part.data() : place, part.size());
      mine = at + static_cast<std::uint32_t>(part.size());
      if (ring.sleeps != 0 && ring.sleeps.exchange(0) != 0) futex(mine, FUTEX_WAKE, 1);
      bytes = bytes.subspan(part.size());
      if (checks > 0 && checks <= max_checks_) max_checks_ = std::min(2 * max_checks_, kMaxChecks);
      checks = -1;
    } else if (checks < max_checks_) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    } else {
      if (checks == max_checks_) max_checks_ = ++vain_ % 32 == 0 ? kMaxChecks : std::max(max_checks_ / 8, kMinChecks);
      ring.sleeps = 1;
      pollfd polled{socket, POLLIN, 0};
      const bool has_ended = ::poll(&polled, 1, 0) > 0;
      if (other != seen) continue;
      if (has_ended) return false;
      futex(other, FUTEX_WAIT, seen, &kMaxSleep);
    }
  }
  return true;
}

}  // namespace graphrun
