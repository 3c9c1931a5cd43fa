// elementwise_loops.cpp: the elementwise loops of isa.h, written once over simd.h, one for each row of
// scalar_op_list.h. Contract: as loops.cpp. Leaves to others: other loops and the table (loops.cpp), look-ups by op
// (batch/families.h).
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/simd/simd.h"
#include "kernels/scalar_ops.h"

namespace graphrun::cpu::GRAPHRUN_ISA {

#if defined(GRAPHRUN_WIDE)  // as those of simd.h; only these loops use them
GRAPHRUN_FN Floats erf(Floats x) {
  return scalar64::erf(x);
}
GRAPHRUN_FN Floats gelu(Floats x) {
  return scalar64::gelu(x);
}
GRAPHRUN_FN Floats pow(Floats x, Floats y) {
  return scalar64::pow(x, y);
}
#endif

namespace {

using i64 = std::int64_t;

template <class T>
GRAPHRUN_FN Strided<T> as(const Operand& x) {
  return {(const T*)x.data, x.row, x.column};
}

template <class Functor>
void unary(void* to, i64 rows, i64 columns, const Operand* in, double a, double b) {
  const Floats va = (Real)a;
  const Floats vb = (Real)b;
  Real* out = (Real*)to;
  Strided<Real> x = as<Real>(in[0]);
  for (; rows > 0; --rows, out += columns, x.data += x.row) {
    i64 i = 0;
    for (; i + kLanes <= columns; i += kLanes) store(out + i, Functor::apply(load(x.data + i), va, vb));
    const i64 n = columns - i;
    if (n > 0) store_first(out + i, Functor::apply(load_first(x.data + i, n), va, vb), n);
  }
}

// Address of a row's vectors of an operand. A scalar is broadcast to a vector that is then read repeatedly, so that the
// loops do not branch on their operands.
GRAPHRUN_FN const Real* vectors(const Real* p, i64 column, Real* spread) {
  if (column != 0) return p;
  store(spread, Floats(*p));
  return spread;
}
[[maybe_unused]] GRAPHRUN_FN const std::uint8_t* vectors(const std::uint8_t* p, i64 column, std::uint8_t* spread) {
  if (column != 0) return p;
  for (int i = 0; i < kLanes; ++i) spread[i] = *p;
  return spread;
}

// Loads fewer elements of a row than a vector has lanes.
GRAPHRUN_FN Floats short_row(const Strided<Real>& x, i64 n) {
  return x.column != 0 ? load_first(x.data, n) : Floats(*x.data);
}

template <class Functor, class Out>
void binary(void* to, i64 rows, i64 columns, const Operand* in, double, double) {
  Out* out = (Out*)to;
  Strided<Real> x = as<Real>(in[0]), y = as<Real>(in[1]);
  alignas(64) Real spread_x[kLanes];
  alignas(64) Real spread_y[kLanes];
  const i64 whole = columns / kLanes * kLanes;
  const i64 n = columns - whole;
  for (i64 r = 0; r < rows; ++r, out += columns, x.data += x.row, y.data += y.row) {
    Strided<Real> left_x = x, left_y = y;
    if (whole > 0) {
      const Real* px = vectors(x.data, x.column, spread_x);
      const Real* py = vectors(y.data, y.column, spread_y);
      for (i64 i = 0; i < whole; i += kLanes, px += kLanes * x.column, py += kLanes * y.column)
        store(out + i, Functor::apply(load(px), load(py)));
      left_x.data = px;
      left_y.data = py;
    }
    if (n > 0) store_first(out + whole, Functor::apply(short_row(left_x, n), short_row(left_y, n)), n);
  }
}

template <class Functor>
constexpr ElementFn loop_of() {
  return unary<Functor>;
}
template <class Functor, class Out>
constexpr ElementFn loop_of() {
  return binary<Functor, Out>;
}
#if defined(GRAPHRUN_WIDE)
struct WideSelu {  // scalar::Selu has constants of f32
  GRAPHRUN_FN static Floats apply(Floats x, Floats, Floats) {
    return select(x > 0.0, x * 0x1.0cfabd6a91132p+0, expm1(x) * 0x1.c212cc640f031p+0);
  }
};
template <>
constexpr ElementFn loop_of<scalar::Selu>() {
  return unary<WideSelu>;
}
template <>
constexpr ElementFn loop_of<scalar::Mod, Real>() {
  return nullptr;  // not in scalar_functions64.h
}
#endif

}  // namespace

#if !defined(GRAPHRUN_WIDE)
void where(void* to, i64 rows, i64 columns, const Operand* in, double, double) {
  Real* out = (Real*)to;
  Strided<std::uint8_t> m = as<std::uint8_t>(in[0]);
  Strided<Real> x = as<Real>(in[1]), y = as<Real>(in[2]);
  alignas(64) std::uint8_t spread_m[kLanes];
  alignas(64) Real spread_x[kLanes];
  alignas(64) Real spread_y[kLanes];
  for (i64 r = 0; r < rows; ++r, out += columns, m.data += m.row, x.data += x.row, y.data += y.row) {
    const std::uint8_t* pm = vectors(m.data, m.column, spread_m);
    const Real* px = vectors(x.data, x.column, spread_x);
    const Real* py = vectors(y.data, y.column, spread_y);
    i64 i = 0;
    for (; i + kLanes <= columns;
         i += kLanes, pm += kLanes * m.column, px += kLanes * x.column, py += kLanes * y.column)
      store(out + i, select(load_mask(pm), load(px), load(py)));
    const i64 n = columns - i;
    if (n > 0) store_first(out + i, select(load_mask_first(pm, n), load_first(px, n), load_first(py, n)), n);
  }
}
#endif

#define GRAPHRUN_UNARY_ENTRY(name, Functor, ...) loop_of<scalar::Functor>(),
#define GRAPHRUN_BINARY_ENTRY(name, Functor, ...) loop_of<scalar::Functor, Real>(),
#define GRAPHRUN_COMPARE_ENTRY(name, Functor, ...) loop_of<scalar::Functor, std::uint8_t>(),
#define GRAPHRUN_LOGICAL_ENTRY(name, ...) nullptr,
const ElementFn element_loops[] = {GRAPHRUN_BINARY_OPS(GRAPHRUN_BINARY_ENTRY) GRAPHRUN_UNARY_OPS(
    GRAPHRUN_UNARY_ENTRY) GRAPHRUN_COMPARE_OPS(GRAPHRUN_COMPARE_ENTRY) GRAPHRUN_LOGICAL_OPS(GRAPHRUN_LOGICAL_ENTRY)};
#undef GRAPHRUN_UNARY_ENTRY
#undef GRAPHRUN_BINARY_ENTRY
#undef GRAPHRUN_COMPARE_ENTRY
#undef GRAPHRUN_LOGICAL_ENTRY

}  // namespace graphrun::cpu::GRAPHRUN_ISA
