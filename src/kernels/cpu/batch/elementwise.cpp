#include <type_traits>

#include "graphrun/op.h"
#include "graphrun/params/scalar.h"
#include "kernels/cpu/batch/families.h"
#include "kernels/cpu/simd/scalar_loops.h"
#include "kernels/scalar_ops.h"

namespace graphrun::cpu {
namespace {

void run_unary(const KernelArgs& args, UnaryFn loop) {
  const auto* scalars = args.params.get_if<ScalarParams>();
  const float a = scalars != nullptr ? static_cast<float>(scalars->a) : 0.0f;
  const float b = scalars != nullptr ? static_cast<float>(scalars->b) : 0.0f;
  if (args.in_strides[0] != nullptr) {
    const Slabs s = slabs_of(args);
    for_each_slab(args, s, [&](std::int64_t out, const SlabOffsets& at, std::int64_t rows, std::int64_t columns) {
      for (std::int64_t r = 0; r < rows; ++r)
        loop(args.output<float>() + out + r * columns, args.input<float>(0) + at[0] + r * s.row(0), columns, a, b);
    });
    return clear_invalid_rows(args);
  }
  const std::int64_t n = valid_elements(args, args.out_type);
  for_ranges(args, parts_for(n), n, kGrain, [&](std::int64_t first, std::int64_t last) {
    loop(args.output<float>() + first, args.input<float>(0) + first, last - first, a, b);
  });
  clear_invalid_rows(args);
}

template <class T>
Strided<T> operand(const KernelArgs& args, const Slabs& s, const SlabOffsets& at, int i) {
  return {args.input<T>(i) + at[i], s.row(i), s.columns.stride[i]};
}

template <class Out>
void run_binary(const KernelArgs& args, BinaryFn<Out> loop) {
  const Slabs s = slabs_of(args);
  for_each_slab(args, s, [&](std::int64_t out, const SlabOffsets& at, std::int64_t rows, std::int64_t columns) {
    loop(args.output<Out>() + out, rows, columns, operand<float>(args, s, at, 0), operand<float>(args, s, at, 1));
  });
  clear_invalid_rows(args);
}

// Booleans and integers, of which no model computes much: one plain loop for every instruction set. T is how they lie
// in memory, Value what is computed with.
template <class T>
using Value = std::conditional_t<std::is_same_v<T, std::uint8_t>, bool, T>;

template <class Functor, class T, int inputs>
void plain_kernel(const KernelArgs& args) {
  const Slabs s = slabs_of(args);
  for_each_slab(args, s, [&](std::int64_t out_offset, const SlabOffsets& at, std::int64_t rows, std::int64_t columns) {
    std::uint8_t* out = args.output<std::uint8_t>() + out_offset;
    const Strided<T> x = operand<T>(args, s, at, 0);
    const Strided<T> y = operand<T>(args, s, at, inputs - 1);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c)
        *out++ = static_cast<std::uint8_t>(Functor::apply(static_cast<Value<T>>(x.data[r * x.row + c * x.column]),
                                                          static_cast<Value<T>>(y.data[r * y.row + c * y.column])));
  });
  clear_invalid_rows(args);
}

template <class T>
void plain_where(const KernelArgs& args) {
  const Slabs s = slabs_of(args);
  for_each_slab(args, s, [&](std::int64_t out_offset, const SlabOffsets& at, std::int64_t rows, std::int64_t columns) {
    T* out = args.output<T>() + out_offset;
    const Strided<std::uint8_t> m = operand<std::uint8_t>(args, s, at, 0);
    const Strided<T> x = operand<T>(args, s, at, 1);
    const Strided<T> y = operand<T>(args, s, at, 2);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c)
        *out++ =
            m.data[r * m.row + c * m.column] != 0 ? x.data[r * x.row + c * x.column] : y.data[r * y.row + c * y.column];
  });
  clear_invalid_rows(args);
}

template <Isa isa>
void where_kernel(const KernelArgs& args) {
  if (args.out_type.dtype == DType::i32) return plain_where<std::int32_t>(args);
  if (args.out_type.dtype == DType::u64) return plain_where<std::uint64_t>(args);
  if (args.out_type.dtype == DType::boolean) return plain_where<std::uint8_t>(args);
  const Slabs s = slabs_of(args);
  for_each_slab(args, s, [&](std::int64_t out, const SlabOffsets& at, std::int64_t rows, std::int64_t columns) {
    table_of<isa>().where(args.output<float>() + out, rows, columns, operand<std::uint8_t>(args, s, at, 0),
                          operand<float>(args, s, at, 1), operand<float>(args, s, at, 2));
  });
  clear_invalid_rows(args);
}

template <Isa isa, Op op>
void unary_kernel(const KernelArgs& args) {
  run_unary(args, unary_loop(table_of<isa>(), op));
}
template <Isa isa, Op op>
void binary_kernel(const KernelArgs& args) {
  run_binary<float>(args, binary_loop(table_of<isa>(), op));
}
template <Isa isa, Op op, class Functor>
void compare_kernel(const KernelArgs& args) {
  const DType dtype = args.in_type[0].dtype;
  if (dtype == DType::i32) return plain_kernel<Functor, std::int32_t, 2>(args);
  if (dtype == DType::u64) return plain_kernel<Functor, std::uint64_t, 2>(args);
  if (dtype == DType::boolean) return plain_kernel<Functor, std::uint8_t, 2>(args);
  run_binary<std::uint8_t>(args, compare_loop(table_of<isa>(), op));
}

}  // namespace

KernelFn elementwise_kernel(Op op, Isa isa) {
  switch (op) {
#define GRAPHRUN_UNARY_CASE(name, ...) \
  case Op::name:                       \
    return for_isa(isa, []<Isa i>() -> KernelFn { return unary_kernel<i, Op::name>; });
#define GRAPHRUN_BINARY_CASE(name, ...) \
  case Op::name:                        \
    return for_isa(isa, []<Isa i>() -> KernelFn { return binary_kernel<i, Op::name>; });
#define GRAPHRUN_COMPARE_CASE(name, Functor, ...) \
  case Op::name:                                  \
    return for_isa(isa, []<Isa i>() -> KernelFn { return compare_kernel<i, Op::name, scalar::Functor>; });
    GRAPHRUN_UNARY_OPS(GRAPHRUN_UNARY_CASE)
    GRAPHRUN_BINARY_OPS(GRAPHRUN_BINARY_CASE)
    GRAPHRUN_COMPARE_OPS(GRAPHRUN_COMPARE_CASE)
#undef GRAPHRUN_UNARY_CASE
#undef GRAPHRUN_BINARY_CASE
#undef GRAPHRUN_COMPARE_CASE
    case Op::logical_and:
      return plain_kernel<scalar::LogicalAnd, std::uint8_t, 2>;
    case Op::logical_or:
      return plain_kernel<scalar::LogicalOr, std::uint8_t, 2>;
    case Op::logical_not:
      return plain_kernel<scalar::LogicalNot, std::uint8_t, 1>;
    case Op::where:
      return for_isa(isa, []<Isa i>() -> KernelFn { return where_kernel<i>; });
    default:
      return nullptr;
  }
}

}  // namespace graphrun::cpu
