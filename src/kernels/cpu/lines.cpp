// lines.cpp: ops that look along axes beside sum: extrema, products, positions, softmax and its kin.
// A line is one result's elements; its order of computation is fixed: exponentials in blocks of 256, sums one after
// another.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/families.h"

namespace graphrun::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kBlock = 256;

// NaN wins.
float larger(float x, float y) {
  return x >= y || x != x ? x : y;
}
float smaller(float x, float y) {
  return x <= y || x != x ? x : y;
}

struct Dims {
  int count = 0;
  std::int64_t extent[kMaxRank], stride[kMaxRank];

  void add(std::int64_t n, std::int64_t step) {
    if (count > 0 && stride[count - 1] == n * step) {  // continues the one before it
      extent[count - 1] *= n;
      stride[count - 1] = step;
      return;
    }
    extent[count] = n;
    stride[count++] = step;
  }
  std::int64_t elements() const {
    std::int64_t n = 1;
    for (int d = 0; d < count; ++d) n *= extent[d];
    return n;
  }
  std::int64_t offset(std::int64_t index) const {
    std::int64_t result = 0;
    for (int d = count - 1; d >= 0; --d) {
      result += index % extent[d] * stride[d];
      index /= extent[d];
    }
    return result;
  }
};

// The valid part of an operand, its reduced axes apart from the kept ones.
struct Split {
  Dims kept, reduced;

  Split(const KernelArgs& args, const TensorType& type, std::uint32_t mask) {
    std::int64_t stride = type.shape.elements();
    for (int d = 0; d < type.shape.rank(); ++d) {
      const std::int64_t n = d == 0 ? args.rows_of(type) : type.shape[d];
      stride = type.shape[d] == 0 ? 0 : stride / type.shape[d];
      ((mask >> d & 1u) != 0 ? reduced : kept).add(n, stride);
    }
  }
};

// Elements of one line: along one stride mostly, else by index.
struct Line {
  const float* first;
  const Dims* dims;
  std::int64_t size;

  float operator[](std::int64_t j) const {
    return first[dims->count == 1 ? j * dims->stride[0] : dims->count == 0 ? 0 : dims->offset(j)];
  }
};

template <class F>
void for_lines(const KernelArgs& args, std::uint32_t mask, F&& f) {
  const Split split(args, args.in_type[0], mask);
  const std::int64_t lines = split.kept.elements();
  const std::int64_t size = split.reduced.elements();
  const int parts = parts_for(lines * (4 * size + 64));  // several passes, and the beginning of each
  for_ranges(args, parts, lines, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t base = split.kept.offset(i);
      f(i, base, Line{args.input<float>(0) + base, &split.reduced, size});
    }
  });
  clear_invalid_rows(args);
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
  for_lines(args, std::get<ReduceParams>(args.params).axes,
            [&](std::int64_t i, std::int64_t, const Line& line) { out[i] = fold<combine>(line, start); });
}
void max_kernel(const KernelArgs& args) {
  reduce<larger>(args, -kInfinity);
}
void min_kernel(const KernelArgs& args) {
  reduce<smaller>(args, kInfinity);
}
void prod_kernel(const KernelArgs& args) {
  reduce<product>(args, 1.0f);
}

// sum(exp(x - top)), top being the largest, finite element.
float sum_of_exponentials(const Line& line, float top, const IsaTable& table) {
  float block[kBlock];
  float total = 0;
  for (std::int64_t begin = 0; begin < line.size; begin += kBlock) {
    const std::int64_t n = std::min(kBlock, line.size - begin);
    for (std::int64_t j = 0; j < n; ++j) block[j] = line[begin + j] - top;
    table.unary[unary_exp](block, block, n, 0, 0);
    for (std::int64_t j = 0; j < n; ++j) total += block[j];
  }
  return total;
}

// log(sum(exp(x))) as two parts: top + rest; the parts keep more digits than their sum. An infinite top makes rest NaN.
struct LogSum {
  float top, rest;
};
LogSum log_sum_exp(const Line& line, const IsaTable& table) {
  const float top = fold<larger>(line, -kInfinity);
  float total = sum_of_exponentials(line, top, table);
  table.unary[unary_log](&total, &total, 1, 0, 0);
  return {top, total};
}

template <Isa isa>
void logsumexp(const KernelArgs& args) {
  float* out = args.output<float>();
  for_lines(args, std::get<ReduceParams>(args.params).axes, [&](std::int64_t i, std::int64_t, const Line& line) {
    const LogSum sum = log_sum_exp(line, table_of<isa>());
    // Of nothing, or with an element that is not finite: the largest says it all.
    out[i] = std::fabs(sum.top) < kInfinity ? sum.top + sum.rest : sum.top;
  });
}

template <Isa isa>
void softmax(const KernelArgs& args) {
  const int axis = std::get<AxisParams>(args.params).axis;
  float* out = args.output<float>();
  for_lines(args, 1u << axis, [&](std::int64_t, std::int64_t base, const Line& line) {
    const IsaTable& table = table_of<isa>();
    const std::int64_t stride = line.dims->count > 0 ? line.dims->stride[0] : 0;
    const float top = fold<larger>(line, -kInfinity);
    const float total = sum_of_exponentials(line, top, table);
    float block[kBlock];
    for (std::int64_t begin = 0; begin < line.size; begin += kBlock) {
      const std::int64_t n = std::min(kBlock, line.size - begin);
      for (std::int64_t j = 0; j < n; ++j) block[j] = line[begin + j] - top;
      table.unary[unary_exp](block, block, n, 0, 0);
      for (std::int64_t j = 0; j < n; ++j) out[base + (begin + j) * stride] = block[j] / total;
    }
  });
}

template <Isa isa>
void log_softmax(const KernelArgs& args) {
  const int axis = std::get<AxisParams>(args.params).axis;
  float* out = args.output<float>();
  for_lines(args, 1u << axis, [&](std::int64_t, std::int64_t base, const Line& line) {
    const LogSum sum = log_sum_exp(line, table_of<isa>());
    const std::int64_t stride = line.dims->count > 0 ? line.dims->stride[0] : 0;
    for (std::int64_t j = 0; j < line.size; ++j) out[base + j * stride] = (line[j] - sum.top) - sum.rest;
  });
}

// A class with target 0 adds nothing; a class number that is no class gives NaN.
template <Isa isa>
void softmax_cross_entropy(const KernelArgs& args) {
  const bool classes = args.in_type[1].dtype == DType::i32;
  float* out = args.output<float>();
  for_lines(args, 1u << (args.in_type[0].shape.rank() - 1), [&](std::int64_t i, std::int64_t base, const Line& line) {
    const LogSum sum = log_sum_exp(line, table_of<isa>());
    if (classes) {
      const std::int32_t target = args.input<std::int32_t>(1)[i];
      const bool known = target >= 0 && target < line.size;
      out[i] = known ? sum.rest - (line[target] - sum.top) : std::numeric_limits<float>::quiet_NaN();
      return;
    }
    const float* t = args.input<float>(1) + base;
    float loss = 0;
    for (std::int64_t j = 0; j < line.size; ++j) {
      if (t[j] != 0) loss += t[j] * (sum.rest - (line[j] - sum.top));
    }
    out[i] = loss;
  });
}

template <bool kLargest>
void position(const KernelArgs& args) {
  auto* out = args.output<std::int32_t>();
  for_lines(args, 1u << std::get<AxisParams>(args.params).axis, [&](std::int64_t i, std::int64_t, const Line& line) {
    std::int64_t best = 0;
    for (std::int64_t j = 1; j < line.size; ++j) {
      const float x = line[j];
      const float y = line[best];
      if (y == y && (x != x || (kLargest ? x > y : x < y))) best = j;
    }
    out[i] = static_cast<std::int32_t>(best);
  });
}

#define GRAPHRUN_EACH_ISA(kernel) \
  { kernel<Isa::plain>, kernel<Isa::avx2>, kernel<Isa::avx512> }

}  // namespace

KernelFn line_kernel(std::string_view op, Isa isa) {
  static constexpr std::array kEntries = {
      KernelEntry{"max", {max_kernel, max_kernel, max_kernel}},
      KernelEntry{"min", {min_kernel, min_kernel, min_kernel}},
      KernelEntry{"prod", {prod_kernel, prod_kernel, prod_kernel}},
      KernelEntry{"argmax", {position<true>, position<true>, position<true>}},
      KernelEntry{"argmin", {position<false>, position<false>, position<false>}},
      KernelEntry{"logsumexp", GRAPHRUN_EACH_ISA(logsumexp)},
      KernelEntry{"softmax", GRAPHRUN_EACH_ISA(softmax)},
      KernelEntry{"log_softmax", GRAPHRUN_EACH_ISA(log_softmax)},
      KernelEntry{"softmax_cross_entropy", GRAPHRUN_EACH_ISA(softmax_cross_entropy)},
  };
  return find_kernel(kEntries, op, isa);
}

}  // namespace graphrun::cpu
