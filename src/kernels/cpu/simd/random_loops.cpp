// random_loops.cpp: vectorized random words of base/random_bits.h, for whole batches and tiles: written once, compiled
// once per instruction set. Contract: RandomDraw in isa.h; otherwise as loops.cpp. Leaves to others: values that need
// more than a word and a float (batch/movement.cpp).
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/simd/lanes.h"
#include "kernels/scalar_functions.h"

namespace graphrun::cpu::GRAPHRUN_ISA {
namespace {

typedef std::uint64_t LongPart __attribute__((vector_size(4 * GRAPHRUN_LANES)));
typedef std::uint32_t WordPart __attribute__((vector_size(4 * GRAPHRUN_LANES)));

GRAPHRUN_FN LongPart product(LongPart x, std::uint64_t y) {  // multiplies the low halves
#if GRAPHRUN_LANES == 16
  return (LongPart)_mm512_maskz_mul_epu32((__mmask8)-1, (__m512i)x, _mm512_set1_epi64((long long)y));
#elif GRAPHRUN_LANES == 8
  return (LongPart)_mm256_mul_epu32((__m256i)x, _mm256_set1_epi64x((long long)y));
#else
  return (x & 0xffffffffu) * y;
#endif
}
GRAPHRUN_FN WordPart joined(LongPart even, LongPart odd) {
  return (WordPart)((even & 0xffffffffu) | (odd << 32));
}
template <int... kLane>
GRAPHRUN_FN LongPart even_lanes(std::integer_sequence<int, kLane...>) {
  return LongPart{2 * kLane...};
}

struct Words {
  LongPart key0[10], key1[10], step;

  Words(std::uint64_t key, std::uint64_t number) {
    for (std::uint32_t i = 0; i < 10; ++i) {
      key0[i] = LongPart{} + (std::uint32_t)((std::uint32_t)key + i * 0x9E3779B9u);
      key1[i] = LongPart{} + (std::uint32_t)((std::uint32_t)(key >> 32) + i * 0xBB67AE85u);
    }
    step = LongPart{} + number;
  }
  // Philox4x32-10: the four words of each lane's block, for even and odd lanes. Only the low half of each 64 bits
  // counts, so that nothing has to be cleared.
  GRAPHRUN_FN void of_blocks(WordPart* to, LongPart even, LongPart odd) const {
    LongPart w[2][4] = {{even, even >> 32, step, step >> 32}, {odd, odd >> 32, step, step >> 32}};
    unrolled<20>([&](auto i) __attribute__((always_inline)) {
      LongPart(&v)[4] = w[i % 2];
      const LongPart a = product(v[0], 0xD2511F53u), b = product(v[2], 0xCD9E8D57u);
      v[0] = (b >> 32) ^ v[1] ^ key0[i / 2];
      v[1] = b;
      v[2] = (a >> 32) ^ v[3] ^ key1[i / 2];
      v[3] = a;
    });
    unrolled<4>([&](auto j) __attribute__((always_inline)) { to[j] = joined(w[0][j], w[1][j]); });
  }
};

// x / d.by, correctly rounded. A vector division takes longer than the rest of a dropout; two fma corrections of x * (1
// / by) give the same bits (Markstein 1990) if all intermediates are normal numbers.
struct Divisor {
  Floats by, inverse;
  explicit Divisor(float x) : by(x), inverse(1 / x) {}
};
GRAPHRUN_FN Floats quotient(Floats x, const Divisor& d) {
#if GRAPHRUN_LANES > 4
  using namespace scalar;
  const Floats size = abs(x);
  const Mask normal = (size >= 0x1p-100f) & (size <= 0x1p100f);
  if (!any(!(normal | (x == 0.0f)))) {
    Floats y = x * d.inverse;
    y = fma(fma(-y, d.by, x), d.inverse, y);
    y = fma(fma(-y, d.by, x), d.inverse, y);
    return copysign(y, x);  // x may be -0
  }
#endif
  return x / d.by;
}

GRAPHRUN_FN void put(const RandomDraw& d, i64 at, i64 n, WordPart word) {
  const IntPart high = (IntPart)(word >> 8);
  FloatPart y = (FloatPart)word;
  if (d.what == RandomDraw::units) y = __builtin_convertvector(high, FloatPart) * 0x1p-24f;
  if (d.what == RandomDraw::dropout) {
    const IntPart kept = high >= d.dropped;
    y = kept ? load_part(d.x + at, n) / d.kept : FloatPart{};
    if (d.mask != nullptr) {
      const BytePart bytes = __builtin_convertvector(kept, BytePart);
      __builtin_memcpy(d.mask + at, &bytes, sizeof bytes);
    }
  }
  store_part(d.out + at, y, n);
}

void drop_masked(const RandomDraw& d) {
  const Divisor share(d.kept);
  for (i64 at = 0; at < d.width * d.stride; at += kLanes) {
    const Floats y = quotient(load(d.x + at), share);
    store(d.out + at, select(load_mask(d.mask + at), y, Floats(0)));
  }
}

}  // namespace

void draw(const RandomDraw& given) {
  const RandomDraw d = given;  // local copy: no store can alias it
  constexpr i64 kSide = GRAPHRUN_LANES;
  if (d.mask_known) return drop_masked(d);
  const Words words(d.key, d.step);
  const LongPart lanes = even_lanes(std::make_integer_sequence<int, GRAPHRUN_LANES / 2>{});
  if (d.stride == 0) {  // each lane has kSide elements
    for (i64 i = 0; i < d.rows; i += kSide * kSide) {
      const LongPart even = ((std::uint64_t)(d.first + i) + lanes * kSide) / 4, odd = even + kSide / 4;
      WordPart w[kSide];
      for (std::uint64_t k = 0; k < kSide / 4; ++k) words.of_blocks(w + 4 * k, even + k, odd + k);
      FloatPart v[kSide];
      __builtin_memcpy(v, w, sizeof v);
      transpose(v);
      for (i64 l = 0, at = i; l < kSide && at < d.rows; ++l, at += kSide) put(d, at, d.rows - at, (WordPart)v[l]);
    }
    return;
  }
  // Each lane has a row. It starts at word `phase` of a block: 0 for every row if the width is a multiple of 4.
  const std::uint64_t width = (std::uint64_t)d.width;
  const bool whole = width % 4 == 0;
  for (i64 r = 0; r < d.stride; r += kSide) {
    const LongPart even = ((std::uint64_t)(d.first + r) + lanes) * width, odd = even + width;
    const WordPart phase = joined(even & 3, odd & 3);
    WordPart w[8];
    words.of_blocks(w + 4, even >> 2, odd >> 2);
    for (std::uint64_t f = 0; f < width; f += 4) {
      unrolled<4>([&](auto j) __attribute__((always_inline)) { w[j] = w[4 + j]; });
      if (!whole || f + 4 < width) words.of_blocks(w + 4, (even >> 2) + f / 4 + 1, (odd >> 2) + f / 4 + 1);
      unrolled<4>([&](auto j) __attribute__((always_inline)) {
        const WordPart word = whole       ? w[j]
                              : phase < 2 ? (phase == 0 ? w[j] : w[j + 1])
                                          : (phase == 2 ? w[j + 2] : w[j + 3]);
        if (f + j < width) put(d, ((i64)f + j) * d.stride + r, kSide, word);
      });
    }
  }
}

// Numbers that have not arrived yet take one step of the cycle walk, all together, until none is left.
void permute(const Permutation& given) {
  const Permutation p = given;
  constexpr i64 kWalks = 64, kHalf = GRAPHRUN_LANES / 2;
  const std::uint64_t mask = (std::uint64_t{1} << p.half) - 1;
  const Words words(p.key, p.epoch);
  std::uint64_t x[kWalks] = {};
  i64 to[kWalks];
  for (i64 begin = 0; begin < p.rows; begin += kWalks) {
    i64 walks = p.rows - begin < kWalks ? p.rows - begin : kWalks;
    for (i64 i = 0; i < walks; ++i) {
      x[i] = (std::uint64_t)(p.first + begin + i);
      to[i] = begin + i;
    }
    while (walks > 0) {
      for (i64 i = 0; i < walks; i += GRAPHRUN_LANES) {
        LongPart left[2], right[2];
        unrolled<2>([&](auto h) __attribute__((always_inline)) {
          LongPart all;
          __builtin_memcpy(&all, x + i + h * kHalf, sizeof all);
          left[h] = all >> p.half;
          right[h] = all & mask;
        });
        for (std::uint64_t round = 0; round < 4; ++round) {
          WordPart w[4];
          words.of_blocks(w, right[0] | (round << 32), right[1] | (round << 32));
          const LongPart mixed[2] = {(LongPart)w[0] & mask, ((LongPart)w[0] >> 32) & mask};
          unrolled<2>([&](auto h) __attribute__((always_inline)) {
            const LongPart next = left[h] ^ mixed[h];
            left[h] = right[h];
            right[h] = next;
          });
        }
        unrolled<2>([&](auto h) __attribute__((always_inline)) {
          const LongPart all = (left[h] << p.half) | right[h];
          __builtin_memcpy(x + i + h * kHalf, &all, sizeof all);
        });
      }
      i64 on = 0;
      for (i64 i = 0; i < walks; ++i) {
        if (x[i] < p.total) {
          p.out[to[i]] = (i64)x[i];
          continue;
        }
        x[on] = x[i];
        to[on++] = to[i];
      }
      walks = on;
    }
  }
}

}  // namespace graphrun::cpu::GRAPHRUN_ISA
