// axis_loops.h: sums, maxima, positions, softmax and related ops along lines, written once over the two layouts of a
// line (Along, Across); matrix transposition. Contract: isa.h; see loops.cpp, which includes this file. Leaves to
// others: which elements form a line, parts (batch/lines.cpp, tiles/tile.cpp, batch/movement.cpp).
#pragma once

#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/simd/lanes.h"
#include "kernels/scalar_functions.h"

namespace graphrun::cpu::GRAPHRUN_ISA {
namespace {

using scalar::exp, scalar::log;  // GRAPHRUN_WIDE: simd.h has better matches

// ---- across lanes -------------------------------------------------------------------------------------------------

// Moves lane i + kApart of x to lane i, for the lanes below kApart; the other lanes are undefined.
template <int kApart>
GRAPHRUN_FN Floats upper(Floats x) {
  Floats r = x;
  if constexpr (kApart >= GRAPHRUN_LANES) {
    unrolled<kApart / GRAPHRUN_LANES>([&](auto i) __attribute__((always_inline)) {
      r.part[i] = x.part[i + kApart / GRAPHRUN_LANES];
    });
  } else {
    r.part[0] = high<kApart>(x.part[0], x.part[0], Lanes{});
  }
  return r;
}

// Combines the lanes as a tree.
template <class F>
GRAPHRUN_FN Real across_lanes(Floats x, F&& combine) {
  if constexpr (kLanes > 8) x = combine(x, upper<8>(x));
  x = combine(x, upper<4>(x));
  x = combine(x, upper<2>(x));
  x = combine(x, upper<1>(x));
  return x.part[0][0];
}

GRAPHRUN_FN Real larger(Real x, Real y) {
  const Real most = y > x ? y : x;
  return y != y ? y : most;
}

// The first n lanes; the others are zero.
GRAPHRUN_FN Floats only_first(Floats x, i64 n) {
  Real lanes[kLanes];
  store(lanes, x);
  return load_first(lanes, n);
}

// NaN propagates.
GRAPHRUN_FN Floats larger(Floats x, Floats y) {
  return select((x >= y) | (x != x), x, y);
}

// ---- sums ---------------------------------------------------------------------------------------------------------

// Sum of term(j) over `count` elements in the order of isa.h. kAtOnce: terms unrolled in sequence; 16 for cheap terms,
// so that the accumulators stay in registers.
template <int kAtOnce, class Term>
GRAPHRUN_FN Floats sum_of_many(i64 count, Term&& term) {
  Floats total = 0.0f;
  for (i64 begin = 0; begin < count; begin += kSumChunk) {
    const i64 end = begin + kSumChunk < count ? begin + kSumChunk : count;
    Floats sum[kLanes];
    unrolled<kLanes>([&](auto l) __attribute__((always_inline)) { sum[l] = 0.0f; });
    i64 j = begin;
    if constexpr (kAtOnce == kLanes) {
      for (; j + kLanes <= end; j += kLanes)
        unrolled<kLanes>([&](auto l) __attribute__((always_inline)) { sum[l] = sum[l] + term(j + l); });
    }
    for (; j < end; ++j) sum[(j - begin) % kLanes] = sum[(j - begin) % kLanes] + term(j);
    if constexpr (kLanes > 8) unrolled<8>([&](auto l) __attribute__((always_inline)) { sum[l] = sum[l] + sum[l + 8]; });
    unrolled<4>([&](auto l) __attribute__((always_inline)) { sum[l] = sum[l] + sum[l + 4]; });
    unrolled<2>([&](auto l) __attribute__((always_inline)) { sum[l] = sum[l] + sum[l + 2]; });
    total = total + (sum[0] + sum[1]);
  }
  return total;
}

// Loads 16 numbers, or the first `width` and zeros.
GRAPHRUN_FN Floats load_some(const Real* p, i64 width) {
  return width == kLanes ? load(p) : load_first(p, width);
}
GRAPHRUN_FN void store_some(Real* p, Floats x, i64 width) {
  if (width == kLanes) {
    store(p, x);
  } else {
    store_first(p, x, width);
  }
}

// Sums of fewer than 16 adjacent lines, `columns`, without gaps: 16 terms of each are `columns` whole vectors, which
// serve as accumulators. term(element, column, n) returns 16 elements from `element` on, of which n count; `column` is
// its offset within the group of 16 terms.
template <class Term>
GRAPHRUN_FN void sum_packed(Real* out, i64 n, i64 columns, Term&& term) {
  for (i64 c = 0; c < columns; ++c) out[c] = 0;
  for (i64 begin = 0; begin < n; begin += kSumChunk) {
    const i64 end = begin + kSumChunk < n ? begin + kSumChunk : n;
    Floats sum[kLanes];
    for (Floats& s : sum) s = 0.0f;
    i64 j = begin;
    for (; j + kLanes <= end; j += kLanes)
      for (i64 v = 0; v < columns; ++v) sum[v] = sum[v] + term(j * columns + v * kLanes, v * kLanes, kLanes);
    const i64 rest = (end - j) * columns;
    for (i64 v = 0; v * kLanes < rest; ++v) {
      const i64 width = rest - v * kLanes < kLanes ? rest - v * kLanes : kLanes;
      sum[v] = sum[v] + only_first(term(j * columns + v * kLanes, v * kLanes, width), width);
    }
    Real lanes[kLanes * kLanes];
    for (i64 v = 0; v < columns; ++v) store(lanes + v * kLanes, sum[v]);
    for (i64 apart = kLanes / 2 * columns; apart >= columns; apart /= 2)
      for (i64 i = 0; i < apart; ++i) lanes[i] += lanes[i + apart];
    for (i64 c = 0; c < columns; ++c) out[c] += lanes[c];
  }
}

// ---- lines --------------------------------------------------------------------------------------------------------

Real largest(const Real* x, i64 n) {
  constexpr int kParallel = 4;
  const Real lowest = -__builtin_inff();
  if (n < kLanes) {
    Real top = lowest;
    for (i64 j = 0; j < n; ++j) top = larger(top, x[j]);
    return top;
  }
  Floats top[kParallel];
  unrolled<kParallel>([&](auto i) __attribute__((always_inline)) { top[i] = lowest; });
  i64 j = 0;
  for (; j + kParallel * kLanes <= n; j += kParallel * kLanes)
    unrolled<kParallel>([&](auto i)
                            __attribute__((always_inline)) { top[i] = larger(top[i], load(x + j + i * kLanes)); });
  for (; j + kLanes <= n; j += kLanes) top[0] = larger(top[0], load(x + j));
  top[1] = larger(top[1], load(x + n - kLanes));  // overlaps earlier elements, which does not affect a maximum
  return across_lanes(
      larger(larger(top[0], top[1]), larger(top[2], top[3])),
      [](Floats a, Floats b) __attribute__((always_inline)) { return larger(a, b); });
}

// Combinations of terms in order; NaN propagates.
struct Larger {
  static constexpr Real kStart = -__builtin_inff();
  template <class T>
  GRAPHRUN_FN static T of(T x, T y) {
    return larger(x, y);
  }
};
struct Smaller {
  static constexpr Real kStart = __builtin_inff();
  GRAPHRUN_FN static Floats of(Floats x, Floats y) { return select((x <= y) | (x != x), x, y); }
  GRAPHRUN_FN static Real of(Real x, Real y) { return x <= y || x != x ? x : y; }
};
struct Product {
  static constexpr Real kStart = 1;
  template <class T>
  GRAPHRUN_FN static T of(T x, T y) {
    return x * y;
  }
};

// Up to 16 adjacent lines, a lane each. Functions of an element get its offset and the number of valid lanes.
struct Across {
  Lines l;
  i64 first, width;

  GRAPHRUN_FN i64 at(i64 j) const { return first + (l.term_at != nullptr ? l.term_at[j] : j) * l.stride; }
  template <class F>
  GRAPHRUN_FN void for_each(F&& f) const {
    for (i64 j = 0; j < l.terms; ++j) f(at(j), width);
  }
  template <int kAtOnce = 1, class Term>
  GRAPHRUN_FN Floats long_sum(Term&& term) const {
    return sum_of_many<kAtOnce>(
        l.terms, [&](i64 j) __attribute__((always_inline)) { return term(at(j), width); });
  }
  template <class Term>
  GRAPHRUN_FN Floats sum(Term&& term) const {
    if (l.terms > kShortLine) return long_sum(term);
    Floats total = 0.0f;
    for (i64 j = 0; j < l.terms; ++j) total = total + term(at(j), width);
    return total;
  }
  template <class F>
  GRAPHRUN_FN Floats fold() const {
    Floats x = F::kStart;
    for (i64 j = 0; j < l.terms; ++j) x = F::of(x, load_some(l.x + at(j), width));
    return x;
  }
  GRAPHRUN_FN Floats top() const { return fold<Larger>(); }
  GRAPHRUN_FN Floats of_class() const {
    Real classes[kLanes] = {};  // exact up to 2^24 or more
    for (i64 i = 0; i < width; ++i) classes[i] = (Real)((const std::int32_t*)l.other)[first + i];
    const Floats index = load(classes);
    Floats x = __builtin_nanf("");
    for (i64 j = 0; j < l.terms; ++j) x = select(index == Floats((Real)j), load_some(l.x + at(j), width), x);
    return x;
  }
  GRAPHRUN_FN Floats other() const { return load_some(l.other + first, width); }
  GRAPHRUN_FN void finish(Floats x) const { store_some(l.out + first, x, width); }
};

// One line of adjacent terms, 16 per vector.
struct Along {
  Lines l;
  i64 line, first;

  template <class F>
  GRAPHRUN_FN void for_each(F&& f) const {
    i64 j = 0;
    for (; j + kLanes <= l.terms; j += kLanes) f(first + j, i64{kLanes});
    if (j < l.terms) f(first + j, l.terms - j);
  }
  template <int kAtOnce = 1, class Term>
  GRAPHRUN_FN Floats long_sum(Term&& term) const {
    Real total = 0;
    for (i64 begin = 0; begin < l.terms; begin += kSumChunk) {
      const i64 end = begin + kSumChunk < l.terms ? begin + kSumChunk : l.terms;
      Floats sum = 0.0f;
      i64 j = begin;
      for (; j + kLanes <= end; j += kLanes) sum = sum + term(first + j, i64{kLanes});
      if (j < end) {
        const Floats rest = term(first + j, end - j);
        sum = sum + (kAtOnce == kLanes ? rest : only_first(rest, end - j));  // a cheap term is a load: zero beyond
      }
      total += across_lanes(
          sum, [](Floats a, Floats b) __attribute__((always_inline)) { return a + b; });
    }
    return total;
  }
  template <class Term>
  GRAPHRUN_FN Floats sum(Term&& term) const {
    if (l.terms > kShortLine) return long_sum(term);
    Real terms[kLanes], total = 0;
    store(terms, term(first, l.terms));
    for (i64 j = 0; j < l.terms; ++j) total += terms[j];
    return total;
  }
  template <class F>
  GRAPHRUN_FN Real fold() const {
    Real x = F::kStart;
    for (i64 j = 0; j < l.terms; ++j) x = F::of(x, l.x[first + j]);
    return x;
  }
  GRAPHRUN_FN Floats top() const { return largest(l.x + first, l.terms); }
  GRAPHRUN_FN Floats of_class() const {
    std::int32_t index;
    __builtin_memcpy(&index, (const std::int32_t*)l.other + line, sizeof index);
    return index >= 0 && index < l.terms ? l.x[first + index] : __builtin_nanf("");
  }
  GRAPHRUN_FN Floats other() const { return l.other[line]; }
  GRAPHRUN_FN void finish(Floats x) const { l.out[line] = x.part[0][0]; }
};

template <const auto& op>
void across(const Lines& given) {
  const Lines l = given;  // local copy: no store can alias it
  i64 i = 0;
  for (; i + kLanes <= l.count; i += kLanes) op(Across{l, i, kLanes});
  if (i < l.count) op(Across{l, i, l.count - i});
}
template <const auto& op>
void along(const Lines& given) {
  const Lines l = given;
  for (i64 i = 0; i < l.count; ++i) op(Along{l, i, i * l.terms});
}

// ---- ops along lines: functions of an Across or an Along -----------------------------------------------------------

template <class Line>
GRAPHRUN_FN Floats sum_of_exponentials(const Line& line, Floats top) {
  return line.sum([&](i64 at, i64 n) __attribute__((always_inline)) { return exp(load_some(line.l.x + at, n) - top); });
}

// log(sum(exp(x))) as two parts, top + rest: more precise than their sum.
struct LogSum {
  Floats top, rest;

  template <class Line>
  GRAPHRUN_FN explicit LogSum(const Line& line) : top(line.top()), rest(log(sum_of_exponentials(line, top))) {}
  GRAPHRUN_FN LogSum(Floats t, Floats sum) : top(t), rest(log(sum)) {}
  GRAPHRUN_FN Floats total() const {
    const Floats infinity = __builtin_inff();
    return select((top < infinity) & (top > -infinity), top + rest, top);
  }
};

constexpr auto kSum = [](const auto& line) __attribute__((always_inline)) {
  line.finish(line.template long_sum<kLanes>([&](i64 at, i64 n) __attribute__((always_inline)) {
    return load_some(line.l.x + at, n);
  }));
};

template <class F>
constexpr auto kFold = [](const auto& line) __attribute__((always_inline)) {
  line.finish(line.template fold<F>());
};

constexpr auto kTop = [](const auto& line) __attribute__((always_inline)) {
  line.finish(line.top());
};

constexpr auto kSumExp = [](const auto& line) __attribute__((always_inline)) {
  const Floats top = line.other();
  line.finish(line.long_sum([&](i64 at, i64 n)
                                __attribute__((always_inline)) { return exp(load_some(line.l.x + at, n) - top); }));
};

constexpr auto kLogSumExp = [](const auto& line) __attribute__((always_inline)) {
  line.finish(LogSum(line).total());
};

constexpr auto kSoftmax = [](const auto& line) __attribute__((always_inline)) {
  const Floats top = line.top();
  Real* const out = line.l.out;
  const Floats total = line.sum([&](i64 at, i64 n) __attribute__((always_inline)) {
    const Floats e = exp(load_some(line.l.x + at, n) - top);
    store_some(out + at, e, n);
    return e;
  });
  line.for_each([&](i64 at, i64 n)
                    __attribute__((always_inline)) { store_some(out + at, load_some(out + at, n) / total, n); });
};

constexpr auto kLogSoftmax = [](const auto& line) __attribute__((always_inline)) {
  const LogSum sum(line);
  line.for_each([&](i64 at, i64 n) __attribute__((always_inline)) {
    store_some(line.l.out + at, (load_some(line.l.x + at, n) - sum.top) - sum.rest, n);
  });
};

// Elements with target 0 add nothing.
constexpr auto kCrossEntropy = [](const auto& line) __attribute__((always_inline)) {
  const LogSum sum(line);
  const Floats zero = 0.0f;
  line.finish(line.sum([&](i64 at, i64 n) __attribute__((always_inline)) {
    const Floats target = load_some(line.l.other + at, n);
    return select(target != zero, target * (sum.rest - (load_some(line.l.x + at, n) - sum.top)), zero);
  }));
};

constexpr auto kClassEntropy = [](const auto& line) __attribute__((always_inline)) {
  const LogSum sum(line);
  line.finish(sum.rest - (line.of_class() - sum.top));
};

// Index of the first largest (smallest) term, or of the first NaN.
template <bool kLargest>
struct Position {
  static constexpr Real kStart = kLargest ? Larger::kStart : Smaller::kStart;
  GRAPHRUN_FN void operator()(const Across& line) const {
    Floats best = kStart, index = from_bits(Ints(Bits{0}));
    for (i64 j = 0; j < line.l.terms; ++j) {
      const Floats x = load_some(line.l.x + line.at(j), line.width);
      const Mask better = (best == best) & ((x != x) | (kLargest ? x > best : x < best));
      best = select(better, x, best);
      index = select(better, from_bits(Ints((Bits)j)), index);
    }
    line.finish(index);
  }
  GRAPHRUN_FN void operator()(const Along& line) const {
    Real best = kStart;
    std::int32_t index = 0;
    for (i64 j = 0; j < line.l.terms; ++j) {
      const Real x = line.l.x[line.first + j];
      if (best != best || !(x != x || (kLargest ? x > best : x < best))) continue;
      best = x;
      index = (std::int32_t)j;
    }
    __builtin_memcpy(line.l.out + line.line, &index, sizeof index);
  }
};
constexpr Position<true> kArgmax = {};
constexpr Position<false> kArgmin = {};

// ---- fewer than 16 adjacent lines without gaps --------------------------------------------------------------------

GRAPHRUN_FN bool is_narrow(const Lines& l) {
  return l.count < kLanes && l.stride == l.count && l.term_at == nullptr;
}

void sum_across(const Lines& l) {
  if (!is_narrow(l)) return across<kSum>(l);
  const Real* const x = l.x;
  sum_packed(
      l.out, l.terms, l.count, [&](i64 i, i64, i64 n) __attribute__((always_inline)) { return load_some(x + i, n); });
}

void top_across(const Lines& l) {
  if (!is_narrow(l)) return across<kTop>(l);
  const i64 columns = l.count, whole = l.terms / kLanes * kLanes;
  Floats top[kLanes];
  for (Floats& t : top) t = -__builtin_inff();
  for (i64 j = 0; j < whole; j += kLanes)
    for (i64 v = 0; v < columns; ++v) top[v] = larger(top[v], load(l.x + j * columns + v * kLanes));
  Real lanes[kLanes * kLanes];
  for (i64 v = 0; v < columns; ++v) store(lanes + v * kLanes, top[v]);
  for (i64 i = 0; i < (l.terms - whole) * columns; ++i) lanes[i] = larger(lanes[i], l.x[whole * columns + i]);
  for (i64 c = 0; c < columns; ++c) {
    l.out[c] = lanes[c];
    for (i64 r = 1; r < kLanes; ++r) l.out[c] = larger(l.out[c], lanes[r * columns + c]);
  }
}

void sum_exp_across(const Lines& l) {
  if (!is_narrow(l)) return across<kSumExp>(l);
  Real tops[kLanes * kLanes];
  for (i64 i = 0; i < kLanes * l.count; ++i) tops[i] = l.other[i % l.count];
  const Real* const x = l.x;
  sum_packed(
      l.out, l.terms, l.count, [&](i64 i, i64 column, i64 n) __attribute__((always_inline)) {
        return exp(load_some(x + i, n) - load(tops + column));
      });
}

void log_sum_exp_across(const Lines& l) {
  if (!is_narrow(l) || l.terms <= kShortLine) return across<kLogSumExp>(l);
  Real top[kLanes], sum[kLanes];
  Lines part = l;
  part.out = top;
  top_across(part);
  part.other = top;
  part.out = sum;
  sum_exp_across(part);
  store_first(l.out, LogSum(load_first(top, l.count), load_first(sum, l.count)).total(), l.count);
}

// Class indices of a tile to one feature per class.
[[maybe_unused]] void one_hot(Real* out, const std::int32_t* x, i64 features, i64 classes, i64 stride) {
  for (i64 f = 0; f < features; ++f, x += stride)
    for (i64 c = 0; c < classes; ++c, out += stride)
      for (i64 r = 0; r < stride; r += kLanes)
        store(out + r, select(nonzero(bits(load((const Real*)(x + r))) ^ Ints((Bits)c)), Floats(0.0f), Floats(1.0f)));
}

// ---- transposition ------------------------------------------------------------------------------------------------

// Processes cache-sized blocks in register-sized squares.
void transpose_matrix(Real* to, i64 to_stride, const Real* from, i64 from_stride, i64 rows, i64 columns) {
  constexpr i64 kSide = GRAPHRUN_LANES, kBlock = 32;
  for (i64 r0 = 0; r0 < rows; r0 += kBlock) {
    const i64 r1 = r0 + kBlock < rows ? r0 + kBlock : rows;
    for (i64 c0 = 0; c0 < columns; c0 += kBlock) {
      const i64 c1 = c0 + kBlock < columns ? c0 + kBlock : columns;
      for (i64 r = r0; r < r1; r += kSide) {
        for (i64 c = c0; c < c1; c += kSide) {
          const Real* const p = from + r * from_stride + c;
          Real* const q = to + c * to_stride + r;
          FloatPart v[kSide];
          if (r + kSide <= r1 && c + kSide <= c1) {
            unrolled<kSide>([&](auto l)
                                __attribute__((always_inline)) { v[l] = load_part(p + l * from_stride, kSide); });
            transpose(v);
            unrolled<kSide>([&](auto l) __attribute__((always_inline)) { store_part(q + l * to_stride, v[l], kSide); });
          } else {
            unrolled<kSide>([&](auto l) __attribute__((always_inline)) {
              v[l] = r + l < r1 ? load_part(p + l * from_stride, c1 - c) : FloatPart{};
            });
            transpose(v);
            unrolled<kSide>([&](auto l) __attribute__((always_inline)) {
              if (c + l < c1) store_part(q + l * to_stride, v[l], r1 - r);
            });
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace graphrun::cpu::GRAPHRUN_ISA
