// softmax.cpp: softmax and related ops, from the exponentials of a line minus its maximum, which keeps them finite.
// isa.h defines the order of sums: lines of up to kShortLine terms in order, longer ones by the rule of sums. A line
// with a non-finite maximum gives NaN, or that maximum where it is the exact result.
#include <cmath>
#include <limits>

#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params/axes.h"
#include "graphrun/scalar_op.h"
#include "kernels/cpu/batch/reduced_axes.h"
#include "kernels/cpu/simd/scalar_loops.h"

namespace graphrun::cpu {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

float log_sum_of(float top, float log_sum) {
  return std::fabs(top) < kInf ? top + log_sum : top;
}

// ---- short lines: many at once ------------------------------------------------------------------------------------

// Per line: its maximum, the sum of its exponentials or the logarithm of that sum, and the exponentials.
struct Exponentials {
  float top, sum;
  const float* values;
};

// Calls f(i, base, line, exponentials) for every line. Computes the exponentials of several lines per call, which does
// not affect the results of a line.
enum class Sum { itself, logarithm };
template <Sum kSum, class F>
void for_short_lines(const KernelArgs& args, std::uint32_t mask, const IsaTable& table, F&& f) {
  constexpr std::int64_t kBlock = 256;
  const Split<1> split = split_axes(args, args.in_type[0], mask);
  const std::int64_t lines = split.kept.count;
  const std::int64_t size = split.reduced.count;
  const std::int64_t together = kBlock / std::max<std::int64_t>(size, 1);
  const auto line_at = [&](std::int64_t base) { return Line{args.input<float>(0) + base, &split.reduced, size}; };
  const int parts = parts_for(lines * (4 * size + 16));  // several passes, plus setup
  for_ranges(args.pool, parts, lines, 1, [&](std::int64_t first, std::int64_t last) {
    float block[kBlock], top[kBlock], sum[kBlock];
    for (std::int64_t begin = first; begin < last; begin += together) {
      const std::int64_t count = std::min(together, last - begin);
      for (std::int64_t l = 0; l < count; ++l) {
        const Line line = line_at(split.kept.offset(begin + l));
        top[l] = -kInf;
        for (std::int64_t j = 0; j < size; ++j) top[l] = larger(top[l], line[j]);
        for (std::int64_t j = 0; j < size; ++j) block[l * size + j] = line[j] - top[l];
      }
      apply(table, scalar_op::exp, block, count * size, {{block, 0, 1}});
      for (std::int64_t l = 0; l < count; ++l) {
        sum[l] = 0;
        for (std::int64_t j = 0; j < size; ++j) sum[l] += block[l * size + j];
      }
      if (kSum == Sum::logarithm) apply(table, scalar_op::log, sum, count, {{sum, 0, 1}});
      for (std::int64_t l = 0; l < count; ++l) {
        const std::int64_t base = split.kept.offset(begin + l);
        f(begin + l, base, line_at(base), Exponentials{top[l], sum[l], block + l * size});
      }
    }
  });
}

// ---- long lines ---------------------------------------------------------------------------------------------------

LineAxes axes_of(const KernelArgs& args, std::uint32_t mask) {
  const TensorType& in = args.in_type[0];
  return {in, mask, args.rows_of(in)};
}

int parts_of(const LineAxes& axes) {
  return parts_for(axes.outputs * axes.terms * 4);
}

// Adjacent lines, up to kGrain of them, with `stride` floats between consecutive elements of a line.
struct Strip {
  std::int64_t line, offset, width, stride;  // index of the first line, and its offset
};

// Calls rows(line, offset) or strips(strip) for all lines, depending on their layout.
template <class Rows, class Strips>
void for_long_lines(const KernelArgs& args, const LineAxes& axes, Rows&& rows, Strips&& strips) {
  if (axes.form == LineAxes::rows) {
    for_ranges(args.pool, parts_of(axes), axes.outputs, 1, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t i = first; i < end; ++i) rows(i, i * axes.terms);
    });
    return;
  }
  const std::int64_t blocks = (axes.last + kGrain - 1) / kGrain;
  for_ranges(args.pool, parts_of(axes), axes.outputs / axes.last * blocks, 1,
             [&](std::int64_t first, std::int64_t end) {
               for (std::int64_t item = first; item < end; ++item) {
                 const std::int64_t group = item / blocks;
                 const std::int64_t column = item % blocks * kGrain;
                 strips(Strip{group * axes.last + column, group * axes.terms * axes.last + column,
                              std::min(kGrain, axes.last - column), axes.last});
               }
             });
}

// ---- the ops ------------------------------------------------------------------------------------------------------

void softmax(const KernelArgs& args, const IsaTable& table) {
  const std::uint32_t mask = 1u << args.params.as<AxisParams>().axis;
  const float* const x = args.input<float>(0);
  float* const out = args.output<float>();
  const LineAxes axes = axes_of(args, mask);
  const ElementFn divide = scalar_loop(table, Op::div);
  if (axes.terms <= kShortLine || axes.outputs == 0) {
    for_short_lines<Sum::itself>(args, mask, table,
                                 [&](std::int64_t, std::int64_t base, const Line& line, const Exponentials& e) {
                                   const std::int64_t stride = line.dims->rank > 0 ? line.dims->dim[0].stride[0] : 0;
                                   for (std::int64_t j = 0; j < line.size; ++j)
                                     out[base + j * stride] = e.values[j] / e.sum;
                                 });
  } else {
    for_long_lines(
        args, axes,
        [&](std::int64_t, std::int64_t at) {
          const float sum = table.sum_exp(out + at, x + at, axes.terms, table.largest(x + at, axes.terms));
          apply(divide, out + at, axes.terms, {{out + at, 0, 1}, {&sum, 0, 0}});
        },
        [&](const Strip& s) {
          float sum[kGrain];
          table.largest_columns(sum, x + s.offset, axes.terms, s.width, s.stride);
          table.sum_exp_columns(sum, out + s.offset, x + s.offset, sum, axes.terms, s.width, s.stride);
          float* to = out + s.offset;
          for (std::int64_t j = 0; j < axes.terms; ++j, to += s.stride)
            apply(divide, to, s.width, {{to, 0, 1}, {sum, 0, 1}});
        });
  }
}

void log_softmax(const KernelArgs& args, const IsaTable& table) {
  const std::uint32_t mask = 1u << args.params.as<AxisParams>().axis;
  const float* const x = args.input<float>(0);
  float* const out = args.output<float>();
  const LineAxes axes = axes_of(args, mask);
  const ElementFn subtract = scalar_loop(table, Op::sub);
  if (axes.terms <= kShortLine || axes.outputs == 0) {
    for_short_lines<Sum::logarithm>(args, mask, table,
                                    [&](std::int64_t, std::int64_t base, const Line& line, const Exponentials& e) {
                                      const std::int64_t stride = line.dims->rank > 0 ? line.dims->dim[0].stride[0] : 0;
                                      for (std::int64_t j = 0; j < line.size; ++j)
                                        out[base + j * stride] = (line[j] - e.top) - e.sum;
                                    });
  } else {
    for_long_lines(
        args, axes,
        [&](std::int64_t, std::int64_t at) {
          const float top = table.largest(x + at, axes.terms);
          float sum = table.sum_exp(nullptr, x + at, axes.terms, top);
          apply(table, scalar_op::log, &sum, 1, {{&sum, 0, 1}});
          apply(subtract, out + at, axes.terms, {{x + at, 0, 1}, {&top, 0, 0}});
          apply(subtract, out + at, axes.terms, {{out + at, 0, 1}, {&sum, 0, 0}});
        },
        [&](const Strip& s) {
          float top[kGrain], sum[kGrain];
          table.largest_columns(top, x + s.offset, axes.terms, s.width, s.stride);
          table.sum_exp_columns(sum, nullptr, x + s.offset, top, axes.terms, s.width, s.stride);
          apply(table, scalar_op::log, sum, s.width, {{sum, 0, 1}});
          std::int64_t at = s.offset;
          for (std::int64_t j = 0; j < axes.terms; ++j, at += s.stride) {
            apply(subtract, out + at, s.width, {{x + at, 0, 1}, {top, 0, 1}});
            apply(subtract, out + at, s.width, {{out + at, 0, 1}, {sum, 0, 1}});
          }
        });
  }
}

// A class with target 0 adds nothing; an invalid class index gives NaN.
void softmax_cross_entropy(const KernelArgs& args, const IsaTable& table) {
  const std::uint32_t mask = 1u << (args.in_type[0].shape.rank() - 1);
  const bool classes = args.in_type[1].dtype == DType::i32;
  float* const out = args.output<float>();
  const LineAxes axes = axes_of(args, mask);
  const auto loss_of_class = [&](std::int64_t i, const float* line, float top, float log_sum) {
    const std::int32_t target = args.input<std::int32_t>(1)[i];
    const bool known = target >= 0 && target < axes.terms;
    return known ? log_sum - (line[target] - top) : std::numeric_limits<float>::quiet_NaN();
  };
  if (axes.terms <= kShortLine || axes.outputs == 0) {
    for_short_lines<Sum::logarithm>(args, mask, table,
                                    [&](std::int64_t i, std::int64_t base, const Line& line, const Exponentials& e) {
                                      if (classes) {
                                        out[i] = loss_of_class(i, line.first, e.top, e.sum);
                                        return;
                                      }
                                      const float* t = args.input<float>(1) + base;
                                      float loss = 0;
                                      for (std::int64_t j = 0; j < line.size; ++j) {
                                        const float term = t[j] * (e.sum - (line[j] - e.top));
                                        loss += t[j] != 0 ? term : 0.0f;
                                      }
                                      out[i] = loss;
                                    });
  } else {
    for_ranges(args.pool, parts_of(axes), axes.outputs, 1, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t i = first; i < end; ++i) {
        const float* const line = args.input<float>(0) + i * axes.terms;
        const float top = table.largest(line, axes.terms);
        float sum = table.sum_exp(nullptr, line, axes.terms, top);
        apply(table, scalar_op::log, &sum, 1, {{&sum, 0, 1}});
        out[i] = classes ? loss_of_class(i, line, top, sum)
                         : table.loss_of_targets(args.input<float>(1) + i * axes.terms, line, axes.terms, top, sum);
      }
    });
  }
}

// Splits lines into chunks, for few long lines.
void log_sums_by_chunks(const KernelArgs& args, const LineAxes& axes, const IsaTable& table) {
  float* const partial = static_cast<float*>(args.workspace);  // (outputs / last, chunks, last)
  float* const out = args.output<float>();
  const std::int64_t chunks = axes.chunks(), last = axes.last, groups = axes.outputs / last;
  const bool rows = axes.form == LineAxes::rows;
  for_chunks(args, axes, parts_of(axes), [&](float* top, const float* from, std::int64_t n, std::int64_t) {
    if (rows)
      *top = table.largest(from, n);
    else
      table.largest_columns(top, from, n, last, last);
  });
  const float* chunk = partial;
  for (std::int64_t g = 0; g < groups; ++g) {
    std::fill_n(out + g * last, last, -kInf);
    for (std::int64_t c = 0; c < chunks; ++c, chunk += last)
      for (std::int64_t j = 0; j < last; ++j) out[g * last + j] = larger(out[g * last + j], chunk[j]);
  }
  for_chunks(args, axes, parts_of(axes), [&](float* sum, const float* from, std::int64_t n, std::int64_t group) {
    if (rows)
      *sum = table.sum_exp(nullptr, from, n, out[group]);
    else
      table.sum_exp_columns(sum, nullptr, from, out + group * last, n, last, last);
  });
  for (std::int64_t g = 0; g < groups; ++g) {
    float* const total = partial + g * chunks * last;
    for (std::int64_t c = 1; c < chunks; ++c)
      for (std::int64_t j = 0; j < last; ++j) total[j] += total[c * last + j];
    apply(table, scalar_op::log, total, last, {{total, 0, 1}});
    for (std::int64_t j = 0; j < last; ++j) out[g * last + j] = log_sum_of(out[g * last + j], total[j]);
  }
}

// Gathers lines of any other layout, a chunk at a time.
void log_sums_by_index(const KernelArgs& args, const LineAxes& axes, std::uint32_t mask, const IsaTable& table) {
  const Split<1> split = split_axes(args, args.in_type[0], mask);
  float* const out = args.output<float>();
  for_ranges(args.pool, parts_of(axes), axes.outputs, 1, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t i = first; i < end; ++i) {
      const Line line{args.input<float>(0) + split.kept.offset(i), &split.reduced, axes.terms};
      const auto in_chunks = [&](auto&& f) {
        float chunk[kSumChunk];
        for (std::int64_t begin = 0; begin < line.size; begin += kSumChunk) {
          const std::int64_t n = std::min<std::int64_t>(kSumChunk, line.size - begin);
          for (std::int64_t j = 0; j < n; ++j) chunk[j] = line[begin + j];
          f(chunk, n);
        }
      };
      float top = -kInf, sum = 0;
      in_chunks([&](const float* chunk, std::int64_t n) { top = larger(top, table.largest(chunk, n)); });
      in_chunks([&](const float* chunk, std::int64_t n) { sum += table.sum_exp(nullptr, chunk, n, top); });
      apply(table, scalar_op::log, &sum, 1, {{&sum, 0, 1}});
      out[i] = log_sum_of(top, sum);
    }
  });
}

// log(sum(exp(x))) is top + log_sum, kept apart for precision.
void logsumexp(const KernelArgs& args, const IsaTable& table) {
  const std::uint32_t mask = args.params.as<ReduceParams>().axes;
  const float* const x = args.input<float>(0);
  float* const out = args.output<float>();
  const LineAxes axes = axes_of(args, mask);
  if (axes.terms <= kShortLine || axes.outputs == 0) {
    for_short_lines<Sum::logarithm>(
        args, mask, table,
        [&](std::int64_t i, std::int64_t, const Line&, const Exponentials& e) { out[i] = log_sum_of(e.top, e.sum); });
  } else if (axes.form == LineAxes::other) {
    log_sums_by_index(args, axes, mask, table);
  } else if (args.workspace != nullptr) {
    log_sums_by_chunks(args, axes, table);
  } else {
    for_long_lines(
        args, axes,
        [&](std::int64_t line, std::int64_t at) {
          const float top = table.largest(x + at, axes.terms);
          float sum = table.sum_exp(nullptr, x + at, axes.terms, top);
          apply(table, scalar_op::log, &sum, 1, {{&sum, 0, 1}});
          out[line] = log_sum_of(top, sum);
        },
        [&](const Strip& s) {
          float top[kGrain], sum[kGrain];
          table.largest_columns(top, x + s.offset, axes.terms, s.width, s.stride);
          table.sum_exp_columns(sum, nullptr, x + s.offset, top, axes.terms, s.width, s.stride);
          apply(table, scalar_op::log, sum, s.width, {{sum, 0, 1}});
          for (std::int64_t j = 0; j < s.width; ++j) out[s.line + j] = log_sum_of(top[j], sum[j]);
        });
  }
}

constexpr Entry kSoftmaxKernels[] = {entry<logsumexp>(Op::logsumexp), entry<softmax>(family_op::softmax),
                                     entry<log_softmax>(family_op::log_softmax),
                                     entry<softmax_cross_entropy>(family_op::softmax_cross_entropy)};

}  // namespace

std::span<const Entry> softmax_kernels() {
  return kSoftmaxKernels;
}

}  // namespace graphrun::cpu
