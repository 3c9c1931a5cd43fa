#include "session/verify/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "graphrun/elements.h"

namespace graphrun {
namespace {

// Allows for a function's own error and for sums of a few thousand terms; real defects are far larger. Both operands of
// a tf32 product are rounded to 2^-11, or truncated to 2^-10.
double relative(DType dtype, Precision precision) {
  if (dtype == DType::f32 && precision == Precision::tf32) return 2e-3;
  return dtype == DType::f32 ? 1e-5 : 1e-12;
}
// Executors may flush subnormal results to zero.
double smallest_normal(DType dtype) {
  return dtype == DType::f32 ? static_cast<double>(std::numeric_limits<float>::min())
                             : std::numeric_limits<double>::min();
}
double largest(DType dtype) {
  return dtype == DType::f32 ? static_cast<double>(std::numeric_limits<float>::max())
                             : std::numeric_limits<double>::max();
}

// std::fmax and fmin are function calls, too slow for billions of elements.
double larger(double a, double b) {
  return a >= b || std::isnan(b) ? a : b;
}
double smaller(double a, double b) {
  return a <= b || std::isnan(b) ? a : b;
}

template <class T>
double tolerance_of(const Sides& sides, std::size_t i) {
  const DType dtype = sides.type.dtype;
  if (!std::is_floating_point_v<T> || sides.rule == Agreement::exact) return 0;
  double size = std::fabs(static_cast<double>(load_element<T>(sides.expected, i)));
  if (sides.rule == Agreement::absolute) size = larger(size, 1);
  if (sides.rule == Agreement::scaled && !sides.scale.empty())
    size = larger(size, std::fabs(static_cast<double>(load_element<T>(sides.scale, i))));
  return relative(dtype, sides.precision) * smaller(size, largest(dtype)) + smallest_normal(dtype);
}

template <class T>
double ratio_of(const Sides& sides, std::size_t i) {
  const double distance = distance_of(load_element<T>(sides.got, i), load_element<T>(sides.expected, i));
  if (distance == 0 || distance == kNeverAgree) return distance;
  const double bound = tolerance_of<T>(sides, i);
  return bound > 0 ? distance / bound : kNeverAgree;
}

}  // namespace

Agreement agreement_of(Op op) {
  const OpDef& def = op_def(op);
  if (def.agreement) return *def.agreement;
  switch (def.rows) {
    case RowRule::elementwise:
      return Agreement::relative;
    case RowRule::contraction:
    case RowRule::reduction:
    case RowRule::scatter:
    case RowRule::rowwise:
      return Agreement::scaled;
    case RowRule::state:
    case RowRule::regroup:
    case RowRule::broadcast:
    case RowRule::select:
    case RowRule::scalar:
      return Agreement::exact;
  }
  return Agreement::scaled;
}

double element(DType dtype, std::span<const std::byte> bytes, std::size_t i) {
  return with_type(dtype, [&](auto zero) { return static_cast<double>(load_element<decltype(zero)>(bytes, i)); });
}

std::string element_text(DType dtype, std::span<const std::byte> bytes, std::size_t i) {
  return with_type(dtype,
                   [&](auto zero) { return fmt::format("{}", unsigned_nan(load_element<decltype(zero)>(bytes, i))); });
}

Residual residual_of(DType dtype, std::span<const std::vector<std::byte>> operands, std::span<const std::byte> x) {
  Residual result{std::vector<std::byte>(x.size()), std::vector<std::byte>(x.size())};
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    const std::size_t n = x.size() / sizeof(T);
    const auto at = [](std::span<const std::byte> bytes, std::size_t i) {
      return static_cast<double>(load_element<T>(bytes, i));
    };
    for (std::size_t i = 0; i < n; ++i) {
      double sum = at(operands[2], 0) * at(x, i), size = std::fabs(sum) + std::fabs(at(operands[1], i));
      for (std::size_t j = 0; j < n; ++j) {
        const double term = at(operands[0], std::min(i, j) * n + std::max(i, j)) * at(x, j);
        sum += term, size += std::fabs(term);
      }
      const auto rounded = static_cast<T>(sum), bound = static_cast<T>(size);
      std::memcpy(result.product.data() + i * sizeof(T), &rounded, sizeof(T));
      std::memcpy(result.scale.data() + i * sizeof(T), &bound, sizeof(T));
    }
  });
  return result;
}

double Sides::tolerance(std::size_t i) const {
  return with_type(type.dtype, [&](auto zero) { return tolerance_of<decltype(zero)>(*this, i); });
}

double Sides::ratio(std::size_t i) const {
  return with_type(type.dtype, [&](auto zero) { return ratio_of<decltype(zero)>(*this, i); });
}

Comparison compare(const Sides& sides) {
  Comparison result;
  if (same_bytes(sides.got, sides.expected)) return result;
  std::mutex mutex;
  with_type(sides.type.dtype, [&](auto zero) {
    in_parts(sides.elements(), [&](std::size_t first, std::size_t last) {
      double worst = 0;
      std::size_t i = first;
      for (; i < last && worst <= 1; ++i) worst = std::max(worst, ratio_of<decltype(zero)>(sides, i));
      const std::lock_guard lock(mutex);
      if (worst > 1) result.wrong = std::min(result.wrong.value_or(i - 1), i - 1);
      result.worst = std::max(result.worst, worst);
    });
  });
  if (result.wrong) result.worst = sides.ratio(*result.wrong);  // not that of a later element
  return result;
}

std::string neighbourhood(const Sides& sides, std::size_t i, std::string_view got_name,
                          std::string_view expected_name) {
  const Shape& shape = sides.type.shape;
  if (sides.elements() < 2) return {};
  const std::int64_t columns = shape[shape.rank() - 1];
  const std::int64_t rows = shape.rank() > 1 ? shape[shape.rank() - 2] : 1;
  const auto at = static_cast<std::int64_t>(i);
  const std::int64_t matrix = at / (rows * columns) * (rows * columns);  // its first element
  const std::int64_t row = at % (rows * columns) / columns;
  const std::int64_t column = at % columns;
  const std::int64_t first_row = std::max<std::int64_t>(row - 2, 0), last_row = std::min(row + 3, rows);
  const std::int64_t first = std::max<std::int64_t>(column - 2, 0), last = std::min(column + 3, columns);

  const auto cell = [&](std::span<const std::byte> bytes, std::int64_t r, std::int64_t c) {
    const auto here = static_cast<std::size_t>(matrix + r * columns + c);
    const std::string text = element_text(sides.type.dtype, bytes, here);
    if (here == i) return "[" + text + "]";
    return " " + text + (sides.agrees(here) ? " " : "*");
  };
  // Lays out both sides as columns of cells; the first row names them.
  std::vector<std::vector<std::string>> cells(static_cast<std::size_t>(last_row - first_row) + 1);
  std::size_t width = std::max(got_name.size(), expected_name.size());
  for (const std::span<const std::byte> side : {sides.got, sides.expected}) {
    for (std::int64_t c = first; c < last; ++c) {
      cells[0].push_back(fmt::format("{} ", c));
      for (std::int64_t r = first_row; r < last_row; ++r)
        cells[static_cast<std::size_t>(r - first_row) + 1].push_back(cell(side, r, c));
    }
  }
  for (std::size_t r = 1; r < cells.size(); ++r) {
    for (const std::string& text : cells[r]) width = std::max(width, text.size());
  }
  const auto half = static_cast<std::size_t>(last - first);
  std::string text = fmt::format("{:10}{:<{}} |  {}\n", "", got_name, (width + 1) * half, expected_name);
  for (std::size_t r = 0; r < cells.size(); ++r) {
    std::string line =
        r == 0 ? std::string(10, ' ') : fmt::format("  {:>6}  ", first_row + static_cast<std::int64_t>(r) - 1);
    for (std::size_t c = 0; c < 2 * half; ++c)
      line += fmt::format("{}{:>{}} ", c == half ? " |  " : "", cells[r][c], width);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace graphrun
