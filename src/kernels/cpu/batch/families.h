// families.h: the families of CPU kernels, and the loops and parts of ops that they share with tiles and executors.
// Contract: each family is a table of its kernels, compiled for the baseline machine; ISA-dependent loops are called
// through IsaTable. Leaves to others: the loops (loops.cpp), the list of families (dispatch.cpp).
#pragma once

#include <algorithm>
#include <initializer_list>
#include <span>

#include "base/random_bits.h"
#include "graphrun/op_traits.h"
#include "graphrun/params.h"
#include "graphrun/scalar_op.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/threads/parallel.h"
#include "kernels/dims.h"
#include "kernels/kernel.h"

namespace graphrun {
struct RandomParams;
}  // namespace graphrun

namespace graphrun::cpu {

const IsaTable& isa_table(Isa isa);
template <class Real>
const IsaTableOf<Real>& table_of(Isa isa) {
  if constexpr (sizeof(Real) == sizeof(double))
    return *isa_table(isa).wide;
  else
    return isa_table(isa);
}

// Loop for the type of the table; null if the op has none. Loops and scalar op numbers both follow the order of
// scalar_op_list.h.
template <class Real>
ElementFn scalar_loop(const IsaTableOf<Real>& table, Op op) {
  const int i = static_cast<int>(op) - static_cast<int>(Op::add);
  return i >= 0 && i < static_cast<int>(scalar_op::Place::end) ? table.elementwise[i] : nullptr;
}

// Writes out(n) from operands with n elements (column 1) or one (column 0).
inline void apply(ElementFn loop, void* out, std::int64_t n, std::initializer_list<Operand> in) {
  loop(out, 1, n, in.begin(), 0, 0);
}

inline constexpr int kElementInputs = 3;  // at most

// Loop of an elementwise op or a cast for given dtypes.
struct ElementLoop {
  ElementFn run = nullptr;  // null: not supported
  double a = 0, b = 0;
  void operator()(void* out, std::int64_t rows, std::int64_t columns, const Operand* in) const {
    run(out, rows, columns, in, a, b);
  }
};
ElementLoop element_loop(const IsaTable& table, Op op, const Params& params, DType first_input, DType output);

// Rows of the batch that the counter selects.
using Batch = MinibatchParams::Rows;
inline Batch batch_of(const MinibatchParams& p, std::uint64_t step) {
  return p.at(step);
}
// Calls f(row, its number in the data set) for rows [first, last) of a shuffled batch.
template <class F>
void for_shuffled(const IsaTable& table, const MinibatchParams& p, const Batch& batch, std::int64_t first,
                  std::int64_t last, F&& f) {
  std::int64_t numbers[64];
  Permutation some{.key = p.key, .epoch = batch.epoch, .total = static_cast<std::uint64_t>(p.total), .out = numbers};
  some.half = bits::half_bits(some.total);
  for (; first < last; first += some.rows) {
    some.first = batch.first + first;
    some.rows = std::min<std::int64_t>(last - first, 64);
    table.permute(some);
    for (std::int64_t i = 0; i < some.rows; ++i) f(first + i, numbers[i]);
  }
}

// Calls copy(input, its elements, their place in `out`) for each copy that broadcast_to, transpose, slice, windows,
// pad and concat consist of. Input -1 is the number of a pad.
template <class F, class Copy>
void for_each_copy(const Params& params, int inputs, F&& in, const View& out, Copy&& copy) {
  if (const auto* permute = params.get_if<PermuteParams>()) {
    copy(0, permuted(in(0), permute->axes), out);
  } else if (const auto* slice = params.get_if<SliceParams>()) {
    copy(0, sliced(in(0), slice->axis, slice->start, out.extents[slice->axis]), out);
  } else if (const auto* windows = params.get_if<WindowParams>()) {
    copy(0, windowed(in(0), *windows), out);
  } else if (const auto* pad = params.get_if<PadParams>()) {
    const View from = in(0);
    const std::int64_t extent = from.extents[pad->axis], end = pad->before + extent;
    copy(0, from, sliced(out, pad->axis, pad->before, extent));
    for (const View& edge :
         {sliced(out, pad->axis, 0, pad->before), sliced(out, pad->axis, end, out.extents[pad->axis] - end)})
      copy(-1, broadcast(View{}, edge.extents), edge);
  } else if (const auto* concat = params.get_if<AxisParams>()) {
    std::int64_t start = 0;
    for (int k = 0; k < inputs; ++k) {
      const View from = in(k);
      copy(k, from, sliced(out, concat->axis, start, from.extents[concat->axis]));
      start += from.extents[concat->axis];
    }
  } else {
    copy(0, broadcast(in(0), out.extents), out);
  }
}

// Fills the output of a random op, for batches and tiles. Sets the members of `draw` that depend on the op.
void fill_random(const IsaTable& table, Op op, const RandomParams& params, RandomDraw draw);

// The axes along which an op's lines run, as a mask.
std::uint32_t line_axes(const Params& params, const TensorType& in);
// Loop of an op along lines; null: another op.
template <class Real>
const LineLoopOf<Real>* line_loop(const IsaTableOf<Real>& table, Op op, DType last_input);

// Returns f(number of the type, table of the type) for f32 or f64.
template <class F>
auto for_type(DType dtype, const IsaTable& table, F&& f) {
  return dtype == DType::f64 ? f(double{}, *table.wide) : f(float{}, table);
}

// Bytes of scratch; see cpu_workspace().
using WorkspaceFn = std::uint64_t (*)(const Params& params, std::span<const TensorType> inputs,
                                      const TensorType& output);
struct Entry {
  Op op;
  KernelFn kernels[3];  // indexed by Isa
  WorkspaceFn workspace = nullptr;
};
// Wraps `kernel`, which leaves invalid rows of the output unwritten, to clear them.
template <void (*kernel)(const KernelArgs&, const IsaTable&), Isa isa>
void kernel_on(const KernelArgs& args) {
  kernel(args, isa_table(isa));
  args.clear_invalid_rows();
}
// Either kernel, by the type of the first input.
template <void (*narrow)(const KernelArgs&, const IsaTable&),
          void (*wide)(const KernelArgs&, const IsaTableOf<double>&)>
void for_floats(const KernelArgs& args, const IsaTable& table) {
  args.in_type[0].dtype == DType::f64 ? wide(args, *table.wide) : narrow(args, table);
}
template <void (*kernel)(const KernelArgs&, const IsaTable&)>
constexpr Entry entry(Op op, WorkspaceFn workspace = nullptr) {
  return {op, {kernel_on<kernel, Isa::plain>, kernel_on<kernel, Isa::avx2>, kernel_on<kernel, Isa::avx512>}, workspace};
}

extern const std::span<const Entry> elementwise_kernels;  // and cast
extern const std::span<const Entry> product_kernels;      // matmul
extern const std::span<const Entry> solve_kernels;        // solve_spd
extern const std::span<const Entry> line_kernels;         // sum … argmin, softmax and related ops
extern const std::span<const Entry> movement_kernels;     // broadcast_to … gather, batches, random samples
extern const std::span<const Entry> scatter_kernels;      // scatter_add

}  // namespace graphrun::cpu
