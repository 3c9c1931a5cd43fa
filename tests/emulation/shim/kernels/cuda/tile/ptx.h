// ptx.h: replaces src/kernels/cuda/tile/ptx.h when tile headers are compiled for a host: each function calls the
// emulator (emulation/machine.h).
// Contract: the names and meanings of the real header, which describes them. Leaves to others: scheduling and the
// arrival of stores (machine.cpp).
#pragma once

#include <cstdint>
#include <cstring>

#include "emulation/approximations.h"
#include "emulation/machine.h"

#define GRAPHRUN_TILE_FN inline
#define GRAPHRUN_TILE_PART inline void
#define GRAPHRUN_TILE_KERNEL(threads) extern "C" void
#define GRAPHRUN_TILE_PARAMETER const
#define GRAPHRUN_TILE_VARIABLE(definition) \
  extern "C" {                             \
  definition;                              \
  }
#define GRAPHRUN_TILE_INLINE __attribute__((always_inline))
#define GRAPHRUN_TILE_UNROLL
#define GRAPHRUN_TILE_LOOP
#define GRAPHRUN_TILE_FOR(i, n) for (int i = 0; i < (n); ++i)  // NOLINT(bugprone-macro-parentheses)
#define GRAPHRUN_TILE_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

namespace graphrun::cuda::tile {

constexpr bool kHasClusters = true;
namespace thread = emulation::thread;

inline unsigned slot_index() {
  return 0;  // a launch of the emulator is one slot
}
inline unsigned thread_index() {
  return thread::index();
}
inline unsigned block_index() {
  return thread::block();
}
inline unsigned cluster_rank() {
  return thread::rank();
}
inline unsigned cluster_index() {
  return thread::cluster();
}
inline void* dynamic_shared() {
  return thread::shared();
}

inline void* global_pointer(void* p) {
  return p;
}

inline void barrier(GRAPHRUN_TILE_HERE) {
  thread::barrier({file, line});
}
inline void warp_barrier(GRAPHRUN_TILE_HERE) {
  thread::warp_barrier({file, line});
}
inline void cluster_barrier(GRAPHRUN_TILE_HERE) {
  thread::cluster_barrier({file, line});
}
inline void forget() {}
inline int opaque(int x) {
  return x;
}

inline float shuffle_xor(float x, int mask, GRAPHRUN_TILE_HERE) {
  return thread::shuffle(x, thread::lane() ^ static_cast<unsigned>(mask), {file, line});
}
inline float shuffle(float x, int lane, GRAPHRUN_TILE_HERE) {
  return thread::shuffle(x, static_cast<unsigned>(lane), {file, line});
}

inline unsigned same_in_warp(unsigned x) {
  return x;
}

using Mbarrier = unsigned long long;
inline void mbarrier_init(Mbarrier* mbarrier) {
  thread::mbarrier_init(mbarrier);
}
inline void mbarrier_expect(Mbarrier* mbarrier, unsigned bytes) {
  thread::mbarrier_expect(mbarrier, bytes);
}
inline bool mbarrier_test(Mbarrier* mbarrier, unsigned parity) {
  return thread::mbarrier_test(mbarrier, parity);
}
inline void store_remote(float* to, const float (&x)[4], unsigned rank, Mbarrier* mbarrier) {
  thread::store_remote(to, x, rank, mbarrier);
}

struct alignas(16) Packet {
  float value[3];
  unsigned epoch;
};
inline void store_packet(Packet* to, const Packet& packet) {
  thread::store_packet(to, &packet);
}
inline Packet load_packet(const Packet* from) {
  thread::looks_at(from);
  return *from;
}

inline float first_bits(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  bits &= 0xffffe000u;
  std::memcpy(&x, &bits, sizeof(bits));
  return x;
}
template <int kWidth>
inline void load_if(bool there, const float* from, float (&x)[kWidth]) {
  for (int i = 0; i < kWidth; ++i) x[i] = there ? from[i] : 0.0f;
}
template <int kWidth>
inline void load_global_if(bool there, const float* from, float (&x)[kWidth]) {
  load_if(there, from, x);
}
inline void multiply_add(float (&c)[4], const float (&a)[4], const float (&b)[2], GRAPHRUN_TILE_HERE) {
  struct Factors {
    float a[4], b[2];
  };
  const Factors mine{{first_bits(a[0]), first_bits(a[1]), first_bits(a[2]), first_bits(a[3])},
                     {first_bits(b[0]), first_bits(b[1])}};
  const void* lanes[32];
  thread::gather(&mine, lanes, {file, line});
  const auto of = [&](unsigned lane) -> const Factors& { return *static_cast<const Factors*>(lanes[lane]); };
  const unsigned row = thread::lane() / 4 * 4, column = thread::lane() % 4 * 8;  // first lanes
  for (unsigned i = 0; i < 4; ++i) {
    double sum = double{c[i]};
    for (unsigned k = 0; k < 4; ++k)
      for (unsigned half = 0; half < 2; ++half)
        sum += double{of(row + k).a[i / 2 + 2 * half]} * double{of(column + i % 2 * 4 + k).b[half]};
    c[i] = static_cast<float>(sum);
  }
  thread::warp_barrier({file, line});
}
inline void load_matrices(float (&x)[4], const float* row, GRAPHRUN_TILE_HERE) {
  const void* lanes[32];
  thread::gather(row, lanes, {file, line});
  for (unsigned i = 0; i < 4; ++i)
    x[i] = static_cast<const float*>(lanes[8 * i + thread::lane() / 4])[thread::lane() % 4];
}

inline unsigned load_flag(const unsigned* flag) {
  thread::looks_at(flag);
  return *flag;
}
inline void store_flag(unsigned* flag, unsigned x) {
  *flag = x;
  thread::wrote(flag);
}

inline void add_release(unsigned* word, unsigned x) {
  store_flag(word, *word + x);
}
inline unsigned load_acquire(const unsigned* flag) {
  return load_flag(flag);
}

inline void prefetch(const void*) {}

template <int kNumbers, class T>
inline void copy_async(T* to, const T* from) {
  thread::copy_async(to, from, kNumbers * sizeof(T));
}
inline void await_copies() {
  thread::await_copies();
}

inline void bulk_copy(float* to, const float* from, unsigned bytes, Mbarrier* mbarrier) {
  thread::bulk_copy(to, from, bytes, mbarrier);
}
inline void before_bulk_copies() {}

inline unsigned long long global_timer() {
  return thread::now();
}
inline void sleep_for(unsigned, GRAPHRUN_TILE_HERE) {
  thread::sleep({file, line});
}
inline void look_again(GRAPHRUN_TILE_HERE) {
  thread::look_again({file, line});
}

}  // namespace graphrun::cuda::tile
