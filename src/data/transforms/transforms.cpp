#include "data/transforms/transforms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/input_limit.h"
#include "base/philox.h"
#include "data/sources/columns.h"
#include "graphrun/elements.h"
#include "graphrun/error.h"

namespace graphrun::data {
namespace {

std::string batch_shape(const Shape& sample) {
  std::string text = "(batch";
  for (const std::int64_t extent : sample.dims()) text += fmt::format(", {}", extent);
  return text + ")";
}

Shape sample_of(const Array& array) {
  return Shape(array.shape.dims().subspan(1));
}

// With a window, rows are the first axis of a sample.
Shape sample_of(const Column& column) {
  if (column.length == 1) return sample_of(*column.array);
  Shape sample{column.length};
  for (const std::int64_t extent : column.array->shape.dims().subspan(1)) sample.push_back(extent);
  return sample;
}

[[noreturn]] void fail(std::string code, std::string message, std::string hint = {}) {
  throw Error(ErrorKind::input, std::move(code), std::move(message), std::move(hint));
}

std::string hint_for_shape(const Column& column, const Shape& sample, const InputDecl& input) {
  if (sample.elements() == input.sample.elements() && input.sample.rank() == 1)
    return fmt::format("\"transform\": {{\"{}\": [\"flatten\"]}} makes them one", input.name);
  if (column.length > 1)
    return fmt::format("a window of {} rows is {} numbers: {} or {}", column.length, sample.elements(),
                       batch_shape(Shape{sample.elements()}),
                       batch_shape(Shape{column.length, sample.elements() / column.length}));
  if (column.array->shape.elements() == input.sample.elements() && column.array->columns.empty())
    return fmt::format("the first axis counts the rows: {} is the shape of one row",
                       to_string(column.array->shape.with_batch(1)));
  return column.array->columns.size() > 1 ? "the columns are " + listed(column.array->columns) : "";
}

}  // namespace

void Pipeline::read(json::Reader& reader, const json::Ref& list, const InputDecl& input) {
  steps_ = read_transforms(reader, list, input.name, input.dtype);
}

bool Pipeline::has(Transform kind) const {
  return std::any_of(steps_.begin(), steps_.end(), [&](const TransformStep& step) { return step.kind == kind; });
}

bool Pipeline::changes_numbers() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const TransformStep& step) { return step.is_numeric(); });
}

std::optional<double> Pipeline::divisor(const InputDecl& input) const {
  constexpr std::int64_t kMinElements = 64;  // a sample with fewer is not an image
  double divisor = 1;
  for (const TransformStep& step : steps_) {
    if (step.kind == Transform::scale)
      divisor /= step.scale;
    else if (step.kind != Transform::flatten)
      return std::nullopt;
  }
  const bool is_known = !record_ || (std::ranges::count(record_->shift, 0) == std::ssize(record_->shift) &&
                                     std::ranges::count(record_->scale, divisor) == std::ssize(record_->scale));
  const bool is_normal = divisor > 1e-30 && divisor < 1e30;  // no value is 0, subnormal or infinite but that of 0
  if (!is_known || !is_normal || input.dtype != DType::f32 || input.sample.elements() < kMinElements)
    return std::nullopt;
  return divisor;
}

const ClassStep* Pipeline::class_step() const {
  const auto step = std::find_if(steps_.begin(), steps_.end(), [](const auto& one) { return one.is_of_words(); });
  return step == steps_.end() ? nullptr : &step->words;
}

LogTransform Pipeline::log() const {
  return has(Transform::log) ? LogTransform::log : has(Transform::log1p) ? LogTransform::log1p : LogTransform::none;
}

// Classes have no original units to convert back to.
std::optional<Standardization> Pipeline::visible_record() const {
  return has(Transform::one_hot) ? std::nullopt : record_;
}

namespace {

// Calls f(sample, values) with transformed values. Throws Error if a logarithm is undefined.
template <class F>
void for_each_sample(const Column& column, const std::optional<Standardization>& record, const std::string& where,
                     F f) {
  const auto width = static_cast<std::size_t>(sample_of(*column.array).elements());
  std::vector<double> values(width * static_cast<std::size_t>(column.length));
  for (std::int64_t i = 0; i < column.count(); ++i) {
    std::visit(
        [&](const auto& stored) {
          for (std::int64_t j = 0; j < column.length; ++j)
            std::copy_n(stored.begin() + column.row(i, j) * static_cast<std::ptrdiff_t>(width), width,
                        values.begin() + j * static_cast<std::ptrdiff_t>(width));
        },
        column.array->values);
    for (std::size_t c = 0; record && c < values.size(); ++c) {
      const double transformed = apply_log(record->log, values[c]);
      if (!std::isfinite(transformed) && std::isfinite(values[c]))
        fail("data.value",
             fmt::format("{}: row {}, column {}: {} has no logarithm", where,
                         column.row(i, static_cast<std::int64_t>(c / width)), c % width, values[c]),
             record->log == LogTransform::log ? "\"log1p\" takes numbers from 0 on" : "");
      values[c] = (transformed - record->shift[c]) / record->scale[c];
    }
    f(i, std::span<const double>(values));
  }
}

// Repeats the numbers of a row for every row of a window.
void repeat(std::vector<double>& values, std::int64_t times) {
  const std::size_t width = values.size();
  values.resize(width * static_cast<std::size_t>(times));
  for (std::size_t i = width; i < values.size(); ++i) values[i] = values[i - width];
}

// Fitted transform of one column: (x - shift) / scale.
struct Affine {
  double shift = 0, scale = 1;
  bool is_constant = false;
};

Affine standardized(std::span<const double> values) {
  const auto rows = static_cast<double>(values.size());
  double mean = 0, variance = 0;
  for (const double value : values) mean += value;
  mean /= rows;
  for (const double value : values) variance += (value - mean) * (value - mean);
  return {mean, std::sqrt(variance / rows)};
}

// Linear interpolation between the two nearest values, as in NumPy and scikit-learn.
double quantile(std::vector<double>& values, double q) {
  const double place = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::ptrdiff_t>(place);
  std::nth_element(values.begin(), values.begin() + below, values.end());
  const double low = values[static_cast<std::size_t>(below)];
  if (place == static_cast<double>(below)) return low;
  const double high = *std::min_element(values.begin() + below + 1, values.end());
  return low + (high - low) * (place - static_cast<double>(below));
}

Affine fitted_to(Transform kind, std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double least = *low, greatest = *high;
  // Compare values to detect a constant: rounding may yield a nonzero variance.
  if (least == greatest) return {least, 1, true};
  Affine affine{least, greatest - least};
  if (kind == Transform::standardize) affine = standardized(values);
  if (kind == Transform::robust) {
    const double quarter = quantile(values, 0.25), middle = quantile(values, 0.5);
    affine = {middle, quantile(values, 0.75) - quarter};
  }
  if (!(affine.scale > 0)) affine = {affine.shift, 1, true};
  return affine;
}

// Appends the step's effect on each column of train to the record.
void append_fitted(Transform kind, const Column& train, Standardization& record, std::vector<std::string>& warnings) {
  const std::size_t width = record.shift.size();
  const std::vector<std::string>& names = train.array->columns;
  const std::string where = fmt::format("input '{}' of train", record.input);
  const auto rows = static_cast<std::size_t>(train.rows.count);
  // Process columns in groups to avoid a second copy of a large table.
  constexpr std::size_t kValuesAtOnce = std::size_t{1} << 24;
  const std::size_t at_once = std::clamp<std::size_t>(kValuesAtOnce / std::max<std::size_t>(rows, 1), 1, width);
  const Standardization before = record;
  std::vector<std::vector<double>> columns(at_once);
  for (std::size_t begin = 0; begin < width; begin += at_once) {
    const std::size_t end = std::min(begin + at_once, width);
    for (std::vector<double>& column : columns) column.clear();
    for_each_sample(train, before, where, [&](std::int64_t, std::span<const double> values) {
      for (std::size_t c = begin; c < end; ++c) columns[c - begin].push_back(values[c]);
    });
    for (std::size_t c = begin; c < end; ++c) {
      const Affine affine = fitted_to(kind, columns[c - begin]);
      if (affine.is_constant) {
        warnings.push_back(fmt::format("input '{}': column {} is constant in train; it is centred and its scale is 1",
                                       record.input,
                                       c < names.size() ? fmt::format("'{}'", names[c]) : std::to_string(c)));
      }
      record.shift[c] += record.scale[c] * affine.shift;
      record.scale[c] *= affine.scale;
    }
  }
}

Standardization unchanged(const std::string& input, std::size_t width, LogTransform log) {
  require_within_input_limit(saturating_product(width, 8 * sizeof(double)),
                             fmt::format("the shifts and scales of '{}'", input));
  return {input, std::vector<double>(width, 0), std::vector<double>(width, 1), log};
}

}  // namespace

std::optional<Standardization> Pipeline::fit(const Column& given, const std::string& input,
                                             std::vector<std::string>& warnings) {
  if (!changes_numbers()) return std::nullopt;
  const Column train{given.array, given.rows};  // each row once, however many windows it is in
  record_ = unchanged(input, static_cast<std::size_t>(sample_of(*train.array).elements()), log());
  for (const TransformStep& step : steps_) {
    if (step.kind == Transform::scale) {
      for (double& scale : record_->scale) scale /= step.scale;
    } else if (step.is_fitted()) {
      append_fitted(step.kind, train, *record_, warnings);
    }
  }
  repeat(record_->shift, given.length);
  repeat(record_->scale, given.length);
  return visible_record();
}

namespace {

template <class T>
T converted(double value, std::string_view dtype, const std::string& where, std::int64_t row, std::size_t column) {
  const auto reject = [&](std::string_view why) {
    fail("data.value", fmt::format("{}: row {}, column {}: {} {}", where, row, column, value, why));
  };
  if (!std::isfinite(value)) reject("is not a finite number");
  if constexpr (std::is_same_v<T, double>) {
    return value;
  } else if constexpr (std::is_same_v<T, float>) {
    const auto narrow = static_cast<float>(value);
    if (!std::isfinite(narrow)) reject("is too large for f32");
    return narrow;
  } else {
    constexpr double kHighest = std::is_same_v<T, std::uint8_t>    ? 1.0
                                : std::is_same_v<T, std::uint64_t> ? 0x1p63
                                                                   : static_cast<double>(std::numeric_limits<T>::max());
    constexpr double kLowest = std::is_signed_v<T> ? static_cast<double>(std::numeric_limits<T>::min()) : 0.0;
    if (value != std::floor(value) || value < kLowest || value > kHighest) reject(fmt::format("is no {}", dtype));
    return static_cast<T>(value);
  }
}

}  // namespace

bool is_far(std::string_view steps, double value) {
  const auto place = [&](std::string_view name) { return static_cast<std::ptrdiff_t>(steps.rfind(name) + 1); };
  const std::ptrdiff_t centred = std::max(place("standardize"), place("robust")), minmax = place("minmax");
  if (place("scale") > std::max(centred, minmax)) return false;
  if (minmax > centred) return value < -1 || value > 2;
  return centred > 0 && std::abs(value) > 10;
}

// Part of the record that the list alone determines.
Standardization Pipeline::known_record(const InputDecl& input) const {
  Standardization record = unchanged(input.name, static_cast<std::size_t>(input.sample.elements()), log());
  for (const TransformStep& step : steps_) {
    if (step.kind != Transform::scale) continue;
    for (double& scale : record.scale) scale /= step.scale;
  }
  return record;
}

std::optional<Standardization> Pipeline::unfitted(const InputDecl& input) const {
  if (!changes_numbers()) return std::nullopt;
  const bool is_fitted = std::any_of(steps_.begin(), steps_.end(), [](const auto& step) { return step.is_fitted(); });
  Pipeline copy = *this;
  copy.record_ = known_record(input);
  const auto of_name = static_cast<double>(fnv1a(std::as_bytes(std::span(input.name))) >> 44);
  for (std::size_t c = 0; is_fitted && c < copy.record_->shift.size(); ++c) {
    copy.record_->shift[c] = of_name + 0.25 + static_cast<double>(c);
    copy.record_->scale[c] = of_name + 0.75 + static_cast<double>(c);
  }
  return copy.visible_record();
}

std::optional<Standardization> Pipeline::adopt(const Standardization* given, const InputDecl& input) {
  const std::optional<Standardization> expected = unfitted(input);
  if (!expected && !given) {
    if (has(Transform::scale)) record_ = known_record(input);  // in front of "one_hot": the list determines it fully
    return std::nullopt;
  }
  const auto reject = [&](fmt::format_string<const std::string&> why) {
    fail("weights.fitted", fmt::format(why, input.name), "the list of transforms must be that of the training");
  };
  if (!expected) reject("the weights go with values of '{}' that were changed; here they are not");
  if (!given) reject("the weights come without the numbers by which '{}' was changed");
  const bool is_known = std::none_of(steps_.begin(), steps_.end(), [](const auto& step) { return step.is_fitted(); });
  if (given->shift.size() != expected->shift.size() ||
      (is_known && (given->shift != expected->shift || given->scale != expected->scale)))
    reject("the weights go with values of '{}' that were changed in another way");
  record_ = *given;
  record_->log = log();
  return record_;
}

std::optional<Shape> Pipeline::result_of(const Shape& before, const std::string& where) const {
  Shape sample = before;
  for (const TransformStep& step : steps_) {
    if (step.kind == Transform::flatten) {
      sample = Shape{sample.elements()};
    } else if (step.kind == Transform::one_hot) {
      if (sample.elements() != 1) {
        fail("data.transform", fmt::format("{}: \"one_hot\" needs one {} a row, got {}", where,
                                           step.is_of_words() ? "word" : "integer", batch_shape(sample)));
      }
      const std::int64_t classes = step.is_of_words() ? class_count_ : step.classes;
      if (classes == 0) return std::nullopt;
      sample = Shape{classes};
    }
  }
  return sample;
}

void Pipeline::check(const Column& column, const std::string& split, const InputDecl& input) const {
  const std::string where = fmt::format("input '{}' of {}", input.name, split);
  const std::optional<Shape> result = result_of(sample_of(column), where);
  if (!result || !column.array->width_known) return;
  const Shape& sample = *result;
  const auto one = [](const Shape& shape) { return shape == Shape{} || shape == Shape{1}; };
  // Grey images may lack their channel.
  const auto image = [](const Shape& s) { return s.rank() == 3 && s[2] == 1 ? Shape{s[0], s[1]} : s; };
  if (image(sample) == image(input.sample) || (one(sample) && one(input.sample))) return;
  const bool keeps_rows = input.sample.rank() == 1 || (input.sample.rank() > 1 && input.sample[0] == column.length);
  if (column.length > 1 && keeps_rows && sample.elements() == input.sample.elements()) return;
  fail("data.shape",
       fmt::format("{}: declared {}, but the data are {}", where, batch_shape(input.sample), batch_shape(sample)),
       hint_for_shape(column, sample, input));
}

HostTensor Pipeline::apply(const Column& column, const std::string& split, const InputDecl& input) const {
  check(column, split, input);
  const std::string where = fmt::format("input '{}' of {}", input.name, split);
  std::int64_t classes = 0;
  for (const TransformStep& step : steps_) {
    if (step.kind == Transform::one_hot) classes = step.is_of_words() ? class_count_ : step.classes;
  }
  Shape shape{column.count()};
  for (const std::int64_t extent : input.sample.dims()) shape.push_back(extent);
  require_within_input_limit(saturating_product(static_cast<std::uint64_t>(shape.elements()), size_of(input.dtype)),
                             where);
  HostTensor tensor(input.dtype, shape);
  with_elements(tensor, [&]<class T>(std::span<T> out) {
    std::size_t next = 0;
    const std::size_t width = static_cast<std::size_t>(sample_of(*column.array).elements());
    for_each_sample(column, record_, where, [&](std::int64_t sample, std::span<const double> values) {
      if (classes == 0) {
        for (std::size_t c = 0; c < values.size(); ++c)
          out[next++] = converted<T>(values[c], name_of(input.dtype), where,
                                     column.row(sample, static_cast<std::int64_t>(c / width)), c % width);
        return;
      }
      const std::int64_t row = column.row(sample);
      const double value = values[0];
      if (value == -1 && accepts_unseen(input)) {
        next += static_cast<std::size_t>(classes);
        return;
      }
      if (!(value >= 0 && value < static_cast<double>(classes) && value == std::floor(value))) {
        fail("data.value", fmt::format("{}: row {}: {} is not a class from 0 to {}", where, row, value, classes - 1));
      }
      out[next + static_cast<std::size_t>(value)] = T{1};
      next += static_cast<std::size_t>(classes);
    });
  });
  for (ClassRange range : input.classes) {
    range.accepts_none = accepts_unseen(input);
    check_classes(range, tensor, where, [&](std::int64_t sample) { return column.row(sample); });
  }
  return tensor;
}

}  // namespace graphrun::data
