// axis_ops.cpp: ops along axes other than sum and softmax: extrema, products, positions; elements in order.
#include <limits>

#include "graphrun/op.h"
#include "graphrun/params/axes.h"
#include "kernels/cpu/batch/reduced_axes.h"

namespace graphrun::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// See larger().
float smaller(float x, float y) {
  const float least = y < x ? y : x;
  return y != y ? y : least;
}

template <class F>
void for_lines(const KernelArgs& args, std::uint32_t mask, F&& f) {
  const Split<1> split = split_axes(args, args.in_type[0], mask);
  const std::int64_t lines = split.kept.count;
  const std::int64_t size = split.reduced.count;
  const int parts = parts_for(lines * (4 * size + 64));  // several passes, plus setup
  for_ranges(args.pool, parts, lines, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t base = split.kept.offset(i);
      f(i, base, Line{args.input<float>(0) + base, &split.reduced, size});
    }
  });
}

template <float (*combine)(float, float)>
float fold(const Line& line, float start) {
  for (std::int64_t j = 0; j < line.size; ++j) start = combine(start, line[j]);
  return start;
}
float product(float x, float y) {
  return x * y;
}

template <float (*combine)(float, float)>
void reduce(const KernelArgs& args, float start) {
  float* out = args.output<float>();
  for_lines(args, args.params.as<ReduceParams>().axes,
            [&](std::int64_t i, std::int64_t, const Line& line) { out[i] = fold<combine>(line, start); });
}
void max(const KernelArgs& args, const IsaTable&) {
  reduce<larger>(args, -kInfinity);
}
void min(const KernelArgs& args, const IsaTable&) {
  reduce<smaller>(args, kInfinity);
}
void prod(const KernelArgs& args, const IsaTable&) {
  reduce<product>(args, 1.0f);
}

template <bool kLargest>
void position(const KernelArgs& args, const IsaTable&) {
  auto* out = args.output<std::int32_t>();
  for_lines(args, 1u << args.params.as<AxisParams>().axis, [&](std::int64_t i, std::int64_t, const Line& line) {
    std::int64_t best = 0;
    for (std::int64_t j = 1; j < line.size; ++j) {
      const float x = line[j];
      const float y = line[best];
      if (y == y && (x != x || (kLargest ? x > y : x < y))) best = j;
    }
    out[i] = static_cast<std::int32_t>(best);
  });
}

constexpr Entry kAxisOpsKernels[] = {entry<max>(Op::max), entry<min>(Op::min), entry<prod>(Op::prod),
                                     entry<position<true>>(Op::argmax), entry<position<false>>(Op::argmin)};

}  // namespace

std::span<const Entry> line_kernels() {
  return kAxisOpsKernels;
}

}  // namespace graphrun::cpu
