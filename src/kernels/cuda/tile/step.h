// step.h: what the text of a step kernel is written with, beside rows (thread.h) and the exchange (exchange.h): its
// arguments, scalar ops, the rows of a thread, and loops over what all rows share.
// Contract: functions of arrays are called by all threads of a block, and say whether they end with a barrier. Number
// is float for the bits of the scalar functions, or a type with functions of its own. Leaves to others: the text
// (executors/cuda_planner/step_kernel.h).
#pragma once

#include "kernels/cuda/element_functions.h"
#include "kernels/cuda/tile/exchange.h"
#include "kernels/cuda/tile/picks.h"
#include "kernels/cuda/tile/thread.h"

namespace graphrun::cuda::tile {

using u8 = unsigned char;
using u32 = unsigned;
using u64 = unsigned long long;

// Of a kernel: addresses in the arena, how often it runs its steps, and where it says that a wait took too long.
template <int kPointers>
struct StepArguments {
  void* at[kPointers];
  unsigned* fault;
  u32 steps;
};
// The same for a part of a kernel, which finds them in the block's shared memory.
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

// Never beyond the batch, whatever was written to the row count.
template <int kCapacity>
GRAPHRUN_TILE_FN u32 rows_of(int count) {
  return static_cast<u32>(count < 0 ? 0 : count > kCapacity ? kCapacity : count);
}

// row(turn, r, live) for each row of a thread, r = first + turn * kThreads; as straight code where there are at most
// kUnrolled of them: then rows that are not live fill up the last turn of a warp. A warp without a live row leaves that
// turn out, unless it is alone on its quarter of the multiprocessor: nobody would gain from it, and a branch keeps the
// last turn from overlapping with the others. Of a batch that may be partial `count` says how many rows there are.
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
      GRAPHRUN_TILE_UNROLL
      for (int turn = 0; turn < kTurns; ++turn) row(turn, first + static_cast<u32>(turn) * kThreads, true);
      row(kTurns, live ? first + static_cast<u32>(kTurns) * kThreads : kCapacity - 1, live);
    } else {
      GRAPHRUN_TILE_UNROLL
      for (int turn = 0; turn < kTurns; ++turn) row(turn, first + static_cast<u32>(turn) * kThreads, true);
    }
  } else {
    GRAPHRUN_TILE_LOOP
    for (u32 r = first; r < kCapacity; r += kThreads) row(0, r, true);
  }
}

// ---- sums of a thread

template <int kAt, int N, int V>
GRAPHRUN_TILE_FN void start(float (&sums)[V], float value) {
  GRAPHRUN_TILE_UNROLL
  for (int i = 0; i < N; ++i) sums[kAt + i] = value;
}

// ---- what all rows share: arrays of a block

// f(i) for i in [0, N): thread `first` begins.
template <int N, int kThreads, class F>
GRAPHRUN_TILE_FN void each(u32 first, F f) {
  const u32 thread = thread_index(), begin = thread >= first ? thread - first : thread + kThreads - first;
  if constexpr (N <= kThreads) {  // the compiler does not see it, and would unroll a loop
    if (begin < N) f(static_cast<int>(begin));
  } else {
    for (u32 i = begin; i < N; i += kThreads) f(static_cast<int>(i));
  }
}
template <int N, int kThreads, class T>
GRAPHRUN_TILE_FN void copy(T* to, const T* from) {
  each<N, kThreads>(0, [&](int i) { to[i] = from[i]; });
}
// The term of 0, then those of 1, 2, … to M - 1, by one thread.
template <int M, class Term, class Combine>
GRAPHRUN_TILE_FN float fold(float begin, Term term, Combine combine) {
  for (int m = 0; m < M; ++m) begin = combine(begin, term(m));
  return begin;
}
// The same by all threads of the block, which each get it: a thread's terms, lanes, warps. Begins and ends with a
// barrier. `parts`: one for each warp.
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

// A part of a kernel that is compiled by itself: it finds its arguments and all else that lies in memory in `shared`.
// `numbers` are those that each thread has in registers, `at` says which rows or sums it is to make.
#define GRAPHRUN_STEP_PART(name, Arguments, a, Shared, shared)                                    \
  GRAPHRUN_TILE_FN void name##_body(const PartArguments<Arguments>& a, Shared& shared, u32 epoch, \
                                    const Numbers& numbers, u32 at);                              \
  GRAPHRUN_TILE_PART name(u32 epoch, Numbers numbers, u32 at) {                                   \
    Shared& memory = *static_cast<Shared*>(dynamic_shared());                                     \
    name##_body(PartArguments<Arguments>(memory.arguments), memory, epoch, numbers, at);          \
  }                                                                                               \
  GRAPHRUN_TILE_FN void name##_body(const PartArguments<Arguments>& a, Shared& shared, u32 epoch, \
                                    const Numbers& numbers, u32 at)
// As another source sees it.
#define GRAPHRUN_STEP_PART_OF(name) GRAPHRUN_TILE_PART name(u32 epoch, Numbers numbers, u32 at);

// A kernel of so many threads a block: its arguments are of type Arguments, and `shared` lies in the block's shared
// memory, whose size it tells: the launch gives it.
#define GRAPHRUN_STEP_KERNEL(name, threads, Arguments, arguments, Shared, shared) \
  GRAPHRUN_TILE_FN void name##_steps(const Arguments& arguments, Shared& shared); \
  GRAPHRUN_TILE_VARIABLE(unsigned name##_shared_bytes = sizeof(Shared))           \
  GRAPHRUN_TILE_KERNEL(threads) name(GRAPHRUN_TILE_PARAMETER Arguments a) {       \
    name##_steps(a, *static_cast<Shared*>(dynamic_shared()));                     \
  }                                                                               \
  GRAPHRUN_TILE_FN void name##_steps(const Arguments& arguments, Shared& shared)
