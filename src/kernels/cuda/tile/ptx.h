// ptx.h: every instruction and builtin of a device that the tile headers use: indices, barriers, shuffles, stores into
// other blocks, packets through global memory, clocks, approximate functions.
// Contract: one function for each; no other tile header has an asm, a builtin or a CUDA keyword, so that a header of
// the same name runs the others on a host (tests/emulation/shim). Includes nothing. Clusters need sm_90
// (kHasClusters). Leaves to others: how long to wait (wait.h), what is sent where (exchange.h).
#pragma once

// Of a function that devices run.
#define GRAPHRUN_TILE_FN __device__ __forceinline__
// Of one that is compiled by itself and linked with the kernel that calls it. It keeps few registers for who calls, so
// that neither of them has to save one. What it is given are values: what they refer to would lie in memory. In a
// kernel that is one text it is a function like others.
#ifdef GRAPHRUN_IN_PARTS
#define GRAPHRUN_TILE_PART _Pragma("nv_abi preserve_n_data(16)") extern "C" __device__ __noinline__ void
#else
#define GRAPHRUN_TILE_PART GRAPHRUN_TILE_FN void
#endif
// Of one that numbers of types are computed by, too.
#define GRAPHRUN_TILE_CONSTEXPR __host__ __device__ constexpr
// Of a kernel of at most so many threads a block, one block to a multiprocessor: extern "C", so that it has its name.
#define GRAPHRUN_TILE_KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads, 1)
// Before its parameter, which threads read where it lies.
#define GRAPHRUN_TILE_PARAMETER const __grid_constant__
// Around a variable of a module that the host finds by its name.
#define GRAPHRUN_TILE_VARIABLE(definition) \
  extern "C" {                             \
  __device__ definition;                   \
  }
// After the parameters of a lambda that devices run.
#define GRAPHRUN_TILE_INLINE __attribute__((always_inline))
// Before a loop: as straight code, or not.
#define GRAPHRUN_TILE_UNROLL _Pragma("unroll")
#define GRAPHRUN_TILE_LOOP _Pragma("unroll 1")

namespace graphrun::cuda::tile {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
constexpr bool kHasClusters = true;
#define GRAPHRUN_TILE_CLUSTERS 1
#else
constexpr bool kHasClusters = false;  // the functions are there, for code that is not used
#define GRAPHRUN_TILE_CLUSTERS 0
#endif

// Of a grid of one dimension.
GRAPHRUN_TILE_FN unsigned thread_index() {
  return threadIdx.x;
}
GRAPHRUN_TILE_FN unsigned block_index() {
  return blockIdx.x;
}
GRAPHRUN_TILE_FN unsigned cluster_rank() {  // of the block in its cluster; 0 without clusters
  unsigned rank = 0;
#if GRAPHRUN_TILE_CLUSTERS
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  return rank;
}
GRAPHRUN_TILE_FN unsigned cluster_index() {  // of the cluster in the grid; the block's index without clusters
  unsigned index = blockIdx.x;
#if GRAPHRUN_TILE_CLUSTERS
  asm("mov.u32 %0, %%clusterid.x;" : "=r"(index));
#endif
  return index;
}
// The memory whose size the launch gives. Its beginning lies on 16 bytes.
GRAPHRUN_TILE_FN void* dynamic_shared() {
  extern __shared__ uint4 graphrun_dynamic_shared[];
  return graphrun_dynamic_shared;
}

// A pointer into global memory that was itself read from memory: the compiler would not know.
GRAPHRUN_TILE_FN void* global_pointer(void* p) {
  __builtin_assume(__isGlobal(p));
  return p;
}

// Barriers of all threads of a block, of a warp, of a cluster. What was written before one is seen after it.
GRAPHRUN_TILE_FN void barrier() {
  __syncthreads();
}
GRAPHRUN_TILE_FN void warp_barrier() {
  __syncwarp();
}
GRAPHRUN_TILE_FN void cluster_barrier() {
#if GRAPHRUN_TILE_CLUSTERS
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

// What a thread has read of memory it reads again: registers that held it are free.
GRAPHRUN_TILE_FN void forget() {
  asm volatile("" ::: "memory");
}

// All lanes of the warp call together.
// x, of which the compiler does not know that it is the same each time.
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
// x, which is the same in all lanes: of a branch on it the compiler then knows that none goes another way, and shuffles
// in it are half as much code.
GRAPHRUN_TILE_FN unsigned same_in_warp(unsigned x) {
  return __shfl_sync(0xffffffffu, x, 0);
}

// An mbarrier in shared memory of one arrival a phase, which says how many bytes the phase is to receive. A phase is
// over when it has arrived and they have come; they may come before. Phases have the parities 0, 1, 0, ...
using Mbarrier = unsigned long long;
GRAPHRUN_TILE_FN unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
GRAPHRUN_TILE_FN void mbarrier_init(Mbarrier* mbarrier) {  // and a cluster_barrier() before another block uses it
#if GRAPHRUN_TILE_CLUSTERS
  asm volatile(
      "mbarrier.init.shared::cta.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" ::"r"(shared_address(mbarrier))
      : "memory");
#endif
}
GRAPHRUN_TILE_FN void mbarrier_expect(Mbarrier* mbarrier, unsigned bytes) {
#if GRAPHRUN_TILE_CLUSTERS
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(mbarrier)), "r"(bytes)
               : "memory");
#endif
}
// Whether the phase of this parity is over; may sleep for up to 10 us until it is.
GRAPHRUN_TILE_FN bool mbarrier_test(Mbarrier* mbarrier, unsigned parity) {
  unsigned over = 1;
#if GRAPHRUN_TILE_CLUSTERS
  asm volatile(
      "{\n.reg .pred p;\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2, 10000;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(over)
      : "r"(shared_address(mbarrier)), "r"(parity)
      : "memory");
#endif
  return over != 0;
}
// Four floats into the shared memory of the block of this rank, at the place that `to` (on 16 bytes) is in this
// block's; there `mbarrier` receives 16 bytes.
GRAPHRUN_TILE_FN void store_remote(float* to, const float (&x)[4], unsigned rank, Mbarrier* mbarrier) {
#if GRAPHRUN_TILE_CLUSTERS
  unsigned remote_to, remote_mbarrier;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote_to) : "r"(shared_address(to)), "r"(rank));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote_mbarrier) : "r"(shared_address(mbarrier)), "r"(rank));
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
                   remote_to),
               "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]), "r"(remote_mbarrier)
               : "memory");
#endif
}

// Sixteen bytes that other blocks see at once or not at all: values and, by its number, that they are there.
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

// Approximations with the largest errors that the PTX ISA states. "Flushes": what is subnormal, in or out, is zero.
GRAPHRUN_TILE_FN float ex2(float x) {  // 2^x, 2 ulp; flushes
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
GRAPHRUN_TILE_FN float lg2(float x) {  // log2 x: 2^-22, absolute in (0.5, 2), else relative
  float y;
  asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
GRAPHRUN_TILE_FN float rcp(float x) {  // 1 / x, 1 ulp; flushes
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
GRAPHRUN_TILE_FN float div_full(float x, float y) {  // x / y, 2 ulp
  float q;
  asm("div.full.f32 %0, %1, %2;" : "=f"(q) : "f"(x), "f"(y));
  return q;
}
GRAPHRUN_TILE_FN float sqrt_approx(float x) {  // 2^-23, relative
  float y;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
GRAPHRUN_TILE_FN float rsqrt_approx(float x) {  // 1 / sqrt(x): 2^-22.9, relative
  float y;
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
GRAPHRUN_TILE_FN float fma_saturated(float x, float y, float z) {  // x y + z, clamped to [0, 1]; 0 if NaN
  float clamped;
  asm("fma.rn.sat.f32 %0, %1, %2, %3;" : "=f"(clamped) : "f"(x), "f"(y), "f"(z));
  return clamped;
}
GRAPHRUN_TILE_FN float magnitude(float x) {  // |x|, which costs nothing as an operand
  return fabsf(x);
}

// load_if<kWidth>, load_global_if<kWidth>: numbers that lie together in any memory, in global memory, if they are
// there; else zeros. An instruction with a predicate, for which the compiler needs half the time of a branch; volatile,
// so that it stays on its side of barriers.
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

// c (16, 8) += a (16, 8) times b (8, 8), by all lanes of a warp; of a and b only the first 10 bits of fraction count.
// Lane 4 g + t has c's rows g, g, g + 8, g + 8 in the columns 2 t, 2 t + 1, 2 t, 2 t + 1, a's rows g, g + 8, g, g + 8
// in the columns t, t, t + 4, t + 4, and of b's column g the rows t, t + 4.
GRAPHRUN_TILE_FN void multiply_add(float (&c)[4], const float (&a)[4], const float (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])),
        "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}
// Four matrices (8, 4) from shared memory, by all lanes of a warp: lane 8 i + r says where row r of matrix i lies, on
// 16 bytes; lane 4 g + t gets of each matrix row g, column t.
GRAPHRUN_TILE_FN void load_matrices(float (&x)[4], const float* row) {
  unsigned bits[4];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(bits[0]), "=r"(bits[1]), "=r"(bits[2]), "=r"(bits[3])
               : "r"(shared_address(row))
               : "memory");
  for (int i = 0; i < 4; ++i) x[i] = __uint_as_float(bits[i]);
}

// A word of global memory that other blocks, and after the launch the host, look at.
GRAPHRUN_TILE_FN unsigned load_flag(const unsigned* flag) {
  return *static_cast<const volatile unsigned*>(flag);
}
GRAPHRUN_TILE_FN void store_flag(unsigned* flag, unsigned x) {
  *static_cast<volatile unsigned*>(flag) = x;
}

// Adds to a word that other blocks look at. What this thread, and whom it met at a barrier, wrote before is seen by who
// reads the sum, and by whom that one meets at a barrier after it.
GRAPHRUN_TILE_FN void add_release(unsigned* word, unsigned x) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(word)), "r"(x) : "memory");
}
GRAPHRUN_TILE_FN unsigned load_acquire(const unsigned* flag) {
  unsigned x;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(x) : "l"(__cvta_generic_to_global(flag)) : "memory");
  return x;
}

// Brings a line of global memory nearer, into L2.
GRAPHRUN_TILE_FN void prefetch(const void* p) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(p)));
}

// kNumbers words side by side from global into shared memory, both on as many bytes: they are there after this thread's
// await_copies(), for other threads after a barrier() that follows it.
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

// Bytes side by side, a multiple of 16, from global into this block's shared memory, both on 16 bytes; `mbarrier`
// receives them. Where threads have written before, they call before_bulk_copies() and then a barrier().
GRAPHRUN_TILE_FN void bulk_copy(float* to, const float* from, unsigned bytes, Mbarrier* mbarrier) {
#if GRAPHRUN_TILE_CLUSTERS
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(to)),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(mbarrier))
               : "memory");
#endif
}
GRAPHRUN_TILE_FN void before_bulk_copies() {
#if GRAPHRUN_TILE_CLUSTERS
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// Nanoseconds, the same clock for all blocks.
GRAPHRUN_TILE_FN unsigned long long global_timer() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
// For a while that grows; for waits that are not in a hurry.
GRAPHRUN_TILE_FN void sleep_for(unsigned nanoseconds) {
  __nanosleep(nanoseconds);
}
// Between two looks at what a thread waits for. On a device the next look is at once.
GRAPHRUN_TILE_FN void look_again() {}

}  // namespace graphrun::cuda::tile
