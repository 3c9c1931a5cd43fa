// tile_loops.cpp: the loops of tile_isa.h, written once over simd.h and compiled once per instruction set.
// Contract: see tile_isa.h. All shared code is static or forced inline; only integer types are used from std. Leaves to
// others: products and sums over rows (tile_dense_loops.cpp, tile_gradient_loops.cpp), flags (src/CMakeLists.txt).
#include "kernels/cpu/simd/lanes.h"
#include "kernels/cpu/simd/line_lanes.h"
#include "kernels/cpu/tiles/tile_isa.h"

namespace graphrun::cpu::GRAPHRUN_ISA {
namespace {

// ---- moves --------------------------------------------------------------------------------------------------------

void load_tile(float* tile, const float* from, i64 width, i64 rows, i64 stride) {
  constexpr i64 kSide = GRAPHRUN_LANES;
  for (i64 r = 0; r < stride; r += kSide) {
    if (width == 1) {
      store_part(tile + r, load_part(from + r, rows - r > 0 ? rows - r : 0), kSide);
      continue;
    }
    for (i64 f = 0; f < width; f += kSide) {
      FloatPart v[kSide];
      unrolled<GRAPHRUN_LANES>([&](auto l) __attribute__((always_inline)) {
        v[l] = r + l < rows ? load_part(from + (r + l) * width + f, width - f) : FloatPart{};
      });
      transpose(v);
      for (i64 j = 0; j < kSide && f + j < width; ++j) store_part(tile + (f + j) * stride + r, v[j], kSide);
    }
  }
}

void store_tile(float* to, const float* tile, i64 width, i64 rows, i64 stride) {
  constexpr i64 kSide = GRAPHRUN_LANES;
  for (i64 r = 0; r < rows; r += kSide) {
    if (width == 1) {
      store_part(to + r, load_part(tile + r, kSide), rows - r);
      continue;
    }
    for (i64 f = 0; f < width; f += kSide) {
      FloatPart v[kSide];
      unrolled<GRAPHRUN_LANES>([&](auto j) __attribute__((always_inline)) {
        v[j] = f + j < width ? load_part(tile + (f + j) * stride + r, kSide) : FloatPart{};
      });
      transpose(v);
      for (i64 l = 0; l < kSide && r + l < rows; ++l) store_part(to + (r + l) * width + f, v[l], width - f);
    }
  }
}

// ---- lines along features -----------------------------------------------------------------------------------------

// Calls f(first feature of the line in these 16 rows, index of the line, row) for each line and vector of rows.
template <class F>
GRAPHRUN_FN void for_lines(const float* x, const FeatureLines& l, F&& f) {
  for (i64 i = 0; i < l.line_count; ++i)
    for (i64 r = 0; r < l.stride; r += kLanes) f(x + l.lines[i] * l.stride + r, i, r);
}
GRAPHRUN_FN Floats term(const float* line, const FeatureLines& l, i64 j) {
  return load(line + l.terms[j] * l.stride);
}

// Sum in the order of softmax and related ops.
template <class Term>
GRAPHRUN_FN Floats sum_along(i64 count, Term&& term_of) {
  if (count > kShortLine) return sum_of_many<1>(count, term_of);
  Floats total = 0.0f;
  for (i64 j = 0; j < count; ++j) total = total + term_of(j);
  return total;
}

void sum_features(float* out, const float* x, const FeatureLines& l) {
  for_lines(x, l, [&](const float* line, i64 i, i64 r) {
    store(out + i * l.stride + r, sum_of_many<1>(l.term_count, [&](i64 j) { return term(line, l, j); }));
  });
}

GRAPHRUN_FN Floats infinity() {
  return Floats(__builtin_inff());
}

GRAPHRUN_FN Floats largest(const float* line, const FeatureLines& l) {
  Floats top = -infinity();
  for (i64 j = 0; j < l.term_count; ++j) top = larger(top, term(line, l, j));
  return top;
}
GRAPHRUN_FN Floats sum_of_exponentials(const float* line, const FeatureLines& l, Floats top) {
  return sum_along(l.term_count, [&](i64 j) { return exponential(term(line, l, j) - top); });
}

// log(sum(exp(x))) as two parts, top + rest: more precise than their sum.
struct LogSum {
  Floats top, rest;
};
GRAPHRUN_FN LogSum log_sum(const float* line, const FeatureLines& l) {
  const Floats top = largest(line, l);
  return {top, scalar::log(sum_of_exponentials(line, l, top))};
}

void log_sum_exp(float* out, const float* x, const FeatureLines& l) {
  for_lines(x, l, [&](const float* line, i64 i, i64 r) {
    const LogSum sum = log_sum(line, l);
    const Mask finite = (sum.top < infinity()) & (sum.top > -infinity());
    store(out + i * l.stride + r, select(finite, sum.top + sum.rest, sum.top));
  });
}

void softmax(float* out, const float* x, const FeatureLines& l) {
  for_lines(x, l, [&](const float* line, i64, i64) {
    float* const to = out + (line - x);
    const Floats top = largest(line, l);
    const Floats total = sum_along(l.term_count, [&](i64 j) {
      const Floats e = exponential(term(line, l, j) - top);
      store(to + l.terms[j] * l.stride, e);
      return e;
    });
    for (i64 j = 0; j < l.term_count; ++j) {
      float* const p = to + l.terms[j] * l.stride;
      store(p, load(p) / total);
    }
  });
}

void log_softmax(float* out, const float* x, const FeatureLines& l) {
  for_lines(x, l, [&](const float* line, i64, i64) {
    float* const to = out + (line - x);
    const LogSum sum = log_sum(line, l);
    for (i64 j = 0; j < l.term_count; ++j) store(to + l.terms[j] * l.stride, (term(line, l, j) - sum.top) - sum.rest);
  });
}

void cross_entropy(float* out, const float* x, const float* targets, const FeatureLines& l) {
  for_lines(x, l, [&](const float* line, i64 i, i64 r) {
    const LogSum sum = log_sum(line, l);
    const float* const t = targets + (line - x);
    const Floats loss = sum_along(l.term_count, [&](i64 j) {
      const Floats target = term(t, l, j);
      return select(target != Floats(0.0f), target * (sum.rest - (term(line, l, j) - sum.top)), Floats(0.0f));
    });
    store(out + i * l.stride + r, loss);
  });
}

GRAPHRUN_FN Mask equal(Ints x, int y) {
  return !nonzero(x ^ Ints(y));
}
GRAPHRUN_FN Ints load_ints(const std::int32_t* p) {
  Ints r;
  for_each_part([&](auto i) __attribute__((always_inline)) {
    __builtin_memcpy(&r.part[i], p + i * GRAPHRUN_LANES, sizeof(IntPart));
  });
  return r;
}

void cross_entropy_classes(float* out, const float* x, const std::int32_t* classes, const FeatureLines& l) {
  for_lines(x, l, [&](const float* line, i64 i, i64 r) {
    const LogSum sum = log_sum(line, l);
    const Ints target = load_ints(classes + i * l.stride + r);
    Floats loss = __builtin_nanf("");
    for (i64 j = 0; j < l.term_count; ++j)
      loss = select(equal(target, (int)j), sum.rest - (term(line, l, j) - sum.top), loss);
    store(out + i * l.stride + r, loss);
  });
}

// Index of the first largest (smallest), or of the first NaN.
template <bool kLargest>
void position(std::int32_t* out, const float* x, const FeatureLines& l) {
  for_lines(x, l, [&](const float* line, i64 i, i64 r) {
    Floats best = term(line, l, 0);
    Floats index = from_bits(Ints(0));
    for (i64 j = 1; j < l.term_count; ++j) {
      const Floats v = term(line, l, j);
      const Mask better = (best == best) & ((v != v) | (kLargest ? v > best : v < best));
      best = select(better, v, best);
      index = select(better, from_bits(Ints((int)j)), index);
    }
    float bits_of[kLanes];
    store(bits_of, index);
    __builtin_memcpy(out + i * l.stride + r, bits_of, sizeof bits_of);
  });
}

void one_hot(float* out, const std::int32_t* x, i64 features, i64 classes, i64 stride) {
  for (i64 f = 0; f < features; ++f, x += stride)
    for (i64 c = 0; c < classes; ++c, out += stride)
      for (i64 r = 0; r < stride; r += kLanes)
        store(out + r, select(equal(load_ints(x + r), (int)c), Floats(1.0f), Floats(0.0f)));
}

}  // namespace

extern const TileTable tile_table;
const TileTable tile_table = {
    load_tile,       store_tile,  dense,   dense_gradient, wide_gradient, sum_rows_of_tile,      add_lanes_to,
    sum_features,    log_sum_exp, softmax, log_softmax,    cross_entropy, cross_entropy_classes, position<true>,
    position<false>, one_hot};

}  // namespace graphrun::cpu::GRAPHRUN_ISA
