// ptx.h: every device instruction and builtin that the tile headers use: indices, barriers, shuffles, remote stores,
// messages through global memory, clocks, approximate functions.
// Contract: one function per instruction. No other tile header contains asm, a builtin or a CUDA keyword, so a shim of
// this header runs the others on a host (tests/emulation/shim). Includes nothing. Clusters need sm_90 (kHasClusters).
// Leaves to others: how long to wait (wait.h), who sends what (exchange.h).
#pragma once

// Prefix of a device function.
#define GRAPHRUN_TILE_FN __device__ __forceinline__
// Prefix of a function that is compiled separately and linked with the kernel that calls it. It preserves few registers
// for the caller, so that neither of the two has to spill. Parameters are passed by value: references would force their
// targets into memory. In a single-source kernel it is an ordinary function.
#ifdef GRAPHRUN_IN_PARTS
#define GRAPHRUN_TILE_PART _Pragma("nv_abi preserve_n_data(16)") extern "C" __device__ __noinline__ void
#else
#define GRAPHRUN_TILE_PART GRAPHRUN_TILE_FN void
#endif
// Prefix of a kernel with at most `threads` threads per block and one block per SM; extern "C" keeps its name
// unmangled.
#define GRAPHRUN_TILE_KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads, 1)
// Qualifier of the kernel's parameter: threads read it in place, without a local copy.
#define GRAPHRUN_TILE_PARAMETER const __grid_constant__
// Defines a module variable that the host finds by name.
#define GRAPHRUN_TILE_VARIABLE(definition) \
  extern "C" {                             \
  __device__ definition;                   \
  }
// Attribute after the parameter list of a device lambda.
#define GRAPHRUN_TILE_INLINE __attribute__((always_inline))
// Unroll hints, placed before a loop.
#define GRAPHRUN_TILE_UNROLL _Pragma("unroll")
#define GRAPHRUN_TILE_LOOP _Pragma("unroll 1")
// Unrolled loop over i in [0, n).
#define GRAPHRUN_TILE_FOR(i, n) GRAPHRUN_TILE_UNROLL for (int i = 0; i < (n); ++i)

namespace graphrun::cuda::tile {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
constexpr bool kHasClusters = true;
#else
constexpr bool kHasClusters = false;  // the cluster functions still exist, for code that is never executed
#endif

// Indices in a grid of blocks; its second dimension is the slot.
GRAPHRUN_TILE_FN unsigned slot_index() {
  return blockIdx.y;
}
GRAPHRUN_TILE_FN unsigned thread_index() {
  return threadIdx.x;
}
GRAPHRUN_TILE_FN unsigned block_index() {
  return blockIdx.x;
}
GRAPHRUN_TILE_FN unsigned cluster_rank() {  // rank of the block in its cluster; 0 without clusters
  unsigned rank = 0;
  if constexpr (kHasClusters) asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
GRAPHRUN_TILE_FN unsigned cluster_index() {  // index of the cluster in the grid; the block's index without clusters
  unsigned index = blockIdx.x;
  if constexpr (kHasClusters) asm("mov.u32 %0, %%clusterid.x;" : "=r"(index));
  return index;
}
// Dynamic shared memory, 16-byte aligned. The launch sets its size.
GRAPHRUN_TILE_FN void* dynamic_shared() {
  extern __shared__ uint4 graphrun_dynamic_shared[];
  return graphrun_dynamic_shared;
}

// Marks a pointer loaded from memory as a global address, which the compiler cannot infer.
GRAPHRUN_TILE_FN void* global_pointer(void* p) {
  __builtin_assume(__isGlobal(p));
  return p;
}

// Barriers over all threads of a block, a warp or a cluster. Earlier writes are visible afterwards.
GRAPHRUN_TILE_FN void barrier() {
  __syncthreads();
}
GRAPHRUN_TILE_FN void warp_barrier() {
  __syncwarp();
}
GRAPHRUN_TILE_FN void cluster_barrier() {
  if constexpr (kHasClusters)
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Compiler barrier: forces later reads of memory to reload, which frees the registers of earlier ones.
GRAPHRUN_TILE_FN void forget() {
  asm volatile("" ::: "memory");
}

// All lanes of a warp call the following functions together.
// Returns x, hidden from the optimizer so that it cannot assume the same value each time.
GRAPHRUN_TILE_FN int opaque(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
GRAPHRUN_TILE_FN float shuffle_xor(float x, int mask) {
  return __shfl_xor_sync(0xffffffffu, x, mask);
}
GRAPHRUN_TILE_FN float shuffle(float x, int lane) {
  return __shfl_sync(0xffffffffu, x, lane);
}
// Returns x, which must be the same in all lanes. The compiler then knows that a branch on it cannot diverge, which
// halves the code of shuffles inside it.
GRAPHRUN_TILE_FN unsigned same_in_warp(unsigned x) {
  return __shfl_sync(0xffffffffu, x, 0);
}

// Shared-memory mbarrier with one arrival per phase, which sets how many bytes the phase expects. A phase completes
// after the arrival and all of its bytes; bytes may come before the arrival. Phase parities alternate: 0, 1, 0, ...
using Mbarrier = unsigned long long;
GRAPHRUN_TILE_FN unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
GRAPHRUN_TILE_FN void mbarrier_init(Mbarrier* mbarrier) {  // needs a cluster_barrier() before another block uses it
  if constexpr (kHasClusters)
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" ::"r"(shared_address(mbarrier))
        : "memory");
}
GRAPHRUN_TILE_FN void mbarrier_expect(Mbarrier* mbarrier, unsigned bytes) {
  if constexpr (kHasClusters)
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(mbarrier)), "r"(bytes)
                 : "memory");
}
// Returns whether the phase of this parity is complete; may sleep for up to 10 us until it is.
GRAPHRUN_TILE_FN bool mbarrier_test(Mbarrier* mbarrier, unsigned parity) {
  unsigned over = 1;
  if constexpr (kHasClusters)
    asm volatile(
        "{\n.reg .pred p;\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2, 10000;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(over)
        : "r"(shared_address(mbarrier)), "r"(parity)
        : "memory");
  return over != 0;
}
// Stores four floats in the shared memory of block `rank`, at the address that `to` (16-byte aligned) has in this
// block. That block's `mbarrier` receives 16 bytes.
GRAPHRUN_TILE_FN void store_remote(float* to, const float (&x)[4], unsigned rank, Mbarrier* mbarrier) {
  if constexpr (kHasClusters) {
    unsigned remote_to, remote_mbarrier;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote_to) : "r"(shared_address(to)), "r"(rank));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote_mbarrier) : "r"(shared_address(mbarrier)), "r"(rank));
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
            remote_to),
        "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]), "r"(remote_mbarrier)
        : "memory");
  }
}

// Message of 16 bytes that other blocks see atomically: three values, and the epoch that marks them as valid.
struct alignas(16) Packet {
  float value[3];
  unsigned epoch;
};
GRAPHRUN_TILE_FN void store_packet(Packet* to, const Packet& packet) {
  asm volatile(
      "{\n.reg .b64 low, high;\n.reg .b128 all;\n"
      "mov.b64 low, {%1, %2};\nmov.b64 high, {%3, %4};\nmov.b128 all, {low, high};\n"
      "st.relaxed.gpu.global.b128 [%0], all;\n}" ::"l"(__cvta_generic_to_global(to)),
      "r"(__float_as_uint(packet.value[0])), "r"(__float_as_uint(packet.value[1])),
      "r"(__float_as_uint(packet.value[2])), "r"(packet.epoch)
      : "memory");
}
GRAPHRUN_TILE_FN Packet load_packet(const Packet* from) {
  unsigned x, y, z, epoch;
  asm volatile(
      "{\n.reg .b64 low, high;\n.reg .b128 all;\n"
      "ld.relaxed.gpu.global.b128 all, [%4];\n"
      "mov.b128 {low, high}, all;\nmov.b64 {%0, %1}, low;\nmov.b64 {%2, %3}, high;\n}"
      : "=r"(x), "=r"(y), "=r"(z), "=r"(epoch)
      : "l"(__cvta_generic_to_global(from))
      : "memory");
  return {{__uint_as_float(x), __uint_as_float(y), __uint_as_float(z)}, epoch};
}

// Approximations with the maximum errors stated in the PTX ISA. "flushes": subnormal inputs and results become zero.
#define GRAPHRUN_TILE_APPROXIMATION(name, instruction)  \
  GRAPHRUN_TILE_FN float name(float x) {                \
    float y;                                            \
    asm(instruction ".f32 %0, %1;" : "=f"(y) : "f"(x)); \
    return y;                                           \
  }
GRAPHRUN_TILE_APPROXIMATION(ex2, "ex2.approx.ftz")         // 2^x, 2 ulp; flushes
GRAPHRUN_TILE_APPROXIMATION(lg2, "lg2.approx")             // log2 x: 2^-22, absolute in (0.5, 2), else relative
GRAPHRUN_TILE_APPROXIMATION(rcp, "rcp.approx.ftz")         // 1 / x, 1 ulp; flushes
GRAPHRUN_TILE_APPROXIMATION(sqrt_approx, "sqrt.approx")    // 2^-23, relative
GRAPHRUN_TILE_APPROXIMATION(rsqrt_approx, "rsqrt.approx")  // 1 / sqrt(x): 2^-22.9, relative
#undef GRAPHRUN_TILE_APPROXIMATION
GRAPHRUN_TILE_FN float div_full(float x, float y) {  // x / y, 2 ulp
  float q;
  asm("div.full.f32 %0, %1, %2;" : "=f"(q) : "f"(x), "f"(y));
  return q;
}
GRAPHRUN_TILE_FN float fma_saturated(float x, float y, float z) {  // x y + z, clamped to [0, 1]; 0 if NaN
  float clamped;
  asm("fma.rn.sat.f32 %0, %1, %2, %3;" : "=f"(clamped) : "f"(x), "f"(y), "f"(z));
  return clamped;
}
GRAPHRUN_TILE_FN float magnitude(float x) {  // |x|; free as an operand modifier
  return fabsf(x);
}

// load_if<kWidth>, load_global_if<kWidth>: load kWidth contiguous floats (generic or global address) if `there`, else
// zeros. Predicated instructions compile in half the time of branches; volatile keeps them on their side of barriers.
#define GRAPHRUN_TILE_LOAD_IF(name, load, address)                                                           \
  template <int kWidth>                                                                                      \
  GRAPHRUN_TILE_FN void name(bool there, const float* from, float(&x)[kWidth]) {                             \
    static_assert(kWidth == 1 || kWidth == 2 || kWidth == 4);                                                \
    if constexpr (kWidth == 1) {                                                                             \
      asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; mov.f32 %0, 0f00000000; @p " load ".f32 %0, [%1];}" \
                   : "=&f"(x[0])                                                                             \
                   : "l"(address), "r"(static_cast<unsigned>(there)));                                       \
    } else if constexpr (kWidth == 2) {                                                                      \
      asm volatile(                                                                                          \
          "{.reg .pred p; setp.ne.u32 p, %3, 0; mov.f32 %0, 0f00000000; mov.f32 %1, 0f00000000;"             \
          "@p " load ".v2.f32 {%0, %1}, [%2];}"                                                              \
          : "=&f"(x[0]), "=&f"(x[1])                                                                         \
          : "l"(address), "r"(static_cast<unsigned>(there)));                                                \
    } else {                                                                                                 \
      asm volatile(                                                                                          \
          "{.reg .pred p; setp.ne.u32 p, %5, 0; mov.f32 %0, 0f00000000; mov.f32 %1, 0f00000000;"             \
          "mov.f32 %2, 0f00000000; mov.f32 %3, 0f00000000; @p " load ".v4.f32 {%0, %1, %2, %3}, [%4];}"      \
          : "=&f"(x[0]), "=&f"(x[1]), "=&f"(x[2]), "=&f"(x[3])                                               \
          : "l"(address), "r"(static_cast<unsigned>(there)));                                                \
    }                                                                                                        \
  }
GRAPHRUN_TILE_LOAD_IF(load_if, "ld", from)
GRAPHRUN_TILE_LOAD_IF(load_global_if, "ld.global", __cvta_generic_to_global(from))
#undef GRAPHRUN_TILE_LOAD_IF

// c (16, 8) += a (16, 8) times b (8, 8), by all lanes of a warp; only the first 10 fraction bits of a and b count. Lane
// 4 g + t holds c's rows g, g, g + 8, g + 8 in columns 2 t, 2 t + 1, 2 t, 2 t + 1, a's rows g, g + 8, g, g + 8 in
// columns t, t, t + 4, t + 4, and rows t, t + 4 of b's column g.
GRAPHRUN_TILE_FN void multiply_add(float (&c)[4], const float (&a)[4], const float (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])),
        "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}
// Loads four (8, 4) matrices from shared memory, by all lanes of a warp. Lane 8 i + r passes the address of row r of
// matrix i (16-byte aligned); lane 4 g + t receives row g, column t of each matrix.
GRAPHRUN_TILE_FN void load_matrices(float (&x)[4], const float* row) {
  unsigned bits[4];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(bits[0]), "=r"(bits[1]), "=r"(bits[2]), "=r"(bits[3])
               : "r"(shared_address(row))
               : "memory");
  for (int i = 0; i < 4; ++i) x[i] = __uint_as_float(bits[i]);
}

// Access to a word of global memory that other blocks poll and that the host reads after the launch.
GRAPHRUN_TILE_FN unsigned load_flag(const unsigned* flag) {
  return *static_cast<const volatile unsigned*>(flag);
}
GRAPHRUN_TILE_FN void store_flag(unsigned* flag, unsigned x) {
  *static_cast<volatile unsigned*>(flag) = x;
}

// Adds to a word that other blocks poll. A thread that reads the sum by load_acquire(), and those it then meets at a
// barrier, see earlier writes of this thread and of those that this thread met at a barrier.
GRAPHRUN_TILE_FN void add_release(unsigned* word, unsigned x) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(word)), "r"(x) : "memory");
}
GRAPHRUN_TILE_FN unsigned load_acquire(const unsigned* flag) {
  unsigned x;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(x) : "l"(__cvta_generic_to_global(flag)) : "memory");
  return x;
}

// Prefetches a line of global memory into L2.
GRAPHRUN_TILE_FN void prefetch(const void* p) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(p)));
}

// Copies kNumbers contiguous words from global to shared memory, both aligned to that size. They are visible to this
// thread after await_copies(), to other threads after a subsequent barrier().
template <int kNumbers, class T>
GRAPHRUN_TILE_FN void copy_async(T* to, const T* from) {
  static_assert(sizeof(T) == 4 && (kNumbers == 1 || kNumbers == 2 || kNumbers == 4));
  if constexpr (kNumbers == 4) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)),
                 "l"(__cvta_generic_to_global(from))
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_address(to)),
                 "l"(__cvta_generic_to_global(from)), "n"(4 * kNumbers)
                 : "memory");
  }
}
GRAPHRUN_TILE_FN void await_copies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

// Copies contiguous bytes, a multiple of 16, from global to this block's shared memory, both 16-byte aligned;
// `mbarrier` receives them. If threads wrote there before, they first call before_bulk_copies() and then barrier().
GRAPHRUN_TILE_FN void bulk_copy(float* to, const float* from, unsigned bytes, Mbarrier* mbarrier) {
  if constexpr (kHasClusters)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(mbarrier))
                 : "memory");
}
GRAPHRUN_TILE_FN void before_bulk_copies() {
  if constexpr (kHasClusters) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Nanoseconds on a clock shared by all blocks.
GRAPHRUN_TILE_FN unsigned long long global_timer() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
// Sleeps for about this long; for waits that are not time-critical.
GRAPHRUN_TILE_FN void sleep_for(unsigned nanoseconds) {
  __nanosleep(nanoseconds);
}
// Called between two polls of a condition. On a device the next poll follows immediately.
GRAPHRUN_TILE_FN void look_again() {}

}  // namespace graphrun::cuda::tile
