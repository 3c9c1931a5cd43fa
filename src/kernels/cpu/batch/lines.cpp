// lines.cpp: reductions, positions, softmax and related ops along axes: which elements form a line, and parts of the
// work. The loops of isa.h do the rest and define the order of sums. If reduced and kept axes alternate, a line is
// copied a chunk at a time. Few long sums are cut into chunks.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/scalar_op.h"
#include "kernels/cpu/batch/families.h"

namespace graphrun::cpu {
namespace {

using i64 = std::int64_t;

// NaN propagates; among equals the first wins. Branches only on NaN: which number is larger is unpredictable.
template <class Real>
Real larger(Real x, Real y) {
  const Real most = y > x ? y : x;
  return y != y ? y : most;
}
template <class Real>
Real smaller(Real x, Real y) {
  const Real least = y < x ? y : x;
  return y != y ? y : least;
}

// Elements of one line, by index.
template <class Real>
struct Line {
  const Real* first;
  const Dims<1>* dims;
  i64 size;

  Real operator[](i64 j) const { return first[dims->offset(j)]; }
};

// The form of a reduction: which of its axes are reduced, without those of extent 1.
struct LineAxes {
  enum Form { rows, columns, other };  // reduced axes: the last ones; adjacent ones before `last` elements; any others
  i64 outputs = 1, terms = 1, last = 1;
  Form form = rows;

  LineAxes(const TensorType& in, std::uint32_t axes, i64 first_extent) {
    bool reduced = false, kept_outside = false;  // whether axis d is outside of a reduced one, and of a kept one there
    for (int d = in.shape.rank() - 1; d >= 0; --d) {
      const i64 n = d == 0 ? first_extent : in.shape[d];
      const bool gone = (axes >> d & 1u) != 0;
      (gone ? terms : outputs) *= n;
      if (in.shape[d] == 1) continue;
      if (gone) {
        reduced = true;
        if (kept_outside) form = other;
      } else if (reduced) {
        kept_outside = true;
      } else {
        form = columns;
        last *= n;
      }
    }
  }

  // Chunks of kSumChunk terms become parts if there are fewer outputs than threads could use. They are added in the
  // same order as without chunks, so results are those of isa.h either way.
  i64 chunks() const { return (terms + kSumChunk - 1) / kSumChunk; }
  bool wants_chunks() const {
    const i64 independent = form == rows ? outputs : (outputs + kGrain - 1) / kGrain;
    return form != other && chunks() > 1 && parts_for(outputs * terms) > independent;
  }
};

LineAxes axes_of(const KernelArgs& args) {
  const TensorType& in = args.in_type[0];
  return {in, line_axes(args.params, in), args.rows_of(in)};
}

// Runs the loop on all lines, in parts. Short rows are transposed to become lanes, except for sums, which are faster
// than that.
template <class Real>
void run_lines(const KernelArgs& args, const LineAxes& axes, const LineLoopOf<Real>& loop, int parts,
               const IsaTableOf<Real>& table) {
  const i64 terms = axes.terms, last = axes.last;
  const bool maps = args.out_type.shape == args.in_type[0].shape;  // else one number per line
  const bool classes = args.inputs > 1 && args.in_type[1].dtype == DType::i32;
  const Real *const x = args.input<Real>(0), *const other = args.input<Real>(args.inputs - 1);
  Real* const out = args.output<Real>();
  const auto lines_at = [=](i64 line, i64 at, i64 count) -> LinesOf<Real> {
    return {x + at,
            out + (maps ? at : line),
            classes ? reinterpret_cast<const Real*>(args.input<std::int32_t>(args.inputs - 1) + line) : other + at,
            count,
            terms,
            last};
  };
  if (axes.outputs == 0) return;
  if (axes.form == LineAxes::columns) {
    const i64 blocks = (last + kGrain - 1) / kGrain;
    for_ranges(args.pool, parts, axes.outputs / last * blocks, 1, [&](i64 first, i64 end) {
      for (i64 item = first; item < end; ++item) {
        const i64 group = item / blocks, column = item % blocks * kGrain;
        loop.across(lines_at(group * last + column, group * terms * last + column, std::min(kGrain, last - column)));
      }
    });
    return;
  }
  for_ranges(args.pool, parts, axes.outputs, 1, [&](i64 first, i64 end) {
    if (terms > kShortLine || end - first < 4 || &loop == &table.sum)
      return loop.along(lines_at(first, first * terms, end - first));
    Real block[kShortLine * kGrain], targets[kShortLine * kGrain];
    for (i64 i = first; i < end; i += kGrain) {
      const LinesOf<Real> rows = lines_at(i, i * terms, std::min(kGrain, end - i));
      LinesOf<Real> lanes = rows;
      lanes.stride = kGrain;
      lanes.x = block;
      table.transpose(block, kGrain, rows.x, terms, rows.count, terms);
      if (args.inputs > 1 && !classes) {
        lanes.other = targets;
        table.transpose(targets, kGrain, rows.other, terms, rows.count, terms);
      }
      if (maps) lanes.out = block;
      loop.across(lanes);
      if (maps) table.transpose(rows.out, terms, block, kGrain, terms, rows.count);
    }
  });
}

// ---- chunks of few long lines -------------------------------------------------------------------------------------

// Runs the loop on each chunk of kSumChunk terms, as a part of its own. Results go to the workspace: (groups, chunks,
// last). The output is the loop's other operand.
template <class Real>
void run_chunks(const KernelArgs& args, const LineAxes& axes, const LineLoopOf<Real>& loop, int parts) {
  const i64 chunks = axes.chunks(), last = axes.last;
  for_ranges(args.pool, parts, axes.outputs / last * chunks, 1, [&](i64 first, i64 end) {
    for (i64 item = first; item < end; ++item) {
      const i64 group = item / chunks, begin = item % chunks * kSumChunk;
      (axes.form == LineAxes::rows ? loop.along : loop.across)(
          {args.input<Real>(0) + (group * axes.terms + begin) * last, static_cast<Real*>(args.workspace) + item * last,
           args.output<Real>() + group * last, last, std::min<i64>(kSumChunk, axes.terms - begin), last});
    }
  });
}

// Calls finish(outputs, totals) for each group, after folding its chunks in order.
template <class Real, class Combine, class Finish>
void fold_chunks(const KernelArgs& args, const LineAxes& axes, Combine&& combine, Finish&& finish) {
  const i64 last = axes.last;
  for (i64 g = 0; g < axes.outputs / last; ++g) {
    Real* const total = static_cast<Real*>(args.workspace) + g * axes.chunks() * last;
    for (i64 c = 1; c < axes.chunks(); ++c)
      for (i64 j = 0; j < last; ++j) total[j] = combine(total[j], total[c * last + j]);
    finish(args.output<Real>() + g * last, total);
  }
}

// ---- lines in any layout ------------------------------------------------------------------------------------------

// Sets each output to f(line).
template <class Real, class F>
void for_any_lines(const KernelArgs& args, const LineAxes& axes, int parts, F&& f) {
  const AxisGroups<1> split({args.view_of(args.in_type[0])}, args.params.as<ReduceParams>().axes);
  for_ranges(args.pool, parts, axes.outputs, 1, [&](i64 first, i64 end) {
    for (i64 i = first; i < end; ++i)
      args.output<Real>()[i] = f(Line<Real>{args.input<Real>(0) + split.kept.offset(i), &split.reduced, axes.terms});
  });
}

// Calls f(result of the loop) for each copied chunk of a line.
template <class Real, class F>
void for_copies(const Line<Real>& line, void (*loop)(const LinesOf<Real>&), const Real* other, F&& f) {
  Real chunk[kSumChunk];
  for (i64 begin = 0; begin < line.size; begin += kSumChunk) {
    const i64 n = std::min<i64>(kSumChunk, line.size - begin);
    for (i64 j = 0; j < n; ++j) chunk[j] = line[begin + j];
    Real result = 0;
    loop({chunk, &result, other, 1, n, 1});
    f(result);
  }
}

// ---- the ops ------------------------------------------------------------------------------------------------------

template <class Real>
void sum(const KernelArgs& args, const IsaTableOf<Real>& table) {
  const LineAxes axes = axes_of(args);
  const int parts = parts_for(axes.outputs * axes.terms);
  if (axes.form == LineAxes::other) {
    for_any_lines<Real>(args, axes, parts, [&](const Line<Real>& line) {
      Real total = 0;
      for_copies<Real>(line, table.sum.along, nullptr, [&](Real x) { total += x; });
      return total;
    });
  } else if (args.workspace != nullptr && axes.terms > 0) {
    run_chunks(args, axes, table.sum, parts);
    fold_chunks<Real>(args, axes, std::plus<Real>(),
                      [&](Real* out, const Real* total) { std::copy_n(total, axes.last, out); });
  } else {
    run_lines(args, axes, table.sum, parts, table);
  }
}

int parts_of(const LineAxes& axes) {
  return parts_for(axes.outputs * (4 * axes.terms + 16));  // several passes, plus setup
}

// The output has a number, or the elements, of each line.
template <Op op>
void along_lines(const KernelArgs& args, const IsaTable& table) {
  const LineAxes axes = axes_of(args);
  for_type(args.in_type[0].dtype, table, [&]<class Real>(Real, const IsaTableOf<Real>& own) {
    run_lines<Real>(args, axes, *line_loop<Real>(own, op, args.in_type[args.inputs - 1].dtype), parts_of(axes), own);
  });
}

// Index of the first largest (smallest) term, or of the first NaN.
template <Op op>
void position(const KernelArgs& args, const IsaTable& table) {
  if (args.in_type[0].dtype != DType::f64) return along_lines<op>(args, table);
  const LineAxes axes = axes_of(args);
  for_ranges(args.pool, parts_of(axes), axes.outputs, 1, [&](i64 first, i64 end) {
    for (i64 line = first; line < end; ++line) {
      const double* const x = args.input<double>(0) + line / axes.last * axes.last * axes.terms + line % axes.last;
      i64 best = 0;
      for (i64 j = 1; j < axes.terms; ++j) {
        const double term = x[j * axes.last], top = x[best * axes.last];
        if (top == top && (term != term || (op == Op::argmax ? term > top : term < top))) best = j;
      }
      args.output<std::int32_t>()[line] = static_cast<std::int32_t>(best);
    }
  });
}

template <Op op, class Real>
Real combined(Real x, Real y) {
  return op == Op::max ? larger(x, y) : op == Op::min ? smaller(x, y) : x * y;
}
template <Op op, class Real>
void fold(const KernelArgs& args, const IsaTableOf<Real>& table) {
  const LineAxes axes = axes_of(args);
  const LineLoopOf<Real>& loop = *line_loop<Real>(table, op, args.in_type[0].dtype);
  if (axes.form != LineAxes::other) return run_lines<Real>(args, axes, loop, parts_of(axes), table);
  Real start = 0;
  loop.along({nullptr, &start, nullptr, 1, 0, 1});  // the result without terms
  for_any_lines<Real>(args, axes, parts_of(axes), [&](const Line<Real>& line) {
    Real x = start;
    for (i64 j = 0; j < line.size; ++j) x = combined<op>(x, line[j]);
    return x;
  });
}

// log(sum(exp(x))) from the maximum of x and the sum of exp(x - maximum).
template <class Real>
Real log_sum_exp(Real top, Real sum, const IsaTableOf<Real>& table) {
  apply(scalar_loop(table, scalar_op::log), &sum, 1, {{&sum, 0, 1}});
  return std::fabs(top) < std::numeric_limits<Real>::infinity() ? top + sum : top;
}

template <class Real>
void logsumexp(const KernelArgs& args, const IsaTableOf<Real>& table) {
  const LineAxes axes = axes_of(args);
  const int parts = parts_of(axes);
  const bool is_short = axes.terms <= kShortLine;
  if (axes.form == LineAxes::other) {
    for_any_lines<Real>(args, axes, parts, [&](const Line<Real>& line) {
      Real top = -std::numeric_limits<Real>::infinity(), sum = 0;
      if (is_short) {
        for_copies<Real>(line, table.logsumexp.along, nullptr, [&](Real x) { top = x; });
        return top;
      }
      for_copies<Real>(line, table.top.along, nullptr, [&](Real x) { top = larger(top, x); });
      for_copies<Real>(line, table.sum_exp.along, &top, [&](Real x) { sum += x; });
      return log_sum_exp(top, sum, table);
    });
  } else if (args.workspace != nullptr && !is_short) {
    run_chunks(args, axes, table.top, parts);
    fold_chunks<Real>(args, axes, larger<Real>, [&](Real* out, const Real* top) { std::copy_n(top, axes.last, out); });
    run_chunks(args, axes, table.sum_exp, parts);
    fold_chunks<Real>(args, axes, std::plus<Real>(), [&](Real* out, const Real* total) {
      for (i64 j = 0; j < axes.last; ++j) out[j] = log_sum_exp(out[j], total[j], table);
    });
  } else {
    run_lines(args, axes, table.logsumexp, parts, table);
  }
}

std::uint64_t chunk_bytes(const Params& params, std::span<const TensorType> inputs, const TensorType&) {
  const TensorType& in = inputs[0];
  const LineAxes axes(in, line_axes(params, in), in.shape.rank() == 0 ? 1 : in.shape[0]);
  return axes.wants_chunks() ? static_cast<std::uint64_t>(axes.outputs * axes.chunks()) * size_of(in.dtype) : 0;
}

constexpr Entry kLineKernels[] = {
    entry<for_floats<sum<float>, sum<double>>>(Op::sum, chunk_bytes),
    entry<for_floats<fold<Op::max, float>, fold<Op::max, double>>>(Op::max),
    entry<for_floats<fold<Op::min, float>, fold<Op::min, double>>>(Op::min),
    entry<for_floats<fold<Op::prod, float>, fold<Op::prod, double>>>(Op::prod),
    entry<position<Op::argmax>>(Op::argmax),
    entry<position<Op::argmin>>(Op::argmin),
    entry<for_floats<logsumexp<float>, logsumexp<double>>>(Op::logsumexp, chunk_bytes),
    entry<along_lines<family_op::softmax>>(family_op::softmax),
    entry<along_lines<family_op::log_softmax>>(family_op::log_softmax),
    entry<along_lines<family_op::softmax_cross_entropy>>(family_op::softmax_cross_entropy)};

}  // namespace

std::uint32_t line_axes(const Params& params, const TensorType& in) {
  if (const auto* reduce = params.get_if<ReduceParams>()) return reduce->axes;
  const auto* along = params.get_if<AxisParams>();
  return 1u << (along != nullptr ? along->axis : std::max(in.shape.rank(), 1) - 1);
}

template <class Real>
const LineLoopOf<Real>* line_loop(const IsaTableOf<Real>& table, Op op, DType last_input) {
  struct Row {
    Op op;
    LineLoopOf<Real> IsaTableOf<Real>::*loop;
  };
  static constexpr Row kLoops[] = {
      {Op::sum, &IsaTableOf<Real>::sum},
      {Op::max, &IsaTableOf<Real>::max},
      {Op::min, &IsaTableOf<Real>::min},
      {Op::prod, &IsaTableOf<Real>::prod},
      {Op::argmax, &IsaTableOf<Real>::argmax},
      {Op::argmin, &IsaTableOf<Real>::argmin},
      {Op::logsumexp, &IsaTableOf<Real>::logsumexp},
      {family_op::softmax, &IsaTableOf<Real>::softmax},
      {family_op::log_softmax, &IsaTableOf<Real>::log_softmax},
      {family_op::softmax_cross_entropy, &IsaTableOf<Real>::cross_entropy},
  };
  if (op == family_op::softmax_cross_entropy && last_input == DType::i32) return &table.class_entropy;
  const auto* const found =
      std::find_if(std::begin(kLoops), std::end(kLoops), [op](const Row& row) { return row.op == op; });
  return found == std::end(kLoops) ? nullptr : &(table.*found->loop);
}

template const LineLoop* line_loop(const IsaTable& table, Op op, DType last_input);
template const LineLoopOf<double>* line_loop(const IsaTableOf<double>& table, Op op, DType last_input);

constinit const std::span<const Entry> line_kernels = kLineKernels;

}  // namespace graphrun::cpu
