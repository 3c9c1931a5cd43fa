// random.cpp: random samples; base/random_bits.h defines their bits.
#include <algorithm>
#include <bit>
#include <cmath>

#include "base/random_bits.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "kernels/cpu/batch/families.h"

namespace graphrun::cpu {
namespace {

template <Op op>
void draw(const KernelArgs& args, const IsaTable& table) {
  RandomDraw all{.step = *args.input<std::uint64_t>(args.inputs - 1), .out = args.output<float>()};
  const float* const x = op == Op::dropout ? args.input<float>(0) : nullptr;
  const std::int64_t n = valid_elements(args, args.out_type);
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
  const std::uint64_t step = *args.input<std::uint64_t>(0);
  const auto n = static_cast<std::uint64_t>(args.out_type.shape[0]);
  for (std::uint64_t i = 0; i < n; ++i) {
    args.output<std::int32_t>()[i] = static_cast<std::int32_t>(bits::permuted(i, n, p.key, step));
  }
}

constexpr Entry kRandomKernels[] = {entry<draw<family_op::random_uniform>>(family_op::random_uniform),
                                    entry<draw<family_op::random_normal>>(family_op::random_normal),
                                    entry<draw<Op::dropout>>(Op::dropout), entry<permutation>(family_op::permutation)};

}  // namespace

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

std::span<const Entry> random_kernels() {
  return kRandomKernels;
}

}  // namespace graphrun::cpu
