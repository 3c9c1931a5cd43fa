// machine.h: a device of one thread: runs a kernel's threads as fibers that take turns where they wait, in a random
// order. Contract: launch() returns when all threads have ended, or throws Failure: all wait for each other (and
// where), threads meet at different barriers, a store comes to a block that has ended. The same seed, the same order.
// Stores into other blocks and packets come late, in any order. Shared memory begins as noise. The functions of Thread
// are called by the shim (shim/kernels/cuda/tile/ptx.h) only. Leaves to others: what a kernel does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>

namespace graphrun::emulation {

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A mistake that the headers could have made, in what they ask of a device: the `nth` such call of `block` goes wrong.
enum class Fault {
  none,
  lost_store,       // into another block
  lost_packet,      // into global memory
  stale_packet,     // has the epoch before
  swapped_store,    // goes to the neighbour of the block that it is for
  swapped_packets,  // the packet goes to its neighbour's place
  wrong_parity,     // a test of an mbarrier asks for the other phase; all from the nth on
  wrong_rank,       // the block takes itself for its neighbour
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
  bool time_passes = false;  // when all wait: the clock jumps, instead of a failure
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

// What the thread that runs may ask for.
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
// What each lane of the warp gives: there until the lane that gave it goes on, so until the warp's next barrier.
void gather(const void* mine, const void* (&all)[32], Site site);
unsigned lane();
// A phase of an mbarrier in its 64 bits.
void mbarrier_init(unsigned long long* mbarrier);
void mbarrier_expect(unsigned long long* mbarrier, unsigned bytes);
bool mbarrier_test(unsigned long long* mbarrier, unsigned parity);
void store_remote(float* to, const float (&x)[4], unsigned rank, unsigned long long* mbarrier);
void store_packet(void* to, const void* packet);                 // 16 bytes, the last four the epoch
void copy_async(void* to, const void* from, std::size_t bytes);  // until it is awaited, NaN
void await_copies();
void bulk_copy(void* to, const void* from, unsigned bytes, unsigned long long* mbarrier);  // 16 of them at a time
void looks_at(const void* word);  // and look_again() sleeps until something has changed there
void look_again(Site site);
void sleep(Site site);  // until nothing else happens
void wrote(const void* word);
unsigned long long now();
}  // namespace thread

}  // namespace graphrun::emulation
