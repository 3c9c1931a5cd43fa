// ref_movement.cpp: reference kernels of ops that move elements, of batches, counters and states, and of random
// samples. base/random_bits.h, which every executor calls, defines the bits of samples.
#include <cstring>

#include "base/random_bits.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "kernels/ref_access.h"

namespace graphrun::ref {
namespace {

// Copies the element at each index of `from` to that index of `to`, with all bits.
void copy(const KernelArgs& args, int input, const View& from, const View& to) {
  const auto bytes = static_cast<i64>(size_of(args.out_type.dtype));
  for_elements(merged<2>({from, to}), [&](i64, const Offsets<2>& at) {
    std::memmove(args.output<std::byte>() + (to.offset + at[1]) * bytes,
                 args.input<std::byte>(input) + (from.offset + at[0]) * bytes, static_cast<std::size_t>(bytes));
  });
  args.clear_invalid_rows();
}

void broadcast_to(const KernelArgs& args) {
  const View to = args.output_view();
  copy(args, 0, broadcast(args.input_view(0), to.extents), to);
}

void cast(const KernelArgs& args) {
  if (args.in_type[0].dtype == args.out_type.dtype) return broadcast_to(args);
  elementwise(args, [](double x, double, double) { return x; });
}

void transpose(const KernelArgs& args) {
  copy(args, 0, permuted(args.input_view(0), args.params.as<PermuteParams>().axes), args.output_view());
}

void slice(const KernelArgs& args) {
  const auto& params = args.params.as<SliceParams>();
  const View to = args.output_view();
  copy(args, 0, sliced(args.input_view(0), params.axis, params.start, to.extents[params.axis]), to);
}

void pad(const KernelArgs& args) {
  const auto& params = args.params.as<PadParams>();
  const View from = args.input_view(0), to = args.output_view();
  for (i64 i = 0; i < to.extents.elements(); ++i) out(args, i, params.value);
  copy(args, 0, from, sliced(to, params.axis, params.before, from.extents[params.axis]));
}

void concat(const KernelArgs& args) {
  const int axis = args.params.as<AxisParams>().axis;
  i64 start = 0;
  for (int k = 0; k < args.inputs; ++k) {
    const View from = args.input_view(k);
    copy(args, k, from, sliced(args.output_view(), axis, start, from.extents[axis]));
    start += from.extents[axis];
  }
}

void windows(const KernelArgs& args) {
  copy(args, 0, windowed(args.input_view(0), args.params.as<WindowParams>()), args.output_view());
}

// Accumulates in double until all windows are added.
void fold(const KernelArgs& args) {
  double* const sums = static_cast<double*>(args.workspace);
  std::fill_n(sums, args.out_type.shape.elements(), 0.0);
  const View to = windowed(args.output_view(), args.params.as<WindowParams>());
  for_elements(merged<2>({to, args.input_view(0)}),
               [&](i64, const Offsets<2>& at) { sums[at[0]] += in(args, 0, at[1]); });
  for (i64 i = 0; i < args.out_type.shape.elements(); ++i) out(args, i, sums[i]);
  args.clear_invalid_rows();
}

// Calls f(index, i, j) for column j of the output and position i in the input of indices.
template <class F>
void for_indices(const KernelArgs& args, int input, i64 width, F&& f) {
  for_elements(merged<1>({args.input_view(input)}), [&](i64 i, const Offsets<1>& at) {
    for (i64 j = 0; j < width; ++j) f(static_cast<i64>(in(args, input, at[0])), i, j);
  });
  args.clear_invalid_rows();
}

void one_hot(const KernelArgs& args) {
  const i64 classes = args.out_type.shape[args.out_type.shape.rank() - 1];
  for_indices(args, 0, classes, [&](i64 index, i64 i, i64 j) { out(args, i * classes + j, index == j ? 1.0 : 0.0); });
}

void gather(const KernelArgs& args) {
  const View table = args.input_view(0);
  const i64 width = table.extents[1];
  for_indices(args, 1, width, [&](i64 row, i64 i, i64 j) {
    const bool known = row >= 0 && row < table.extents[0];
    out(args, i * width + j, known ? in(args, 0, row * table.strides[0] + j * table.strides[1]) : 0.0);
  });
}

// Accumulates in double until all terms are added.
void scatter_add(const KernelArgs& args) {
  const i64 rows = args.out_type.shape[0];
  const i64 width = args.out_type.shape[1];
  double* const sums = static_cast<double*>(args.workspace);
  std::fill_n(sums, rows * width, 0.0);
  const Dims<1> updates = merged<1>({args.input_view(1)});
  for_indices(args, 0, width, [&](i64 row, i64 i, i64 j) {
    if (row >= 0 && row < rows) sums[row * width + j] += in(args, 1, updates.offset(i * width + j));
  });
  for (i64 i = 0; i < rows * width; ++i) out(args, i, sums[i]);
}

// ---- batches, counters, states ------------------------------------------------------------------------------------

// Rows of the batch that a counter selects. One input more than `inputs` is the number of rows to use.
struct Batch {
  MinibatchParams params;
  MinibatchParams::Rows rows;

  Batch(const KernelArgs& args, std::uint64_t step, int inputs)
      : params(batch_params(args, inputs)), rows(params.at(step)) {}
};

void minibatch(const KernelArgs& args) {
  const auto [params, rows] = Batch(args, counter(args, 1), 2);
  const auto row = args.out_type.bytes() / static_cast<std::size_t>(params.rows());
  for (i64 r = 0; r < rows.count; ++r) {
    auto from = static_cast<std::size_t>(rows.first + r);
    if (params.shuffle) from = bits::permuted(from, static_cast<std::uint64_t>(params.total), params.key, rows.epoch);
    if (params.divisor > 0) {
      const auto width = static_cast<i64>(row / size_of(args.out_type.dtype));
      const auto* const codes = args.input<std::uint8_t>(0) + static_cast<i64>(from) * width;
      for (i64 i = 0; i < width; ++i) out(args, r * width + i, decoded(codes[i], params.divisor));
      continue;
    }
    std::memcpy(args.output<std::byte>() + static_cast<std::size_t>(r) * row, args.input<std::byte>(0) + from * row,
                row);
  }
  const std::size_t used = static_cast<std::size_t>(rows.count) * row;
  std::memset(args.output<std::byte>() + used, 0, args.out_type.bytes() - used);
}

void row_count(const KernelArgs& args) {
  out(args, 0, static_cast<double>(Batch(args, counter(args, 0), 1).rows.count));
}

void shard_step(const KernelArgs& args) {
  const auto shards = static_cast<std::uint64_t>(args.params.as<ShardParams>().shards);
  *args.output<std::uint64_t>() = counter(args, 0) * shards + counter(args, 1);
}

void combine_shards(const KernelArgs& args) {
  if (args.out != args.in[0]) std::memcpy(args.out, args.in[0], args.out_type.bytes());
}

void increment(const KernelArgs& args) {
  *args.output<std::uint64_t>() = counter(args, 0) + 1;
}

void divide_step(const KernelArgs& args) {
  *args.output<std::uint64_t>() = counter(args, 0) / static_cast<std::uint64_t>(args.params.as<ScalarParams>().a);
}

void record(const KernelArgs& args) {
  const auto length = static_cast<std::uint64_t>(args.out_type.shape.elements());
  out(args, static_cast<i64>(counter(args, 2) % length), in(args, 1, 0));
}

void assign(const KernelArgs& args) {
  if (args.out != args.in[1]) std::memcpy(args.out, args.in[1], args.out_type.bytes());
}

// ---- random samples -----------------------------------------------------------------------------------------------

// Sets each valid element i of out to value(word of i, i).
template <class F>
void draw(const KernelArgs& args, F&& value) {
  const auto& params = args.params.as<RandomParams>();
  const std::uint64_t step = counter(args, args.inputs - 1);
  const i64 n = args.valid_elements(args.out_type);
  for (i64 i = 0; i < n; ++i) out(args, i, value(bits::word(params.key, step, static_cast<std::uint64_t>(i)), i));
  args.clear_invalid_rows();
}

template <auto number>
void numbers(const KernelArgs& args) {
  const auto& p = args.params.as<RandomParams>();
  draw(args, [&](bits::u32 word, i64) { return static_cast<double>(number(word, p.a, p.b)); });
}

void dropout(const KernelArgs& args) {
  const double rate = args.params.as<RandomParams>().a;
  const Dims<1> x = merged<1>({args.input_view(0)});
  draw(args,
       [&](bits::u32 word, i64 i) { return bits::unit(word) < rate ? 0.0 : in(args, 0, x.offset(i)) / (1 - rate); });
}

void permutation(const KernelArgs& args) {
  const auto& p = args.params.as<RandomParams>();
  const std::uint64_t step = counter(args, 0);
  const i64 n = args.out_type.shape.elements();
  for (i64 i = 0; i < n; ++i) {
    const auto to = bits::permuted(static_cast<bits::u64>(i), static_cast<bits::u64>(n), p.key, step);
    args.output<std::int32_t>()[i] = static_cast<std::int32_t>(to);
  }
}

constexpr Entry kMovements[] = {
    {Op::broadcast_to, broadcast_to},
    {Op::cast, cast},
    {Op::transpose, transpose},
    {Op::slice, slice},
    {Op::pad, pad},
    {Op::concat, concat},
    {family_op::windows, windows},
    {family_op::fold, fold},
    {family_op::one_hot, one_hot},
    {family_op::gather, gather},
    {Op::scatter_add, scatter_add},
    {Op::minibatch, minibatch},
    {Op::row_count, row_count},
    {family_op::varying_minibatch, minibatch},
    {family_op::varying_row_count, row_count},
    {Op::increment, increment},
    {family_op::divide_step, divide_step},
    {Op::shard_step, shard_step},
    {Op::combine_shards, combine_shards},
    {Op::record, record},
    {Op::assign, assign},
    {family_op::random_uniform, numbers<bits::uniform>},
    {family_op::random_normal, numbers<bits::normal>},
    {Op::dropout, dropout},
    {family_op::permutation, permutation},
};

}  // namespace

std::span<const Entry> movement() {
  return kMovements;
}

}  // namespace graphrun::ref
