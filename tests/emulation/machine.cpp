#include "emulation/machine.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "emulation/fiber.h"

namespace graphrun::emulation {
namespace {

struct Thread;

// Barrier state of a warp, a block or a cluster: threads that wait for all others.
struct Meeting {
  unsigned size = 0;
  Site site{};
  std::vector<Thread*> waiting;
  const void* given[32] = {};  // indexed by lane, from the last gather
};

struct Block {
  unsigned index = 0, living = 0;
  std::unique_ptr<std::byte, void (*)(void*)> shared{nullptr, std::free};
  Meeting meeting;
  Meeting* cluster = nullptr;
  unsigned stores = 0, packets = 0, tests = 0;  // calls so far, for planted faults
};

struct Thread {
  Block* block = nullptr;
  unsigned index = 0;
  bool slow = false;
  std::unique_ptr<Fiber> fiber;
  Meeting* warp = nullptr;
  unsigned barriers = 0, cluster_barriers = 0;
  // Reason for waiting.
  const char* what = nullptr;
  Site site{};
  std::vector<const void*> looked;
  std::uint64_t look = 0;  // identifies this wait among later ones
  float offered = 0.0f, got = 0.0f;
  const void* given = nullptr;
  unsigned from_lane = 0;
  // Pending copies into shared memory.
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes;
  };
  std::vector<Copy> copies;
};

// A store that has not arrived yet.
struct Store {
  std::byte* to;
  std::byte bytes[16];
  unsigned long long* mbarrier;  // null: a message
  Block* block;
  std::uint64_t number;
};

// Layout of an mbarrier's 64 bits.
struct Phase {
  std::int32_t missing;  // bytes
  std::uint8_t arrived, parity;
  std::uint16_t mark;
};
constexpr std::uint16_t kMark = 0xba44;
static_assert(sizeof(Phase) == 8);

class Machine {
 public:
  Machine(const Launch& launch, const std::function<void(void*)>& kernel) : shape_(launch), random_(launch.seed) {
    blocks_.resize(shape_.blocks);
    clusters_.resize(shape_.blocks / shape_.cluster);
    warps_.resize(shape_.blocks * (shape_.threads / 32));
    threads_.resize(shape_.blocks * shape_.threads);
    choose_slow();
    for (unsigned b = 0; b < shape_.blocks; ++b) {
      Block& block = blocks_[b];
      block.index = b;
      block.living = shape_.threads;
      block.shared.reset(static_cast<std::byte*>(make_shared_memory()));
      block.meeting.size = shape_.threads;
      block.cluster = &clusters_[b / shape_.cluster];
      block.cluster->size = shape_.threads * shape_.cluster;
      for (unsigned t = 0; t < shape_.threads; ++t) {
        Thread& thread = threads_[b * shape_.threads + t];
        thread.block = &block;
        thread.index = t;
        thread.warp = &warps_[(b * shape_.threads + t) / 32];
        thread.warp->size = 32;
        thread.fiber = std::make_unique<Fiber>([this, &kernel, &thread] { run(kernel, thread); });
        make_ready(&thread);
      }
    }
  }

  void run_all() {
    for (std::size_t living = threads_.size(); living > 0;) {
      if (!stores_.empty() && stores_come()) {
        deliver();
        continue;
      }
      if (!next_thread()) {
        all_wait();
        continue;
      }
      now_thread->fiber->resume();
      if (error_) std::rethrow_exception(error_);
      if (now_thread->fiber->returned()) {
        --living;
        --now_thread->block->living;
      }
    }
    while (!stores_.empty()) deliver();
  }

  // The current thread.
  static Thread* now_thread;

  void meet(Meeting& meeting, const char* what, Site site) {
    if (meeting.waiting.empty()) {
      meeting.site = site;
    } else if (meeting.site.line != site.line || std::strcmp(meeting.site.file, site.file) != 0) {
      fail(place(site) + ": a thread is here at a " + what + ", others at the one of " + place(meeting.site));
    }
    meeting.waiting.push_back(now_thread);
    if (meeting.waiting.size() == meeting.size) {
      float lanes[32] = {};
      for (const Thread* thread : meeting.waiting) {
        lanes[thread->index % 32] = thread->offered;
        meeting.given[thread->index % 32] = thread->given;
      }
      for (Thread* thread : meeting.waiting) {
        thread->got = lanes[thread->from_lane % 32];
        make_ready(thread);
      }
      meeting.waiting.clear();
    }
    wait(what, site);
  }

  void look_again(Site site) {
    now_thread->look = ++looks_;
    for (const void* word : now_thread->looked) watchers_[word].push_back({now_thread, looks_});
    now_thread->looked.clear();
    looking_[looks_] = now_thread;
    wait("look", site);
  }

  void sleep(Site site) {
    asleep_.push_back(now_thread);
    wait("sleep", site);
  }

  void wrote(const void* word) {
    const auto found = watchers_.find(word);
    if (found == watchers_.end()) return;
    const auto watchers = std::move(found->second);
    watchers_.erase(found);
    for (const auto& [thread, look] : watchers) {
      if (looking_.erase(look) != 0) make_ready(thread);
    }
  }

  void store(void* to, const void* bytes, unsigned long long* mbarrier, Block* block) {
    Store store{static_cast<std::byte*>(to), {}, mbarrier, block, ++numbers_};
    std::memcpy(store.bytes, bytes, sizeof store.bytes);
    stores_.push_back(store);
  }

  // Sets the bytes an mbarrier expects, which is the single arrival of its phase, or accounts for bytes that arrive.
  void expect(unsigned long long* mbarrier, std::int32_t bytes) {
    Phase phase = phase_of(mbarrier);
    if (phase.arrived != 0) fail("an mbarrier is told what to expect twice in a phase");
    phase.arrived = 1;
    count(mbarrier, phase, bytes);
  }
  void come(unsigned long long* mbarrier, std::int32_t bytes) { count(mbarrier, phase_of(mbarrier), -bytes); }
  void count(unsigned long long* mbarrier, Phase phase, std::int32_t bytes) {
    phase.missing += bytes;
    if (phase.arrived == 1 && phase.missing == 0) phase = {0, 0, static_cast<std::uint8_t>(1 - phase.parity), kMark};
    std::memcpy(mbarrier, &phase, sizeof phase);
    wrote(mbarrier);
  }
  Phase phase_of(const unsigned long long* mbarrier) {
    Phase phase;
    std::memcpy(&phase, mbarrier, sizeof phase);
    if (phase.mark != kMark) fail("an mbarrier is used before mbarrier_init");
    return phase;
  }

  Block& block_of_rank(unsigned rank) {
    if (rank >= shape_.cluster) fail("a store for a rank that the cluster has not");
    return blocks_[now_thread->block->index / shape_.cluster * shape_.cluster + rank];
  }
  // Returns whether the fault is planted at this call, the `call`th of its kind.
  bool planted(Fault fault, unsigned call, bool any_block = false) const {
    return shape_.planted.fault == fault && shape_.planted.nth == call &&
           (any_block || shape_.planted.block == now_thread->block->index);
  }
  const Launch& shape() const { return shape_; }
  unsigned long long now() { return now_ += 100; }

  // Exceptions must not leave a fiber's function.
  [[noreturn]] static void fail(const std::string& message) {
    if (!now_thread) throw Failure(message);
    throw Failure("block " + std::to_string(now_thread->block->index) + " thread " + std::to_string(now_thread->index) +
                  ": " + message);
  }

 private:
  void run(const std::function<void(void*)>& kernel, Thread& thread) {
    try {
      kernel(thread.block->shared.get());
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  // Kinds of schedules: stores arrive soon, late (when nothing else happens) or at any time; a thread runs for long, or
  // all run about equally; and some are slow and run only when no other can.
  bool stores_come() {
    const bool others_run = !ready_.empty();
    if (!others_run && slow_ready_.empty()) return true;
    switch (shape_.seed % 3) {
      case 0:
        return draw(others_run ? 4 : 2) == 0;
      case 1:
        return !others_run && draw(2) == 0;
      default:
        return true;
    }
  }
  bool next_thread() {
    std::vector<Thread*>& ready = ready_.empty() || (!slow_ready_.empty() && draw(256) == 0) ? slow_ready_ : ready_;
    if (ready.empty()) return false;
    const bool deep = shape_.seed % 2 == 1 && draw(8) != 0;
    const std::size_t next = deep ? ready.size() - 1 : draw(ready.size());
    now_thread = ready[next];
    ready[next] = ready.back();
    ready.pop_back();
    return true;
  }
  void choose_slow() {
    const unsigned sizes[] = {0, 1, 32, shape_.threads, shape_.threads * shape_.cluster};
    const unsigned size = sizes[shape_.seed % 5];
    if (size == 0) return;
    const std::size_t first = draw(threads_.size()) / size * size;
    for (std::size_t i = first; i < first + size; ++i) threads_[i].slow = true;
  }
  void make_ready(Thread* thread) { (thread->slow ? slow_ready_ : ready_).push_back(thread); }

  std::size_t draw(std::size_t below) { return random_() % below; }

  void* make_shared_memory() {
    void* memory = nullptr;
    if (posix_memalign(&memory, 128, std::max<std::size_t>(shape_.shared_bytes, 1)) != 0) throw std::bad_alloc();
    for (std::size_t i = 0; i < shape_.shared_bytes; ++i) static_cast<unsigned char*>(memory)[i] = noise();
    return memory;
  }
  unsigned char noise() { return static_cast<unsigned char>(random_() >> 7); }

  void wait(const char* what, Site site) {
    now_thread->what = what;
    now_thread->site = site;
    now_thread->fiber->suspend();
  }

  void deliver() {
    now_thread = nullptr;
    std::size_t i = draw(stores_.size());
    // Messages to one address keep their order.
    for (std::size_t k = 0; k < stores_.size() && !stores_[i].mbarrier; ++k) {
      if (stores_[k].to == stores_[i].to && stores_[k].number < stores_[i].number) i = k;
    }
    const Store store = stores_[i];
    stores_[i] = stores_.back();
    stores_.pop_back();
    if (store.mbarrier && store.block->living == 0)
      fail("a store comes to block " + std::to_string(store.block->index) + ", which has ended");
    std::memcpy(store.to, store.bytes, sizeof store.bytes);
    if (store.mbarrier) {
      come(store.mbarrier, sizeof store.bytes);
    } else {
      wrote(store.to);
    }
  }

  void all_wait() {
    now_ += 100'000'000;
    for (Thread* thread : std::exchange(asleep_, {})) make_ready(thread);
    if (shape_.time_passes) {
      for (const auto& [look, thread] : std::exchange(looking_, {})) make_ready(thread);
    }
    if (!ready_.empty() || !slow_ready_.empty()) return;
    std::map<std::string, std::pair<unsigned, std::string>> places;  // number of threads, and the first
    for (const Thread& thread : threads_) {
      if (thread.fiber->returned()) continue;
      auto& [threads, first] = places[std::string(thread.what) + " at " + place(thread.site)];
      if (threads++ == 0)
        first = "block " + std::to_string(thread.block->index) + " thread " + std::to_string(thread.index);
    }
    std::string message = "all threads wait:";
    for (const auto& [where, who] : places)
      message += "\n  " + std::to_string(who.first) + " in " + where + ", first " + who.second;
    throw Failure(message);
  }

  static std::string place(Site site) {
    const std::string file = site.file;
    return file.substr(file.rfind('/') + 1) + ":" + std::to_string(site.line);
  }

  Launch shape_;
  std::mt19937_64 random_;
  std::vector<Block> blocks_;
  std::vector<Meeting> clusters_, warps_;
  std::vector<Thread> threads_;
  std::vector<Thread*> ready_, slow_ready_;
  std::vector<Store> stores_;
  std::unordered_map<const void*, std::vector<std::pair<Thread*, std::uint64_t>>> watchers_;
  std::map<std::uint64_t, Thread*> looking_;  // keyed by look
  std::vector<Thread*> asleep_;
  std::uint64_t looks_ = 0, numbers_ = 0;
  unsigned long long now_ = 1;
  std::exception_ptr error_;
};

Thread* Machine::now_thread = nullptr;
Machine* machine = nullptr;

}  // namespace

void launch(const Launch& launch, const std::function<void(void* shared)>& kernel) {
  if (launch.cluster == 0 || launch.blocks % launch.cluster != 0 || launch.threads == 0 || launch.threads % 32 != 0)
    throw std::logic_error("blocks come in whole clusters, threads in whole warps");
  Machine running(launch, kernel);
  machine = &running;
  running.run_all();
}

namespace thread {

unsigned index() {
  return Machine::now_thread->index;
}
unsigned block() {
  return Machine::now_thread->block->index;
}
unsigned lane() {
  return index() % 32;
}
unsigned rank() {
  const unsigned rank = block() % machine->shape().cluster;
  return machine->planted(Fault::wrong_rank, 0) ? rank ^ 1u : rank;
}
unsigned cluster() {
  return block() / machine->shape().cluster;
}
void* shared() {
  return Machine::now_thread->block->shared.get();
}

void barrier(Site site) {
  if (machine->planted(Fault::no_barrier, Machine::now_thread->barriers++, true)) return;
  machine->meet(Machine::now_thread->block->meeting, "barrier", site);
}
void warp_barrier(Site site) {
  machine->meet(*Machine::now_thread->warp, "barrier of a warp", site);
}
void cluster_barrier(Site site) {
  if (machine->planted(Fault::no_cluster_barrier, Machine::now_thread->cluster_barriers++, true)) return;
  machine->meet(*Machine::now_thread->block->cluster, "barrier of a cluster", site);
}
float shuffle(float x, unsigned from_lane, Site site) {
  Machine::now_thread->offered = x;
  Machine::now_thread->from_lane = from_lane;
  machine->meet(*Machine::now_thread->warp, "shuffle", site);
  return Machine::now_thread->got;
}
void gather(const void* mine, const void* (&all)[32], Site site) {
  Machine::now_thread->given = mine;
  machine->meet(*Machine::now_thread->warp, "product of tensor cores", site);
  std::ranges::copy(Machine::now_thread->warp->given, all);
}

void mbarrier_init(unsigned long long* mbarrier) {
  const Phase phase{0, 0, 0, kMark};
  std::memcpy(mbarrier, &phase, sizeof phase);
}
void mbarrier_expect(unsigned long long* mbarrier, unsigned bytes) {
  machine->expect(mbarrier, static_cast<std::int32_t>(bytes));
}
bool mbarrier_test(unsigned long long* mbarrier, unsigned parity) {
  const Planted& planted = machine->shape().planted;
  if (planted.fault == Fault::wrong_parity && planted.block == block() &&
      Machine::now_thread->block->tests++ >= planted.nth)
    parity ^= 1u;
  looks_at(mbarrier);
  return machine->phase_of(mbarrier).parity != parity;
}
void store_remote(float* to, const float (&x)[4], unsigned rank, unsigned long long* mbarrier) {
  Block& own = *Machine::now_thread->block;
  const unsigned call = own.stores++;
  if (machine->planted(Fault::lost_store, call)) return;
  if (machine->planted(Fault::swapped_store, call)) rank ^= 1u;
  Block& other = machine->block_of_rank(rank);
  const auto there = [&](void* here) {
    return other.shared.get() + (static_cast<std::byte*>(here) - own.shared.get());
  };
  if (reinterpret_cast<std::uintptr_t>(to) % 16 != 0) Machine::fail("a store that is not on 16 bytes");
  machine->store(there(to), x, reinterpret_cast<unsigned long long*>(there(mbarrier)), &other);
}
void store_packet(void* to, const void* packet) {
  Block& own = *Machine::now_thread->block;
  const unsigned call = own.packets++;
  if (machine->planted(Fault::lost_packet, call)) return;
  if (reinterpret_cast<std::uintptr_t>(to) % 16 != 0) Machine::fail("a packet that is not on 16 bytes");
  std::uint32_t words[4];
  std::memcpy(words, packet, sizeof words);
  if (machine->planted(Fault::stale_packet, call)) --words[3];
  if (machine->planted(Fault::swapped_packets, call)) to = static_cast<std::byte*>(to) + 16;
  machine->store(to, words, nullptr, nullptr);
}

void copy_async(void* to, const void* from, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(to) % bytes != 0 || reinterpret_cast<std::uintptr_t>(from) % bytes != 0)
    Machine::fail("a copy that is not on its size");
  std::memset(to, 0xff, bytes);  // NaN
  Machine::now_thread->copies.push_back({to, from, bytes});
}
void await_copies() {
  for (const Thread::Copy& copy : std::exchange(Machine::now_thread->copies, {}))
    std::memcpy(copy.to, copy.from, copy.bytes);
}

void bulk_copy(void* to, const void* from, unsigned bytes, unsigned long long* mbarrier) {
  if (reinterpret_cast<std::uintptr_t>(to) % 16 != 0 || reinterpret_cast<std::uintptr_t>(from) % 16 != 0 ||
      bytes % 16 != 0)
    Machine::fail("a copy that is not on 16 bytes");
  for (unsigned at = 0; at < bytes; at += 16)
    machine->store(static_cast<std::byte*>(to) + at, static_cast<const std::byte*>(from) + at, mbarrier,
                   Machine::now_thread->block);
}

void looks_at(const void* word) {
  Machine::now_thread->looked.push_back(word);
}
void look_again(Site site) {
  machine->look_again(site);
}
void sleep(Site site) {
  machine->sleep(site);
}
void wrote(const void* word) {
  machine->wrote(word);
}
unsigned long long now() {
  return machine->now();
}

}  // namespace thread
}  // namespace graphrun::emulation
