// step.h: building blocks of a step kernel's source other than rows (thread.h) and the all-reduce (exchange.h):
// arguments, scalar ops, a thread's loop over rows, loops over values shared by all rows.
// Contract: all threads of a block call the functions over arrays; each states whether it ends with a barrier. Number
// is float for results bitwise equal to the scalar functions, or a type with its own functions. Leaves to others: the
// source text (executors/cuda_planner/print/step_kernel.h).
#pragma once

#include "kernels/cuda/element_functions.h"
#include "kernels/cuda/tile/exchange.h"
#include "kernels/cuda/tile/picks.h"
#include "kernels/cuda/tile/thread.h"

namespace graphrun::cuda::tile {

using u8 = unsigned char;
using u32 = unsigned;
using u64 = unsigned long long;

// Kernel arguments: arena addresses, the fault word that a timed-out wait sets, and the number of steps to run.
template <int kPointers>
struct StepArguments {
  void* at[kPointers];
  unsigned* fault;
  u32 steps;
};
// Those of a kernel that runs several networks, one per slot: also the keys of its random numbers, and the words that
// the first block copies to the host's memory at the end.
template <int kPointers, int kKeys>
struct SlotArguments {
  void* at[kPointers];
  unsigned* fault;
  u32 steps, polled_words;
  const u32* polled;
  u32* mirror;
  u64 keys[kKeys];

  GRAPHRUN_TILE_FN SlotArguments own() const {
    SlotArguments copy = *this;
    GRAPHRUN_TILE_FOR (i, kPointers) copy.at[i] = global_pointer(copy.at[i]);
    return copy;
  }
};
// The same for a separately compiled part of a kernel, read from the block's shared memory.
template <class Arguments>
struct PartArguments {
  struct Pointers {
    const Arguments& all;
    GRAPHRUN_TILE_FN void* operator[](int i) const { return global_pointer(all.at[i]); }
  } at;
  u32 steps;
  GRAPHRUN_TILE_FN explicit PartArguments(const Arguments& all) : at{all}, steps(all.steps) {}
};

// ---- scalar ops

template <class Functor, class Number>
GRAPHRUN_TILE_FN float binary(float x, float y) {
  return static_cast<float>(Functor::template apply<Number>(Number(x), Number(y)));
}
template <class Functor, class T>
GRAPHRUN_TILE_FN u8 compare(T x, T y) {
  return static_cast<u8>(Functor::template apply<T>(x, y) ? 1 : 0);
}

// ---- rows

// Clamped to the batch, whatever the row count in memory.
template <int kCapacity>
GRAPHRUN_TILE_FN u32 rows_of(int count) {
  return static_cast<u32>(count < 0 ? 0 : count > kCapacity ? kCapacity : count);
}

// Calls row(turn, r, live) for each row of a thread, r = first + turn * kThreads. Up to kUnrolled turns are
// straight-line code, in which rows that are not live fill up a warp's last turn. A warp without a live row skips that
// turn unless it is alone on its SM quarter: there skipping gains nothing, and the branch would keep turns from
// overlapping. For a batch that may be partial, `count` is the number of rows.
template <u32 kCapacity, u32 kThreads, int kUnrolled, bool kPartial, bool kAlone, class Row>
GRAPHRUN_TILE_FN void for_rows(u32 first, u32 count, Row row) {
  constexpr int kTurns = kCapacity / kThreads;
  constexpr u32 kRest = kCapacity % kThreads;
  if constexpr (kPartial) {
    (void)kTurns, (void)kRest;
    GRAPHRUN_TILE_LOOP
    for (u32 r = first; r < count; r += kThreads) row(0, r, true);
  } else if constexpr (kTurns <= kUnrolled) {
    (void)count;
    const bool live = first < kRest;
    if (kRest > 0 && (kAlone || first / 32 * 32 < kRest)) {  // some row of the warp
      GRAPHRUN_TILE_FOR (turn, kTurns) row(turn, first + static_cast<u32>(turn) * kThreads, true);
      row(kTurns, live ? first + static_cast<u32>(kTurns) * kThreads : kCapacity - 1, live);
    } else {
      GRAPHRUN_TILE_FOR (turn, kTurns) row(turn, first + static_cast<u32>(turn) * kThreads, true);
    }
  } else {
    GRAPHRUN_TILE_LOOP
    for (u32 r = first; r < kCapacity; r += kThreads) row(0, r, true);
  }
}

// ---- sums of a thread

template <int kAt, int N, int V>
GRAPHRUN_TILE_FN void start(float (&sums)[V], float value) {
  GRAPHRUN_TILE_FOR (i, N) sums[kAt + i] = value;
}

// ---- arrays of a block, shared by all rows

// Calls f(i) for i in [0, N); thread `first` takes i = 0.
template <int N, int kThreads, class F>
GRAPHRUN_TILE_FN void each(u32 first, F f) {
  const u32 thread = thread_index(), begin = thread >= first ? thread - first : thread + kThreads - first;
  if constexpr (N <= kThreads) {  // explicit, because the compiler would unroll a loop here
    if (begin < N) f(static_cast<int>(begin));
  } else {
    for (u32 i = begin; i < N; i += kThreads) f(static_cast<int>(i));
  }
}
template <int N, int kThreads, class T>
GRAPHRUN_TILE_FN void copy(T* to, const T* from) {
  each<N, kThreads>(0, [&](int i) { to[i] = from[i]; });
}
// Folds term(0), term(1), … term(M - 1) in order, by one thread.
template <int M, class Term, class Combine>
GRAPHRUN_TILE_FN float fold(float begin, Term term, Combine combine) {
  for (int m = 0; m < M; ++m) begin = combine(begin, term(m));
  return begin;
}
// The same by all threads of the block, which all get the result: over a thread's terms, lanes, warps. Begins and ends
// with a barrier. `parts` holds one float per warp.
template <int M, int kThreads, class Term, class Combine>
GRAPHRUN_TILE_FN float shared_fold(float* parts, float begin, Term term, Combine combine) {
  float part = begin;
  barrier();
  for (int m = static_cast<int>(thread_index()); m < M; m += kThreads) part = combine(part, term(m));
  GRAPHRUN_TILE_UNROLL
  for (int lanes = 16; lanes > 0; lanes /= 2) part = combine(part, shuffle_xor(part, lanes));
  if (thread_index() % 32 == 0) parts[thread_index() / 32] = part;
  barrier();
  for (int warp = 0; warp < kThreads / 32; ++warp) begin = combine(begin, parts[warp]);
  barrier();
  return begin;
}
template <int M, class X, class Y>
GRAPHRUN_TILE_FN float dot(X x, Y y) {
  float sum = 0;
  for (int m = 0; m < M; ++m) sum = scalar::fma(x(m), y(m), sum);
  return sum;
}

}  // namespace graphrun::cuda::tile

// Separately compiled part of a kernel. It finds its arguments and all other memory in `shared`. `numbers` are each
// thread's register values; `at` selects the rows or sums to compute.
#define GRAPHRUN_STEP_PART(name, Arguments, a, Shared, shared)                                    \
  GRAPHRUN_TILE_FN void name##_body(const PartArguments<Arguments>& a, Shared& shared, u32 epoch, \
                                    const Numbers& numbers, u32 at);                              \
  GRAPHRUN_TILE_PART name(u32 epoch, Numbers numbers, u32 at) {                                   \
    Shared& memory = *static_cast<Shared*>(dynamic_shared());                                     \
    name##_body(PartArguments<Arguments>(memory.arguments), memory, epoch, numbers, at);          \
  }                                                                                               \
  GRAPHRUN_TILE_FN void name##_body(const PartArguments<Arguments>& a, Shared& shared, u32 epoch, \
                                    const Numbers& numbers, u32 at)
// Declaration for other translation units.
#define GRAPHRUN_STEP_PART_OF(name) GRAPHRUN_TILE_PART name(u32 epoch, Numbers numbers, u32 at);

// Kernel with `threads` threads per block and arguments of type Arguments. `shared` is in the block's dynamic shared
// memory; the launch reads its size from name##_shared_bytes.
#define GRAPHRUN_STEP_KERNEL(name, threads, Arguments, arguments, Shared, shared) \
  GRAPHRUN_TILE_FN void name##_steps(const Arguments& arguments, Shared& shared); \
  GRAPHRUN_TILE_VARIABLE(unsigned name##_shared_bytes = sizeof(Shared))           \
  GRAPHRUN_TILE_KERNEL(threads) name(GRAPHRUN_TILE_PARAMETER Arguments a) {       \
    name##_steps(a, *static_cast<Shared*>(dynamic_shared()));                     \
  }                                                                               \
  GRAPHRUN_TILE_FN void name##_steps(const Arguments& arguments, Shared& shared)

// The same for a kernel of several networks. Its parameter is the address of a table with the arguments of each slot,
// the second dimension of the grid. A thread keeps those of its slot in registers.
#define GRAPHRUN_SLOT_KERNEL(name, threads, Arguments, arguments, Shared, shared)             \
  GRAPHRUN_TILE_FN void name##_steps(const Arguments& arguments, Shared& shared);             \
  GRAPHRUN_TILE_VARIABLE(unsigned name##_shared_bytes = sizeof(Shared))                       \
  GRAPHRUN_TILE_KERNEL(threads) name(const Arguments* slots) {                                \
    const Arguments a = slots[slot_index()].own();                                            \
    name##_steps(a, *static_cast<Shared*>(dynamic_shared()));                                 \
    barrier();                                                                                \
    if (block_index() != 0) return;                                                           \
    for (u32 i = thread_index(); i < a.polled_words; i += threads) a.mirror[i] = a.polled[i]; \
  }                                                                                           \
  GRAPHRUN_TILE_FN void name##_steps(const Arguments& arguments, Shared& shared)
