#include "kernels/ref.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/scalar_ops.h"  // the tables; their functors are not used here

namespace graphrun {
namespace {

using i64 = std::int64_t;

// ---- elements as double -------------------------------------------------------------------------------------------

double load(const void* data, DType dtype, i64 i) {
  switch (dtype) {
    case DType::f32:
      return static_cast<const float*>(data)[i];
    case DType::f64:
      return static_cast<const double*>(data)[i];
    case DType::i32:
      return static_cast<const std::int32_t*>(data)[i];
    case DType::u64:
      return static_cast<double>(static_cast<const std::uint64_t*>(data)[i]);
    case DType::boolean:
      return static_cast<const std::uint8_t*>(data)[i];
  }
  return 0;
}

// NaN becomes integer 0; what is out of range becomes the nearest end of it.
template <class T>
T to_integer(double x) {
  if (std::isnan(x)) return 0;
  if (x <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (x >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(x);
}

void store(void* data, DType dtype, i64 i, double x) {
  switch (dtype) {
    case DType::f32:
      static_cast<float*>(data)[i] = static_cast<float>(x);
      break;
    case DType::f64:
      static_cast<double*>(data)[i] = x;
      break;
    case DType::i32:
      static_cast<std::int32_t*>(data)[i] = to_integer<std::int32_t>(x);
      break;
    case DType::u64:
      static_cast<std::uint64_t*>(data)[i] = to_integer<std::uint64_t>(x);
      break;
    case DType::boolean:
      static_cast<std::uint8_t*>(data)[i] = x != 0;
      break;
  }
}

double in(const KernelArgs& args, int input, i64 i) {
  return load(args.in[input], args.in_type[input].dtype, i);
}
void out(const KernelArgs& args, i64 i, double x) {
  store(args.out, args.out_type.dtype, i, x);
}

// ---- shapes and rows ----------------------------------------------------------------------------------------------

// The shape with only its valid rows.
Shape valid_shape(const KernelArgs& args, const TensorType& type) {
  Shape shape = type.shape;
  if (type.rows > 0) shape[0] = args.rows_of(type);
  return shape;
}

void clear_invalid_rows(const KernelArgs& args) {
  const i64 all = args.out_type.shape.elements();
  for (i64 i = valid_shape(args, args.out_type).elements(); i < all; ++i) out(args, i, 0);
}

// Where element `index` of the row-major space of `shape` lies in an operand that is broadcast to that shape.
i64 broadcast_index(const Shape& operand, const Shape& shape, i64 index) {
  i64 result = 0;
  i64 stride = 1;
  for (int d = shape.rank() - 1; d >= shape.rank() - operand.rank(); --d) {
    const i64 extent = operand[d - (shape.rank() - operand.rank())];
    if (extent != 1) result += index % shape[d] * stride;
    stride *= extent;
    index /= shape[d];
  }
  return result;
}

// out[i] = f(inputs at i), with broadcasting. An input of the output's own shape may be overwritten on the way.
template <class F>
void elementwise(const KernelArgs& args, F&& f) {
  const Shape shape = valid_shape(args, args.out_type);
  bool same[kMaxInputs];
  for (int k = 0; k < args.inputs; ++k) same[k] = args.in_type[k].shape == args.out_type.shape;
  const i64 n = shape.elements();
  for (i64 i = 0; i < n; ++i) {
    double x[kMaxInputs] = {};
    for (int k = 0; k < args.inputs; ++k)
      x[k] = in(args, k, same[k] ? i : broadcast_index(args.in_type[k].shape, shape, i));
    out(args, i, f(x[0], x[1], x[2]));
  }
  clear_invalid_rows(args);
}

// ---- scalar ops: generated from the reference column of the tables ------------------------------------------------

#define GRAPHRUN_REF_UNARY(name, Functor, reference)                                  \
  void name##_kernel(const KernelArgs& args) {                                        \
    const auto* scalars = std::get_if<ScalarParams>(&args.params);                    \
    [[maybe_unused]] const double a = scalars != nullptr ? scalars->a : 0;            \
    [[maybe_unused]] const double b = scalars != nullptr ? scalars->b : 0;            \
    elementwise(args, [&](double x, double, double) -> double { return reference; }); \
  }
#define GRAPHRUN_REF_BINARY(name, Functor, reference)                                                   \
  void name##_kernel(const KernelArgs& args) {                                                          \
    elementwise(args, [](double x, [[maybe_unused]] double y, double) -> double { return reference; }); \
  }
GRAPHRUN_UNARY_OPS(GRAPHRUN_REF_UNARY)
GRAPHRUN_BINARY_OPS(GRAPHRUN_REF_BINARY)
GRAPHRUN_COMPARE_OPS(GRAPHRUN_REF_BINARY)
GRAPHRUN_LOGICAL_OPS(GRAPHRUN_REF_BINARY)  // y of logical_not is 0

void where(const KernelArgs& args) {
  elementwise(args, [](double condition, double x, double y) { return condition != 0 ? x : y; });
}

// ---- structured ops -----------------------------------------------------------------------------------------------

void broadcast_to(const KernelArgs& args) {
  elementwise(args, [](double x, double, double) { return x; });
}

void cast(const KernelArgs& args) {
  if (args.in_type[0].dtype == args.out_type.dtype) {
    std::memcpy(args.out, args.in[0], args.out_type.bytes());  // 64-bit integers keep all their bits
  } else {
    elementwise(args, [](double x, double, double) { return x; });
  }
}

void matmul(const KernelArgs& args) {
  const auto [transpose_a, transpose_b] = std::get<MatmulParams>(args.params);
  const Shape a = valid_shape(args, args.in_type[0]);
  const Shape b = valid_shape(args, args.in_type[1]);
  const i64 a_width = a[1];
  const i64 b_width = b[1];
  const i64 m = transpose_a ? a[1] : a[0];
  const i64 n = transpose_b ? b[0] : b[1];
  const i64 k = std::min(transpose_a ? a[0] : a[1], transpose_b ? b[1] : b[0]);
  for (i64 i = 0; i < m; ++i) {
    for (i64 j = 0; j < n; ++j) {
      double sum = 0;
      for (i64 l = 0; l < k; ++l)
        sum += in(args, 0, transpose_a ? l * a_width + i : i * a_width + l) *
               in(args, 1, transpose_b ? j * b_width + l : l * b_width + j);
      out(args, i * args.out_type.shape[1] + j, sum);
    }
  }
  clear_invalid_rows(args);
}

void sum(const KernelArgs& args) {
  const std::uint32_t axes = std::get<ReduceParams>(args.params).axes;
  const Shape shape = valid_shape(args, args.in_type[0]);
  // Row-major spaces of the kept and of the reduced axes; the others have extent 1 in them.
  Shape kept = shape;
  Shape reduced = shape;
  for (int d = 0; d < shape.rank(); ++d) (axes >> d & 1u ? kept : reduced)[d] = 1;
  // Where element `index` of one of those spaces lies in the input.
  const auto offset = [&](const Shape& space, i64 index) {
    i64 result = 0;
    i64 stride = 1;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      result += index % space[d] * stride;
      index /= space[d];
      stride *= shape[d];
    }
    return result;
  };
  const i64 outputs = kept.elements();
  const i64 terms = reduced.elements();
  for (i64 i = 0; i < outputs; ++i) {
    const i64 base = offset(kept, i);
    double total = 0;
    for (i64 j = 0; j < terms; ++j) total += in(args, 0, base + offset(reduced, j));
    out(args, i, total);
  }
  clear_invalid_rows(args);
}

// ---- batches, counters, states ------------------------------------------------------------------------------------

std::uint64_t counter(const KernelArgs& args, int input) {
  return *args.input<std::uint64_t>(input);
}

i64 first_row(const MinibatchParams& p, std::uint64_t step) {
  return static_cast<i64>(step % static_cast<std::uint64_t>(p.batches())) * p.capacity;
}
i64 rows_from(const MinibatchParams& p, i64 first) {
  return std::min(p.capacity, p.total - first);
}

void minibatch(const KernelArgs& args) {
  const auto& params = std::get<MinibatchParams>(args.params);
  const i64 first = first_row(params, counter(args, 1));
  const auto row = args.out_type.bytes() / static_cast<std::size_t>(params.capacity);
  const auto used = static_cast<std::size_t>(rows_from(params, first)) * row;
  std::memcpy(args.out, args.input<std::byte>(0) + static_cast<std::size_t>(first) * row, used);
  std::memset(args.output<std::byte>() + used, 0, args.out_type.bytes() - used);
}

void row_count(const KernelArgs& args) {
  const auto& params = std::get<MinibatchParams>(args.params);
  out(args, 0, static_cast<double>(rows_from(params, first_row(params, counter(args, 0)))));
}

void increment(const KernelArgs& args) {
  *args.output<std::uint64_t>() = counter(args, 0) + 1;
}

void record(const KernelArgs& args) {
  const auto length = static_cast<std::uint64_t>(args.out_type.shape.elements());
  out(args, static_cast<i64>(counter(args, 2) % length), in(args, 1, 0));
}

void assign(const KernelArgs& args) {
  std::memmove(args.out, args.in[1], args.out_type.bytes());
}

struct Entry {
  std::string_view op;
  KernelFn kernel;
};
#define GRAPHRUN_REF_ENTRY(name, Functor, reference) {#name, name##_kernel},
constexpr Entry kKernels[] = {
    GRAPHRUN_UNARY_OPS(GRAPHRUN_REF_ENTRY) GRAPHRUN_BINARY_OPS(GRAPHRUN_REF_ENTRY)
        GRAPHRUN_COMPARE_OPS(GRAPHRUN_REF_ENTRY) GRAPHRUN_LOGICAL_OPS(GRAPHRUN_REF_ENTRY){"where", where},
    {"broadcast_to", broadcast_to},
    {"cast", cast},
    {"matmul", matmul},
    {"sum", sum},
    {"minibatch", minibatch},
    {"row_count", row_count},
    {"increment", increment},
    {"record", record},
    {"assign", assign},
};

}  // namespace

KernelFn ref_kernel(std::string_view op) {
  for (const Entry& entry : kKernels)
    if (entry.op == op) return entry.kernel;
  return nullptr;
}

}  // namespace graphrun
