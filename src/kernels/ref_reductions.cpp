// ref_reductions.cpp: reference kernels of ops along axes.
#include <functional>

#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "kernels/ref_access.h"

namespace graphrun::ref {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// NaN propagates, as in NumPy.
double larger(double x, double y) {
  return x >= y || std::isnan(x) ? x : y;
}
double smaller(double x, double y) {
  return x <= y || std::isnan(x) ? x : y;
}

// Calls f(i, n, term) for each line of the input along the axes of the mask: term(j) is term j of n of line i.
template <class F>
void for_lines(const KernelArgs& args, std::uint32_t mask, F&& f) {
  const AxisGroups<1> axes({args.input_view(0)}, mask);
  for_elements(axes.kept, [&](i64 i, const Offsets<1>& base) {
    f(i, axes.reduced.count, [&](i64 j) { return in(args, 0, base[0] + axes.reduced.offset(j)); });
  });
  args.clear_invalid_rows();
}

// out = value(number of terms, term) for each line.
template <class F>
void reduce(const KernelArgs& args, F&& value) {
  for_lines(args, args.params.as<ReduceParams>().axes,
            [&](i64 line, i64 n, auto term) { out(args, line, value(n, term)); });
}

template <class Term, class Combine>
double fold(i64 terms, double start, Term&& term, Combine&& combine) {
  for (i64 j = 0; j < terms; ++j) start = combine(start, term(j));
  return start;
}

// log(sum(exp(x))) = top + rest, where top is the maximum. An infinite top makes rest NaN.
struct LogSum {
  double top, rest;
};
template <class Term>
LogSum log_sum_exp(i64 terms, Term&& term) {
  const double top = fold(terms, -kInfinity, term, larger);
  return {top, std::log(fold(terms, 0.0, term, [top](double sum, double x) { return sum + std::exp(x - top); }))};
}

// out = the terms of each line combined in order, from `start` on.
template <class Combine>
void reduce_by(const KernelArgs& args, double start, Combine&& combine) {
  reduce(args, [&](i64 n, auto term) { return fold(n, start, term, combine); });
}

void logsumexp(const KernelArgs& args) {
  reduce(args, [](i64 n, auto term) {
    const auto [top, rest] = log_sum_exp(n, term);
    return std::isinf(top) ? top : top + rest;  // no terms, or an infinite one
  });
}

std::uint32_t axis_of(const KernelArgs& args) {
  return 1u << args.params.as<AxisParams>().axis;
}

template <bool kLargest>
void position(const KernelArgs& args) {
  for_lines(args, axis_of(args), [&](i64 line, i64 n, auto term) {
    i64 best = 0;
    for (i64 j = 1; j < n; ++j) {
      const double x = term(j), y = term(best);
      if (!std::isnan(y) && (std::isnan(x) || (kLargest ? x > y : x < y))) best = j;
    }
    out(args, line, static_cast<double>(best));
  });
}

template <bool kLog>
void softmax(const KernelArgs& args) {
  const AxisGroups<1> to({args.output_view()}, axis_of(args));
  for_lines(args, axis_of(args), [&](i64 line, i64 n, auto term) {
    const auto [top, rest] = log_sum_exp(n, term);
    for (i64 j = 0; j < n; ++j) {
      const double x = term(j) - top - rest;
      out(args, to.kept.offset(line) + to.reduced.offset(j), kLog ? x : std::exp(x));
    }
  });
}

// A class with target 0 adds nothing, however small its probability; an invalid class index gives NaN.
void softmax_cross_entropy(const KernelArgs& args) {
  const bool classes = args.in_type[1].dtype == DType::i32;
  const Dims<1> targets = merged<1>({args.input_view(1)});
  for_lines(args, 1u << (args.in_type[0].shape.rank() - 1), [&](i64 line, i64 n, auto term) {
    const LogSum sum = log_sum_exp(n, term);
    const auto minus_log = [&](i64 j) { return sum.rest - (term(j) - sum.top); };
    double loss = 0;
    if (classes) {
      const i64 target = static_cast<i64>(in(args, 1, targets.offset(line)));
      loss = target >= 0 && target < n ? minus_log(target) : std::numeric_limits<double>::quiet_NaN();
    } else {
      for (i64 j = 0; j < n; ++j) {
        const double t = in(args, 1, targets.offset(line * n + j));
        if (t != 0) loss += t * minus_log(j);
      }
    }
    out(args, line, loss);
  });
}

constexpr Entry kReductions[] = {
    {Op::sum, [](const KernelArgs& args) { reduce_by(args, 0.0, std::plus()); }},
    {Op::prod, [](const KernelArgs& args) { reduce_by(args, 1.0, std::multiplies()); }},
    {Op::max, [](const KernelArgs& args) { reduce_by(args, -kInfinity, larger); }},
    {Op::min, [](const KernelArgs& args) { reduce_by(args, kInfinity, smaller); }},
    {Op::logsumexp, logsumexp},
    {Op::argmax, position<true>},
    {Op::argmin, position<false>},
    {family_op::softmax, softmax<false>},
    {family_op::log_softmax, softmax<true>},
    {family_op::softmax_cross_entropy, softmax_cross_entropy},
};

}  // namespace

std::span<const Entry> reductions() {
  return kReductions;
}

}  // namespace graphrun::ref
