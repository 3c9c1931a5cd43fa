// ref_reductions.cpp: reference kernels of ops along axes.
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "kernels/ref_access.h"
#include "kernels/ref_families.h"

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

// out = value(number of terms, term): term(j) is term j.
template <class F>
void reduce(const KernelArgs& args, F&& value) {
  const AxisGroups<1> axes({view_in(args, 0)}, args.params.as<ReduceParams>().axes);
  for_elements(axes.kept, [&](i64 i, const Offsets<1>& base) {
    out(args, i, value(axes.reduced.count, [&](i64 j) { return in(args, 0, base[0] + axes.reduced.offset(j)); }));
  });
  clear_invalid_rows(args);
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

void sum(const KernelArgs& args) {
  reduce(args, [](i64 n, auto term) { return fold(n, 0.0, term, [](double a, double x) { return a + x; }); });
}
void prod(const KernelArgs& args) {
  reduce(args, [](i64 n, auto term) { return fold(n, 1.0, term, [](double a, double x) { return a * x; }); });
}
void max(const KernelArgs& args) {
  reduce(args, [](i64 n, auto term) { return fold(n, -kInfinity, term, larger); });
}
void min(const KernelArgs& args) {
  reduce(args, [](i64 n, auto term) { return fold(n, kInfinity, term, smaller); });
}
void logsumexp(const KernelArgs& args) {
  reduce(args, [](i64 n, auto term) {
    const auto [top, rest] = log_sum_exp(n, term);
    return std::isinf(top) ? top : top + rest;  // no terms, or an infinite one
  });
}

// Calls f(i, base, stride, n) for each line of the input along the axis: element j of line i is at base + j * stride.
template <class F>
void for_lines(const KernelArgs& args, int axis, F&& f) {
  const View x = view_in(args, 0);
  for_elements(AxisGroups<1>({x}, 1u << axis).kept,
               [&](i64 i, const Offsets<1>& base) { f(i, base[0], x.strides[axis], x.extents[axis]); });
}

template <bool kLargest>
void position(const KernelArgs& args) {
  for_lines(args, args.params.as<AxisParams>().axis, [&](i64 line, i64 base, i64 stride, i64 n) {
    i64 best = 0;
    for (i64 j = 1; j < n; ++j) {
      const double x = in(args, 0, base + j * stride);
      const double y = in(args, 0, base + best * stride);
      if (!std::isnan(y) && (std::isnan(x) || (kLargest ? x > y : x < y))) best = j;
    }
    out(args, line, static_cast<double>(best));
  });
  clear_invalid_rows(args);
}

template <bool kLog>
void softmax(const KernelArgs& args) {
  const int axis = args.params.as<AxisParams>().axis;
  const View to = view_out(args);
  const Dims<1> lines = AxisGroups<1>({to}, 1u << axis).kept;
  for_lines(args, axis, [&](i64 line, i64 base, i64 stride, i64 n) {
    const i64 result = lines.offset(line);
    const auto [top, rest] = log_sum_exp(n, [&](i64 j) { return in(args, 0, base + j * stride); });
    for (i64 j = 0; j < n; ++j) {
      const double x = in(args, 0, base + j * stride) - top - rest;
      out(args, result + j * to.strides[axis], kLog ? x : std::exp(x));
    }
  });
  clear_invalid_rows(args);
}

// A class with target 0 adds nothing, however small its probability; an invalid class index gives NaN.
void softmax_cross_entropy(const KernelArgs& args) {
  const bool classes = args.in_type[1].dtype == DType::i32;
  const Dims<1> targets = merged<1>({view_in(args, 1)});
  for_lines(args, args.in_type[0].shape.rank() - 1, [&](i64 line, i64 base, i64 stride, i64 n) {
    const LogSum sum = log_sum_exp(n, [&](i64 j) { return in(args, 0, base + j * stride); });
    const auto minus_log = [&](i64 j) { return sum.rest - (in(args, 0, base + j * stride) - sum.top); };
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
  clear_invalid_rows(args);
}

constexpr Entry kReductions[] = {
    {Op::sum, sum},
    {Op::prod, prod},
    {Op::max, max},
    {Op::min, min},
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
