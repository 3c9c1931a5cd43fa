// elementwise.cpp: elementwise ops and casts over whole batches, and the look-up of their loops; tiles and chains of
// steps use the same.
#include <cmath>
#include <limits>
#include <type_traits>

#include "graphrun/elements.h"
#include "graphrun/params.h"
#include "graphrun/scalar_op.h"
#include "kernels/cpu/batch/families.h"
#include "kernels/scalar_ops.h"

namespace graphrun::cpu {
namespace {

template <class T>
Strided<T> as(const Operand& x) {
  return {static_cast<const T*>(x.data), x.row, x.column};
}

// Booleans, integers and casts are rare in models: one plain loop serves every instruction set.
template <class Out, class T, int inputs, class F>
void plain(void* to, std::int64_t rows, std::int64_t columns, const Operand* in, F&& f) {
  Out* out = static_cast<Out*>(to);
  Strided<T> x = as<T>(in[0]), y = as<T>(in[inputs - 1]);
  for (; rows > 0; --rows, out += columns, x.data += x.row, y.data += y.row) {
    if (x.column == 1 && y.column == 1) {
      for (std::int64_t c = 0; c < columns; ++c) out[c] = f(x.data[c], y.data[c]);
    } else {
      for (std::int64_t c = 0; c < columns; ++c) out[c] = f(x.data[c * x.column], y.data[c * y.column]);
    }
  }
}

template <class Functor, class T, int inputs>
void plain_loop(void* out, std::int64_t rows, std::int64_t columns, const Operand* in, double, double) {
  using Value = std::conditional_t<std::is_same_v<T, std::uint8_t>, bool, T>;
  plain<std::uint8_t, T, inputs>(out, rows, columns, in, [](T x, T y) {
    return static_cast<std::uint8_t>(Functor::apply(static_cast<Value>(x), static_cast<Value>(y)));
  });
}

template <class T>
void plain_where(void* to, std::int64_t rows, std::int64_t columns, const Operand* in, double, double) {
  T* out = static_cast<T*>(to);
  const Strided<std::uint8_t> m = as<std::uint8_t>(in[0]);
  const Strided<T> x = as<T>(in[1]), y = as<T>(in[2]);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      *out++ =
          m.data[r * m.row + c * m.column] != 0 ? x.data[r * x.row + c * x.column] : y.data[r * y.row + c * y.column];
}

// Clamps out-of-range values; NaN becomes 0: the same on every machine. Only booleans are bytes.
template <class Out, class In>
Out convert(In x) {
  if constexpr (std::is_same_v<Out, std::uint8_t>) {
    return x != 0;
  } else if constexpr (std::is_floating_point_v<Out> || std::is_same_v<Out, In>) {
    return static_cast<Out>(x);
  } else {
    const double v = static_cast<double>(x);
    if (!(v > static_cast<double>(std::numeric_limits<Out>::min()))) {
      return std::isnan(v) ? Out{0} : std::numeric_limits<Out>::min();
    }
    if (v >= static_cast<double>(std::numeric_limits<Out>::max())) return std::numeric_limits<Out>::max();
    return static_cast<Out>(x);
  }
}
template <class Out, class In>
void cast_loop(void* out, std::int64_t rows, std::int64_t columns, const Operand* in, double, double) {
  plain<Out, In, 1>(out, rows, columns, in, [](In x, In) { return convert<Out>(x); });
}

ElementFn find_loop(const IsaTable& table, Op op, DType in, DType out) {
  if (op == Op::cast) {
    return with_type(in, [&](auto x) {
      return with_type(out, [](auto y) -> ElementFn { return cast_loop<decltype(y), decltype(x)>; });
    });
  }
  if (op == Op::where) {
    if (out == DType::f32) return table.where;
    return with_type(out, [](auto x) -> ElementFn { return plain_where<decltype(x)>; });
  }
  if (in == DType::f32) return scalar_loop(table, op);
  if (in == DType::f64) return scalar_loop(*table.wide, op);
#define GRAPHRUN_COMPARE_LOOP(name, Functor, ...) \
  if (op == scalar_op::name)                      \
    return with_type(in, [](auto x) -> ElementFn { return plain_loop<scalar::Functor, decltype(x), 2>; });
  GRAPHRUN_COMPARE_OPS(GRAPHRUN_COMPARE_LOOP)
#undef GRAPHRUN_COMPARE_LOOP
  if (op == scalar_op::logical_not) return plain_loop<scalar::LogicalNot, std::uint8_t, 1>;
  if (op == scalar_op::logical_and) return plain_loop<scalar::LogicalAnd, std::uint8_t, 2>;
  if (op == scalar_op::logical_or) return plain_loop<scalar::LogicalOr, std::uint8_t, 2>;
  return nullptr;
}

// ---- over whole batches -------------------------------------------------------------------------------------------

// The output's valid elements as slabs of (rows, columns), each row a run of the innermost dimension; strides of the
// inputs, 0 where they are broadcast.
using SlabOffsets = Offsets<kElementInputs>;
struct Slabs {
  Dims<kElementInputs> rows;
  Dim<kElementInputs> columns;
  std::int64_t row(int input) const { return rows.rank > 0 ? rows.dim[rows.rank - 1].stride[input] : 0; }
};

Slabs slabs_of(const KernelArgs& args) {
  const Shape& out = args.out_type.shape;
  Slabs slabs;
  bool same = true;
  for (int i = 0; i < args.inputs; ++i) same = same && args.in_type[i].shape == out && args.in_strides[i] == nullptr;
  if (same) {  // fast path: most calls, and the smallest ones are sensitive to overhead
    slabs.columns = {args.valid_elements(args.out_type), {1, 1, 1}};
    return slabs;
  }
  const View to = args.output_view();
  View views[kElementInputs] = {to, to, to};
  for (int i = 0; i < args.inputs; ++i) views[i] = broadcast(args.input_view(i), to.extents);
  slabs.rows = merged(views);
  slabs.columns = slabs.rows.remove_last();
  return slabs;
}

// Calls slab(offset of the output, offsets of the inputs, rows, columns), all in elements, for pieces that cover the
// output: in parts of whole rows, or of columns if rows are few.
template <class F>
void for_each_slab(const KernelArgs& args, const Slabs& s, F&& slab) {
  const std::int64_t rows = s.rows.count, columns = s.columns.extent;
  if (rows == 0 || columns == 0) return;
  const int parts = parts_for(rows * columns);
  if (parts <= rows) {
    for_ranges(args.pool, parts, rows, 1, [&](std::int64_t first, std::int64_t last) {
      for_runs(s.rows, first, last,
               [&](std::int64_t row, const SlabOffsets& at, std::int64_t n) { slab(row * columns, at, n, columns); });
    });
    return;
  }
  const int cuts = static_cast<int>((parts + rows - 1) / rows);
  for_elements(s.rows, [&](std::int64_t row, const SlabOffsets& start) {
    for_ranges(args.pool, cuts, columns, kGrain, [&](std::int64_t first, std::int64_t last) {
      SlabOffsets at = start;
      at.move(s.columns.stride, first);
      slab(row * columns + first, at, std::int64_t{1}, last - first);
    });
  });
}

void run_elementwise(const KernelArgs& args, const ElementLoop& loop) {
  const Slabs s = slabs_of(args);
  const auto out_size = static_cast<std::int64_t>(size_of(args.out_type.dtype));
  std::int64_t sizes[kElementInputs] = {};
  for (int i = 0; i < args.inputs; ++i) sizes[i] = static_cast<std::int64_t>(size_of(args.in_type[i].dtype));
  for_each_slab(args, s, [&](std::int64_t out, const SlabOffsets& at, std::int64_t rows, std::int64_t columns) {
    Operand in[kElementInputs];
    for (int i = 0; i < args.inputs; ++i)
      in[i] = {args.input<std::byte>(i) + at[i] * sizes[i], s.row(i), s.columns.stride[i]};
    loop(args.output<std::byte>() + out * out_size, rows, columns, in);
  });
}

template <Op op>
void elementwise(const KernelArgs& args, const IsaTable& table) {
  run_elementwise(args, element_loop(table, op, args.params, args.in_type[0].dtype, args.out_type.dtype));
}

constexpr Entry kElementwiseKernels[] = {
#define GRAPHRUN_ENTRY(name, ...) entry<elementwise<scalar_op::name>>(scalar_op::name),
    GRAPHRUN_SCALAR_OPS(GRAPHRUN_ENTRY) entry<elementwise<Op::where>>(Op::where),
    entry<elementwise<Op::cast>>(Op::cast),
#undef GRAPHRUN_ENTRY
};

}  // namespace

ElementLoop element_loop(const IsaTable& table, Op op, const Params& params, DType first_input, DType output) {
  ElementLoop loop{find_loop(table, op, first_input, output)};
  if (const auto* scalars = params.get_if<ScalarParams>()) {
    loop.a = scalars->a;
    loop.b = scalars->b;
  }
  return loop;
}

constinit const std::span<const Entry> elementwise_kernels = kElementwiseKernels;

}  // namespace graphrun::cpu
