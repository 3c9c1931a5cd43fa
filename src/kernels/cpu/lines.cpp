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

// NaN wins; of equal ones the first. One branch that is never taken: which of two numbers is larger is not to be
// guessed.
float larger(float x, float y) {
  const float most = y > x ? y : x;
  return y != y ? y : most;
}
float smaller(float x, float y) {
  const float least = y < x ? y : x;
  return y != y ? y : least;
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

// What softmax and its kin need of a line: its largest element, the sum of exp(x - top) or the logarithm of that sum,
// and those exponentials where the line fits a block. An infinite top makes the sum NaN.
struct Exponentials {
  float top, sum;
  const float* values;  // null for a longer line
};

// Calls f(i, base, line, exponentials) for every line. Lines so short that several fit a block are taken together: one
// call computes the exponentials of all of them. No line's bits depend on the others.
enum class Sum { itself, logarithm };
template <Sum kSum, class F>
void for_exponentials(const KernelArgs& args, std::uint32_t mask, const IsaTable& table, F&& f) {
  const Split split(args, args.in_type[0], mask);
  const std::int64_t lines = split.kept.elements();
  const std::int64_t size = split.reduced.elements();
  const bool fits = size <= kBlock;
  const std::int64_t together = std::max<std::int64_t>(kBlock / std::max<std::int64_t>(size, 1), 1);
  const auto line_at = [&](std::int64_t base) { return Line{args.input<float>(0) + base, &split.reduced, size}; };
  const int parts = parts_for(lines * (4 * size + 16));  // several passes, and the beginning of each
  for_ranges(args, parts, lines, 1, [&](std::int64_t first, std::int64_t last) {
    float block[kBlock], top[kBlock], sum[kBlock];
    for (std::int64_t begin = first; begin < last; begin += together) {
      const std::int64_t count = std::min(together, last - begin);
      for (std::int64_t l = 0; l < count; ++l) {
        const Line line = line_at(split.kept.offset(begin + l));
        top[l] = fold<larger>(line, -kInfinity);
        if (fits)
          for (std::int64_t j = 0; j < size; ++j) block[l * size + j] = line[j] - top[l];
        else
          sum[l] = sum_of_exponentials(line, top[l], table);
      }
      if (fits) {
        table.unary[unary_exp](block, block, count * size, 0, 0);
        for (std::int64_t l = 0; l < count; ++l) {
          sum[l] = 0;
          for (std::int64_t j = 0; j < size; ++j) sum[l] += block[l * size + j];
        }
      }
      if (kSum == Sum::logarithm) table.unary[unary_log](sum, sum, count, 0, 0);
      for (std::int64_t l = 0; l < count; ++l) {
        const std::int64_t base = split.kept.offset(begin + l);
        f(begin + l, base, line_at(base), Exponentials{top[l], sum[l], fits ? block + l * size : nullptr});
      }
    }
  });
  clear_invalid_rows(args);
}

// log(sum(exp(x))) is top + sum: as two parts they keep more digits.
template <Isa isa>
void logsumexp(const KernelArgs& args) {
  float* out = args.output<float>();
  for_exponentials<Sum::logarithm>(args, std::get<ReduceParams>(args.params).axes, table_of<isa>(),
                                   [&](std::int64_t i, std::int64_t, const Line&, const Exponentials& e) {
                                     // Of nothing, or with an element that is not finite: the largest says it all.
                                     out[i] = std::fabs(e.top) < kInfinity ? e.top + e.sum : e.top;
                                   });
}

template <Isa isa>
void softmax(const KernelArgs& args) {
  const IsaTable& table = table_of<isa>();
  float* out = args.output<float>();
  for_exponentials<Sum::itself>(args, 1u << std::get<AxisParams>(args.params).axis, table,
                                [&](std::int64_t, std::int64_t base, const Line& line, const Exponentials& e) {
                                  const std::int64_t stride = line.dims->count > 0 ? line.dims->stride[0] : 0;
                                  if (e.values != nullptr) {
                                    for (std::int64_t j = 0; j < line.size; ++j)
                                      out[base + j * stride] = e.values[j] / e.sum;
                                    return;
                                  }
                                  float block[kBlock];
                                  for (std::int64_t begin = 0; begin < line.size; begin += kBlock) {
                                    const std::int64_t n = std::min(kBlock, line.size - begin);
                                    for (std::int64_t j = 0; j < n; ++j) block[j] = line[begin + j] - e.top;
                                    table.unary[unary_exp](block, block, n, 0, 0);
                                    for (std::int64_t j = 0; j < n; ++j)
                                      out[base + (begin + j) * stride] = block[j] / e.sum;
                                  }
                                });
}

template <Isa isa>
void log_softmax(const KernelArgs& args) {
  float* out = args.output<float>();
  for_exponentials<Sum::logarithm>(args, 1u << std::get<AxisParams>(args.params).axis, table_of<isa>(),
                                   [&](std::int64_t, std::int64_t base, const Line& line, const Exponentials& e) {
                                     const std::int64_t stride = line.dims->count > 0 ? line.dims->stride[0] : 0;
                                     for (std::int64_t j = 0; j < line.size; ++j)
                                       out[base + j * stride] = (line[j] - e.top) - e.sum;
                                   });
}

// A class with target 0 adds nothing; a class number that is no class gives NaN.
template <Isa isa>
void softmax_cross_entropy(const KernelArgs& args) {
  const bool classes = args.in_type[1].dtype == DType::i32;
  float* out = args.output<float>();
  for_exponentials<Sum::logarithm>(args, 1u << (args.in_type[0].shape.rank() - 1), table_of<isa>(),
                                   [&](std::int64_t i, std::int64_t base, const Line& line, const Exponentials& e) {
                                     if (classes) {
                                       const std::int32_t target = args.input<std::int32_t>(1)[i];
                                       const bool known = target >= 0 && target < line.size;
                                       out[i] = known ? e.sum - (line[target] - e.top)
                                                      : std::numeric_limits<float>::quiet_NaN();
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
