// movement.cpp: batches, counters, states, and random samples; base/random_bits.h defines their bits.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/random_bits.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "kernels/cpu/batch/families.h"

namespace graphrun::cpu {
namespace {

void minibatch(const KernelArgs& args) {
  const MinibatchParams params = batch_params(args, 2);
  const Batch batch = batch_of(params, counter(args, 1));
  const std::size_t row = args.out_type.bytes() / static_cast<std::size_t>(params.capacity);
  const std::size_t bytes = static_cast<std::size_t>(batch.count) * row;
  if (params.shuffle) {
    const int parts = parts_for(batch.count * (64 + static_cast<std::int64_t>(row / sizeof(float))));
    for_ranges(args.pool, parts, batch.count, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t r = first; r < last; ++r)
        std::memcpy(args.output<std::byte>() + static_cast<std::size_t>(r) * row,
                    args.input<std::byte>(0) + static_cast<std::size_t>(shuffled(params, batch, r)) * row, row);
    });
  } else {
    const std::byte* from = args.input<std::byte>(0) + static_cast<std::size_t>(batch.first) * row;
    const auto size = static_cast<std::int64_t>(bytes);
    for_ranges(args.pool, parts_for(size / 4), size, kGrain * 4, [&](std::int64_t first, std::int64_t last) {
      std::memcpy(args.output<std::byte>() + first, from + first, static_cast<std::size_t>(last - first));
    });
  }
  std::memset(args.output<std::byte>() + bytes, 0, args.out_type.bytes() - bytes);
}

void row_count(const KernelArgs& args) {
  *args.output<std::int32_t>() = static_cast<std::int32_t>(batch_of(batch_params(args, 1), counter(args, 0)).count);
}

void increment(const KernelArgs& args) {
  *args.output<std::uint64_t>() = counter(args, 0) + 1;
}

void record(const KernelArgs& args) {
  const auto length = static_cast<std::uint64_t>(args.out_type.shape[0]);
  if (length != 0) args.output<float>()[counter(args, 2) % length] = *args.input<float>(1);
}

void assign(const KernelArgs& args) {
  if (args.out != args.in[1]) std::memcpy(args.out, args.in[1], args.out_type.bytes());
}

template <Op op>
void draw(const KernelArgs& args, const IsaTable& table) {
  RandomDraw all{.step = counter(args, args.inputs - 1), .out = args.output<float>()};
  const float* const x = op == Op::dropout ? args.input<float>(0) : nullptr;
  const std::int64_t n = args.valid_elements(args.out_type);
  for_ranges(args.pool, parts_for(8 * n), n, kGrain, [&](std::int64_t first, std::int64_t last) {
    RandomDraw part = all;
    part.out += first;
    part.x = x == nullptr ? x : x + first;
    part.first = first;
    part.rows = last - first;
    fill_random(table, op, args.params.as<RandomParams>(), part);
  });
}

void permutation(const KernelArgs& args, const IsaTable&) {
  const auto& p = args.params.as<RandomParams>();
  const std::uint64_t step = counter(args, 0);
  const auto n = static_cast<std::uint64_t>(args.out_type.shape[0]);
  for (std::uint64_t i = 0; i < n; ++i) {
    args.output<std::int32_t>()[i] = static_cast<std::int32_t>(bits::permuted(i, n, p.key, step));
  }
}

constexpr Entry unwrapped(Op op, KernelFn kernel) {  // handles all rows of the batch itself
  return {op, {kernel, kernel, kernel}};
}
constexpr Entry kMovementKernels[] = {
    unwrapped(Op::minibatch, minibatch),
    unwrapped(Op::row_count, row_count),
    unwrapped(family_op::varying_minibatch, minibatch),
    unwrapped(family_op::varying_row_count, row_count),
    unwrapped(Op::increment, increment),
    unwrapped(Op::record, record),
    unwrapped(Op::assign, assign),
    entry<draw<family_op::random_uniform>>(family_op::random_uniform),
    entry<draw<family_op::random_normal>>(family_op::random_normal),
    entry<draw<Op::dropout>>(Op::dropout),
    entry<permutation>(family_op::permutation),
};

}  // namespace

std::int64_t shuffled(const MinibatchParams& p, const Batch& batch, std::int64_t r) {
  return static_cast<std::int64_t>(bits::permuted(static_cast<std::uint64_t>(batch.first + r),
                                                  static_cast<std::uint64_t>(p.total), p.key, batch.epoch));
}

void fill_random(const IsaTable& table, Op op, const RandomParams& params, RandomDraw draw) {
  draw.key = params.key;
  if (op == Op::dropout) {
    draw.what = RandomDraw::dropout;
    draw.dropped = static_cast<std::int32_t>(std::ceil(params.a * 0x1p24));  // unit(word) < rate
    draw.kept = static_cast<float>(1 - params.a);
    if (params.a == 0) {  // keeps every element
      const std::int64_t elements = draw.stride > 0 ? draw.width * draw.stride : draw.rows;
      if (draw.out != draw.x) std::copy_n(draw.x, elements, draw.out);
      return;
    }
  } else if (op == family_op::random_uniform && params.a == 0 && params.b == 1) {
    draw.what = RandomDraw::units;
  }
  table.draw(draw);
  if (draw.what != RandomDraw::words) return;
  const auto number = op == family_op::random_normal ? bits::normal : bits::uniform;
  for (std::int64_t f = 0; f < draw.width; ++f) {
    float* const line = draw.out + f * draw.stride;
    for (std::int64_t i = 0; i < draw.rows; ++i)
      line[i] = number(std::bit_cast<bits::u32>(line[i]), params.a, params.b);
  }
}

constinit const std::span<const Entry> movement_kernels = kMovementKernels;

}  // namespace graphrun::cpu
