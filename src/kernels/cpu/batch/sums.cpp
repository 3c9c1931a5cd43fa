#include <algorithm>

#include "graphrun/op.h"
#include "graphrun/params/axes.h"
#include "kernels/cpu/batch/reduced_axes.h"

namespace graphrun::cpu {
namespace {

// One sum in the order of isa.h, for axes that do not merge: `at(j)` is element j.
template <class At>
float sum_of(std::int64_t n, At&& at) {
  float total = 0;
  for (std::int64_t begin = 0; begin < n; begin += kSumChunk) {
    float sum[kLanes] = {};
    const std::int64_t end = std::min<std::int64_t>(begin + kSumChunk, n);
    for (std::int64_t j = begin; j < end; ++j) sum[(j - begin) % kLanes] += at(j);
    for (int apart = kLanes / 2; apart > 0; apart /= 2)
      for (int i = 0; i < apart; ++i) sum[i] += sum[i + apart];
    total += sum[0];
  }
  return total;
}

void sum_chunks(const KernelArgs& args, const LineAxes& axes, const IsaTable& table) {
  const std::int64_t last = axes.last;
  for_chunks(args, axes, parts_for(axes.outputs * axes.terms),
             [&](float* sum, const float* from, std::int64_t n, std::int64_t) {
               if (axes.form == LineAxes::rows)
                 table.sum_rows(sum, from, 1, n);
               else
                 table.sum_columns(sum, from, n, last, last);
             });
  const float* chunk = static_cast<const float*>(args.workspace);
  float* out = args.output<float>();
  for (std::int64_t g = 0; g < axes.outputs / last; ++g, out += last) {
    std::fill_n(out, last, 0.0f);
    for (std::int64_t c = 0; c < axes.chunks(); ++c, chunk += last)
      for (std::int64_t j = 0; j < last; ++j) out[j] += chunk[j];
  }
}

void sum_outputs(const KernelArgs& args, const LineAxes& axes, const IsaTable& table) {
  const float* x = args.input<float>(0);
  float* out = args.output<float>();
  const std::int64_t terms = axes.terms;
  const int parts = parts_for(axes.outputs * terms);
  if (axes.form == LineAxes::rows) {
    for_ranges(args.pool, parts, axes.outputs, 1, [&](std::int64_t first, std::int64_t end) {
      table.sum_rows(out + first, x + first * terms, end - first, terms);
    });
  } else if (axes.form == LineAxes::columns) {
    const std::int64_t last = axes.last;
    const std::int64_t groups = axes.outputs / last;
    const std::int64_t cuts = std::max<std::int64_t>((parts + groups - 1) / groups, 1);
    const std::int64_t width = ((last + cuts - 1) / cuts + kGrain - 1) / kGrain * kGrain;
    const std::int64_t blocks = (last + width - 1) / width;
    for_ranges(args.pool, parts, groups * blocks, 1, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t item = first; item < end; ++item) {
        const std::int64_t group = item / blocks;
        const std::int64_t column = item % blocks * width;
        table.sum_columns(out + group * last + column, x + group * terms * last + column, terms,
                          std::min(width, last - column), last);
      }
    });
  } else {
    const Split<1> split = split_axes(args, args.in_type[0], args.params.as<ReduceParams>().axes);
    for_ranges(args.pool, parts, axes.outputs, 1, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t i = first; i < end; ++i) {
        const float* p = x + split.kept.offset(i);
        out[i] = sum_of(terms, [&](std::int64_t j) { return p[split.reduced.offset(j)]; });
      }
    });
  }
}

void sum(const KernelArgs& args, const IsaTable& table) {
  const TensorType& in = args.in_type[0];
  const LineAxes axes(in, args.params.as<ReduceParams>().axes, args.rows_of(in));
  if (axes.outputs > 0) {
    if (axes.terms == 0)
      std::fill_n(args.output<float>(), axes.outputs, 0.0f);
    else if (args.workspace != nullptr)
      sum_chunks(args, axes, table);
    else
      sum_outputs(args, axes, table);
  }
}

constexpr Entry kSumsKernels[] = {entry<sum>(Op::sum)};

}  // namespace

std::span<const Entry> sum_kernels() {
  return kSumsKernels;
}

std::uint64_t line_workspace(const ReduceParams& params, const TensorType& in) {
  const LineAxes axes(in, params.axes, in.shape.rank() == 0 ? 1 : in.shape[0]);
  return axes.wants_chunks() ? static_cast<std::uint64_t>(axes.outputs * axes.chunks()) * sizeof(float) : 0;
}

}  // namespace graphrun::cpu
