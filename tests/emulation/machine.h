// machine.h: an emulated device on one thread. Runs a kernel's threads as fibers that switch where they wait, in a
// random order. Contract: launch() returns when all threads have ended, or throws Failure on deadlock (with the
// positions), on threads at different barriers, or on a store to a block that has ended. The same seed gives the same
// order. Stores into other blocks and messages arrive late, in any order. Shared memory starts as noise. Only the shim
// (shim/kernels/cuda/tile/ptx.h) calls the functions of `thread`. Leaves to others: the kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>

namespace graphrun::emulation {

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Faults that bugs in the headers could cause in their use of a device: affects the `nth` such call of `block`.
enum class Fault {
  none,
  lost_store,       // into another block
  lost_packet,      // message to global memory
  stale_packet,     // has the previous epoch
  swapped_store,    // goes to the neighbor of its destination block
  swapped_packets,  // the message goes to the adjacent slot
  wrong_parity,     // a test of an mbarrier asks for the other phase; all from the nth on
  wrong_rank,       // the block uses its neighbor's rank
  no_barrier,       // no thread of any block stops at its nth one
  no_cluster_barrier
};
struct Planted {
  Fault fault = Fault::none;
  unsigned block = 0, nth = 0;
};

struct Launch {
  unsigned blocks = 1, cluster = 1, threads = 32;
  std::size_t shared_bytes = 0;
  std::uint64_t seed = 0;
  bool time_passes = false;  // on deadlock the clock advances instead of a failure
  Planted planted = {};
};

void launch(const Launch& launch, const std::function<void(void* shared)>& kernel);

template <class Args>
void launch(const Launch& shape, void (*kernel)(const Args& args, void* shared), const Args& args) {
  launch(shape, [&](void* shared) { kernel(args, shared); });
}

// A line of a tile header.
struct Site {
  const char* file;
  int line;
};

// Operations of the current thread.
namespace thread {
unsigned index();
unsigned block();
unsigned rank();
unsigned cluster();
void* shared();
void barrier(Site site);
void warp_barrier(Site site);
void cluster_barrier(Site site);
float shuffle(float x, unsigned from_lane, Site site);
// Gathers a pointer from each lane of the warp: valid until that lane continues, hence until the warp's next barrier.
void gather(const void* mine, const void* (&all)[32], Site site);
unsigned lane();
// State of an mbarrier phase, stored in its 64 bits.
void mbarrier_init(unsigned long long* mbarrier);
void mbarrier_expect(unsigned long long* mbarrier, unsigned bytes);
bool mbarrier_test(unsigned long long* mbarrier, unsigned parity);
void store_remote(float* to, const float (&x)[4], unsigned rank, unsigned long long* mbarrier);
void store_packet(void* to, const void* packet);                 // 16 bytes, the last four are the epoch
void copy_async(void* to, const void* from, std::size_t bytes);  // NaN until awaited
void await_copies();
void bulk_copy(void* to, const void* from, unsigned bytes, unsigned long long* mbarrier);  // 16 of them at a time
void looks_at(const void* word);  // look_again() then sleeps until that word changes
void look_again(Site site);
void sleep(Site site);  // until nothing else happens
void wrote(const void* word);
unsigned long long now();
}  // namespace thread

}  // namespace graphrun::emulation
