#include "data/transforms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/input_limit.h"
#include "base/philox.h"
#include "data/columns.h"
#include "graphrun/elements.h"
#include "graphrun/error.h"

namespace graphrun::data {

std::span<const Doc> transform_docs() {
  static constexpr Doc docs[] = {
      {"standardize", "to mean 0 and deviation 1, column by column; fitted on train"},
      {"scale", "times a number", "a number"},
      {"flatten", "all axes but the batch become one"},
      {"one_hot", "an integer c becomes a row of zeros with 1 at c", "a number of classes"},
  };
  return docs;
}

namespace {

std::string batch_shape(const Shape& sample) {
  std::string text = "(batch";
  for (const std::int64_t extent : sample.dims()) text += fmt::format(", {}", extent);
  return text + ")";
}

Shape sample_of(const Array& array) {
  return Shape(array.shape.dims().subspan(1));
}

[[noreturn]] void fail(std::string code, std::string message, std::string hint = {}) {
  throw Error(ErrorKind::input, std::move(code), std::move(message), std::move(hint));
}

}  // namespace

std::optional<Pipeline::Step> Pipeline::read_step(json::Reader& reader, const json::Place& at) {
  const std::vector<std::string> names = names_of(transform_docs());
  std::string allowed;
  for (const Doc& doc : transform_docs()) {
    const std::string form =
        doc.argument.empty() ? fmt::format("\"{}\"", doc.name) : fmt::format("{{\"{}\": {}}}", doc.name, doc.argument);
    allowed += (allowed.empty() ? "" : ", ") + form;
  }
  const bool is_object = at.value->kind == json::Kind::object && at.value->members.size() == 1;
  if (!is_object && at.value->kind != json::Kind::string) {
    reader.report(at, "data.transform", "expected one of " + allowed);
    return std::nullopt;
  }
  const std::string name = is_object ? at.value->members.front().key : at.value->string;
  const auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end()) {
    reader.report(at, "data.transform", fmt::format("unknown transform '{}'; expected one of {}", name, allowed),
                  did_you_mean(name, names));
    return std::nullopt;
  }
  const auto index = it - names.begin();
  const bool takes_argument = !transform_docs()[static_cast<std::size_t>(index)].argument.empty();
  if (takes_argument != is_object) {
    reader.report(
        at, "data.transform",
        fmt::format("'{}' takes {} argument; expected one of {}", name, takes_argument ? "an" : "no", allowed));
    return std::nullopt;
  }
  Step step{static_cast<Kind>(index), 1, 0};
  if (!is_object) return step;
  const json::Place value = at.member(at.value->members.front());
  if (step.kind == Kind::scale) {
    const std::optional<double> scale = reader.number(value);
    if (scale == 0) reader.report(value, "data.transform", "must not be 0");
    step.scale = scale.value_or(0);
    return step.scale != 0 ? std::optional(step) : std::nullopt;
  }
  step.classes = reader.integer(value, 1, std::numeric_limits<std::int32_t>::max()).value_or(0);
  return step.classes != 0 ? std::optional(step) : std::nullopt;
}

void Pipeline::read(json::Reader& reader, const json::Place& list, const InputDecl& input) {
  if (list.value->kind != json::Kind::array) {
    reader.report(list, "model.type", "must be an array of transforms");
    return;
  }
  bool is_coded = has(Kind::one_hot), is_standardized = has(Kind::standardize);
  for (std::size_t i = 0; i < list.value->items.size(); ++i) {
    const json::Place at = list.item(i);
    const std::optional<Step> step = read_step(reader, at);
    if (!step) continue;
    const bool numeric = step->kind == Kind::standardize || step->kind == Kind::scale;
    if (step->kind == Kind::one_hot && is_standardized)
      reader.report(at, "data.transform", "classes are not standardized");
    else if (is_coded && step->kind != Kind::flatten)
      reader.report(at, "data.transform", "only \"flatten\" can follow \"one_hot\"");
    else if (numeric && !is_float(input.dtype))
      reader.report(at, "data.transform",
                    fmt::format("input '{}' is {}; only f32 and f64 can be scaled", input.name, name_of(input.dtype)));
    else
      steps_.push_back(*step);
    is_coded = is_coded || step->kind == Kind::one_hot;
    is_standardized = is_standardized || step->kind == Kind::standardize;
  }
}

bool Pipeline::has(Kind kind) const {
  return std::any_of(steps_.begin(), steps_.end(), [&](const Step& step) { return step.kind == kind; });
}

// Classes have no units to go back to.
std::optional<Standardization> Pipeline::visible_record() const {
  return has(Kind::one_hot) ? std::nullopt : record_;
}

namespace {

// Calls f(row of the file, values), the values changed as the record says.
template <class F>
void for_each_row(const Column& column, const std::optional<Standardization>& record, F f) {
  const auto width = static_cast<std::size_t>(sample_of(*column.array).elements());
  std::vector<double> values(width);
  for (std::int64_t i = 0; i < column.rows.count; ++i) {
    const std::int64_t row = column.rows.row(i);
    std::visit(
        [&](const auto& stored) {
          const auto from = stored.begin() + static_cast<std::ptrdiff_t>(row * static_cast<std::int64_t>(width));
          std::copy(from, from + static_cast<std::ptrdiff_t>(width), values.begin());
        },
        column.array->values);
    if (record) {
      for (std::size_t c = 0; c < width; ++c) values[c] = (values[c] - record->shift[c]) / record->scale[c];
    }
    f(row, std::span<const double>(values));
  }
}

// Appends to the record what makes the columns' mean 0 and their deviation 1.
void standardize(const Column& train, Standardization& record, std::vector<std::string>& warnings) {
  const std::size_t width = record.shift.size();
  const auto rows = static_cast<double>(train.rows.count);
  std::vector<double> mean(width, 0), variance(width, 0);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> low(width, kInfinity), high(width, -kInfinity);
  for_each_row(train, record, [&](std::int64_t, std::span<const double> values) {
    for (std::size_t c = 0; c < width; ++c) {
      mean[c] += values[c];
      low[c] = std::min(low[c], values[c]);
      high[c] = std::max(high[c], values[c]);
    }
  });
  for (double& m : mean) m /= rows;
  for_each_row(train, record, [&](std::int64_t, std::span<const double> values) {
    for (std::size_t c = 0; c < width; ++c) variance[c] += (values[c] - mean[c]) * (values[c] - mean[c]);
  });
  for (std::size_t c = 0; c < width; ++c) {
    double shift = mean[c], divide = std::sqrt(variance[c] / rows);
    // Equal values are told by comparing them: rounding may leave a variance that is not 0.
    if (low[c] == high[c] || !(divide > 0)) {
      if (low[c] == high[c]) shift = low[c];
      divide = 1;
      const std::vector<std::string>& names = train.array->columns;
      warnings.push_back(fmt::format("input '{}': column {} is constant in train; it is centred and its scale is 1",
                                     record.input,
                                     c < names.size() ? fmt::format("'{}'", names[c]) : std::to_string(c)));
    }
    record.shift[c] += record.scale[c] * shift;
    record.scale[c] *= divide;
  }
}

Standardization unchanged(const std::string& input, std::size_t width) {
  require_within_input_limit(saturating_product(width, 8 * sizeof(double)),
                             fmt::format("the shifts and scales of '{}'", input));
  return {input, std::vector<double>(width, 0), std::vector<double>(width, 1)};
}

}  // namespace

std::optional<Standardization> Pipeline::fit(const Column& train, const std::string& input,
                                             std::vector<std::string>& warnings) {
  if (!has(Kind::scale) && !has(Kind::standardize)) return std::nullopt;
  record_ = unchanged(input, static_cast<std::size_t>(sample_of(*train.array).elements()));
  for (const Step& step : steps_) {
    if (step.kind == Kind::scale) {
      for (double& scale : record_->scale) scale /= step.scale;
    } else if (step.kind == Kind::standardize) {
      standardize(train, *record_, warnings);
    }
  }
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

// What the list alone says of the record.
Standardization Pipeline::known_record(const InputDecl& input) const {
  Standardization record = unchanged(input.name, static_cast<std::size_t>(input.sample.elements()));
  for (const Step& step : steps_) {
    if (step.kind != Kind::scale) continue;
    for (double& scale : record.scale) scale /= step.scale;
  }
  return record;
}

std::optional<Standardization> Pipeline::unfitted(const InputDecl& input) const {
  if (!has(Kind::scale) && !has(Kind::standardize)) return std::nullopt;
  Pipeline copy = *this;
  copy.record_ = known_record(input);
  const auto of_name = static_cast<double>(fnv1a(std::as_bytes(std::span(input.name))) >> 44);
  for (std::size_t c = 0; has(Kind::standardize) && c < copy.record_->shift.size(); ++c) {
    copy.record_->shift[c] = of_name + 0.25 + static_cast<double>(c);
    copy.record_->scale[c] = of_name + 0.75 + static_cast<double>(c);
  }
  return copy.visible_record();
}

std::optional<Standardization> Pipeline::adopt(const Standardization* given, const InputDecl& input) {
  const std::optional<Standardization> expected = unfitted(input);
  if (!expected && !given) {
    if (has(Kind::scale)) record_ = known_record(input);  // in front of "one_hot": the list says it all
    return std::nullopt;
  }
  const auto refuse = [&](fmt::format_string<const std::string&> why) {
    fail("weights.fitted", fmt::format(why, input.name), "the list of transforms must be that of the training");
  };
  if (!expected) refuse("the weights go with values of '{}' that were changed; here they are not");
  if (!given) refuse("the weights come without the numbers by which '{}' was changed");
  const bool is_known = !has(Kind::standardize);  // then the list says it all
  if (given->shift.size() != expected->shift.size() ||
      (is_known && (given->shift != expected->shift || given->scale != expected->scale)))
    refuse("the weights go with values of '{}' that were changed in another way");
  record_ = *given;
  return record_;
}

void Pipeline::check(const Column& column, const std::string& split, const InputDecl& input) const {
  const std::string where = fmt::format("input '{}' of {}", input.name, split);
  Shape sample = sample_of(*column.array);
  for (const Step& step : steps_) {
    if (step.kind == Kind::flatten) {
      sample = Shape{sample.elements()};
    } else if (step.kind == Kind::one_hot) {
      if (sample.elements() != 1) {
        fail("data.transform",
             fmt::format("{}: \"one_hot\" needs one integer a row, got {}", where, batch_shape(sample)));
      }
      sample = Shape{step.classes};
    }
  }
  const auto one = [](const Shape& shape) { return shape == Shape{} || shape == Shape{1}; };
  if (sample == input.sample || (one(sample) && one(input.sample))) return;
  fail("data.shape",
       fmt::format("{}: declared {}, but the data are {}", where, batch_shape(input.sample), batch_shape(sample)),
       sample.elements() == input.sample.elements() && input.sample.rank() == 1
           ? fmt::format("\"transform\": {{\"{}\": [\"flatten\"]}} makes them one", input.name)
           : "");
}

HostTensor Pipeline::apply(const Column& column, const std::string& split, const InputDecl& input) const {
  check(column, split, input);
  const std::string where = fmt::format("input '{}' of {}", input.name, split);
  std::int64_t classes = 0;
  for (const Step& step : steps_) {
    if (step.kind == Kind::one_hot) classes = step.classes;
  }
  Shape shape{column.rows.count};
  for (const std::int64_t extent : input.sample.dims()) shape.push_back(extent);
  require_within_input_limit(saturating_product(static_cast<std::uint64_t>(shape.elements()), size_of(input.dtype)),
                             where);
  HostTensor tensor(input.dtype, shape);
  with_elements(tensor, [&]<class T>(std::span<T> out) {
    std::size_t next = 0;
    for_each_row(column, record_, [&](std::int64_t row, std::span<const double> values) {
      if (classes == 0) {
        for (std::size_t c = 0; c < values.size(); ++c)
          out[next++] = converted<T>(values[c], name_of(input.dtype), where, row, c);
        return;
      }
      const double value = values[0];
      if (!(value >= 0 && value < static_cast<double>(classes) && value == std::floor(value))) {
        fail("data.value", fmt::format("{}: row {}: {} is no class from 0 to {}", where, row, value, classes - 1));
      }
      out[next + static_cast<std::size_t>(value)] = T{1};
      next += static_cast<std::size_t>(classes);
    });
  });
  for (const ClassRange& range : input.classes) {
    check_classes(range, tensor, where, [&](std::int64_t row) { return column.rows.row(row); });
  }
  return tensor;
}

}  // namespace graphrun::data
