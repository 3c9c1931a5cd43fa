#include "data/csv/missing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>

#include "base/text.h"
#include "graphrun/error.h"

namespace graphrun::data {

std::span<const Doc> missing_docs() {
  static constexpr Doc docs[] = {
      // Same order as Missing::Kind.
      {"error", "a missing value is an error"},
      {"drop", "a row that lacks a value of a column that is used is left out"},
      {"mean", "the mean of the column's values in the training rows takes its place"},
      {"median", "their median"},
      {"most_frequent", "the most frequent of them; of words too"},
  };
  return docs;
}

std::optional<Missing> read_missing(json::Reader& reader, const json::Ref& at) {
  const std::vector<std::string> words = names_of(missing_docs());
  json::Ref value = at;
  if (at.value->kind == json::Kind::object) {
    json::ObjectReader object(reader, at);
    const std::optional<json::Ref> given = object.require("value", "a word or a number that takes the place");
    object.finish();
    if (!given) return std::nullopt;
    if (given->value->kind == json::Kind::string) return Missing{Missing::Kind::value, given->value->string};
    value = *given;
  }
  if (value.value->kind != json::Kind::string) {
    const std::optional<double> number = reader.number(value);
    return number ? std::optional(Missing{Missing::Kind::value, fmt::format("{}", *number)}) : std::nullopt;
  }
  const std::string& word = value.value->string;
  const auto found = std::find(words.begin(), words.end(), word);
  if (found != words.end()) return Missing{static_cast<Missing::Kind>(found - words.begin()), {}};
  reader.report(
      value, "data.csv",
      fmt::format("must be \"{}\", a number or {{\"value\": ...}}, got \"{}\"", fmt::join(words, "\", \""), word),
      did_you_mean(word, words));
  return std::nullopt;
}

std::vector<Missing> read_missing(json::Reader& reader, const json::Ref& at, const std::vector<std::string>& names,
                                  bool others) {
  std::vector<Missing> missing(names.size());
  // {"value": "median"} is about a column of that name, and so is "value" among others.
  const json::Member* value = at.value->find("value");
  const std::vector<std::string> policies = names_of(missing_docs());
  const bool is_column = value && (at.value->members.size() > 1 || value->value.kind == json::Kind::object ||
                                   std::find(policies.begin(), policies.end(), value->value.string) != policies.end());
  if (at.value->kind != json::Kind::object || (value && !is_column)) {
    if (const std::optional<Missing> all = read_missing(reader, at)) std::fill(missing.begin(), missing.end(), *all);
    return missing;
  }
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < names.size(); ++i) places.emplace(names[i], i);
  for (const json::Member& member : at.value->members) {
    const std::optional<Missing> one = read_missing(reader, at.member(member));
    const auto place = places.find(member.key);
    if (place != places.end() && one) missing[place->second] = *one;
    if (place == places.end() && !others)
      reader.report_key(at, member, "data.column", fmt::format("no column '{}'", member.key),
                        did_you_mean(member.key, names));
  }
  return missing;
}

NamedArray column_of(std::string name, const json::Ref& place, std::shared_ptr<const Cells> cells, Missing missing) {
  const bool is_filled = missing.is_filled();
  const auto read = [cells, is_filled, name, is_other = missing.is_other] {
    std::vector<double> values(static_cast<std::size_t>(cells->rows()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto row = static_cast<std::int64_t>(i);
      if (!cells->is_missing(row))
        values[i] = cells->number(row);
      else if (is_filled)
        values[i] = std::numeric_limits<double>::quiet_NaN();
      else
        cells->fail(
            row, "the value is missing",
            is_other
                ? fmt::format("the model was trained without imputation of '{0}': write \"missing\": "
                              "{{\"{0}\": \"mean\"}} next to the file name and train again",
                              name)
                : fmt::format("\"missing\": {{\"{}\": \"mean\"}} or \"drop\" next to the file name handles it", name));
    }
    const auto rows = static_cast<std::int64_t>(values.size());
    return std::make_shared<const Array>(Array{Shape{rows}, std::move(values)});
  };
  return {name, place, read, {}, cells, std::move(missing)};
}

namespace {

std::string_view word_of(Missing::Kind kind) {
  return missing_docs()[static_cast<std::size_t>(kind)].name;
}

double median_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

double most_frequent_of(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  double best = values.front();
  std::size_t most = 0;
  for (std::size_t i = 0, end = 0; i < values.size(); i = end) {
    for (end = i; end < values.size() && values[end] == values[i];) ++end;
    if (end - i > most) most = end - i, best = values[i];
  }
  return best;
}

// Imputed number, computed from the training rows.
double number_of(Missing::Kind kind, std::vector<double>& values) {
  if (kind == Missing::Kind::median) return median_of(values);
  if (kind == Missing::Kind::most_frequent) return most_frequent_of(values);
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

[[noreturn]] void fail_empty(const std::string& column) {
  throw Error(ErrorKind::input, "data.csv", fmt::format("column '{}' has no value in the training rows", column));
}

[[noreturn]] void fail_unfitted(const std::string& column, std::int64_t gaps, std::string_view what,
                                const FitContext& table) {
  throw Error(ErrorKind::input, "data.csv",
              fmt::format("column '{}' lacks {} value{}, and no {} of it was fitted to the training rows", column, gaps,
                          gaps == 1 ? "" : "s", what),
              table.fit.is_given()
                  ? fmt::format("the weights must come from a training with \"missing\": \"{}\"", what)
                  : fmt::format("the source of the training split must say \"missing\": \"{}\" too", what));
}

void warn_of_gaps(const std::string& column, std::int64_t gaps, const std::string& became, const FitContext& table) {
  table.files.warn(
      fmt::format("column '{}': {} missing value{} became {}", column, gaps, gaps == 1 ? "" : "s", became));
}

double value_of(const NamedArray& column) {
  const std::string& text = column.missing.value;
  if (const std::optional<double> value = parse_number<double>(text)) return *value;
  throw Error(ErrorKind::input, "data.csv",
              fmt::format("column '{}': '{}' cannot replace missing values: it is not a number", column.name, text));
}

}  // namespace

void warn_of_dropped(Files& files, std::int64_t count, std::int64_t rows) {
  if (count == rows) throw Error(ErrorKind::input, "data.csv", "every row lacks a value: \"drop\" leaves none");
  if (count > 0) files.warn(fmt::format("{} of {} rows lack a value and are left out", count, rows));
}

ArrayPtr fill_gaps(const NamedArray& column, const ArrayPtr& array, const FitContext& table) {
  if (!column.missing.is_filled() || array->rows() == 0) return array;
  const auto& values = std::get<std::vector<double>>(array->values);
  const std::size_t width = values.size() / static_cast<std::size_t>(array->rows());
  const bool is_given = column.missing.kind == Missing::Kind::value;
  const std::string_view what = is_given ? "value" : word_of(column.missing.kind);
  const std::string key = fmt::format("{}:{}", column.name, what);
  if (const std::optional<Rows> train = is_given ? std::nullopt : table.rows_to_fit(array->rows())) {
    std::vector<double> present, numbers;
    for (std::size_t c = 0; c < width; ++c) {
      present.clear();
      for (std::int64_t i = 0; i < train->count; ++i) {
        const double value = values[static_cast<std::size_t>(train->row(i)) * width + c];
        if (!std::isnan(value)) present.push_back(value);
      }
      if (present.empty()) fail_empty(width == 1 ? column.name : fmt::format("{}[{}]", column.name, c));
      numbers.push_back(number_of(column.missing.kind, present));
    }
    table.fit.set(key, std::move(numbers));
  }
  const std::vector<double>* fitted = is_given ? nullptr : table.fit.find(key);
  const auto gaps = std::count_if(values.begin(), values.end(), [](double value) { return std::isnan(value); });
  if (gaps == 0) return array;
  if (!is_given && !fitted) fail_unfitted(column.name, gaps, what, table);
  const std::vector<double> fill = is_given ? std::vector<double>(width, value_of(column)) : *fitted;
  if (fill.size() != width) fail_unfitted(column.name, gaps, what, table);
  auto filled = std::make_shared<Array>(*array);
  std::size_t at = 0;
  for (double& value : std::get<std::vector<double>>(filled->values)) {
    if (std::isnan(value)) value = fill[at % width];
    ++at;
  }
  warn_of_gaps(column.name, gaps,
               is_given     ? fmt::format("{}", fill.front())
               : width == 1 ? fmt::format("the {} of the training rows, {}", what, fill.front())
                            : fmt::format("the {} of the training rows", what),
               table);
  return filled;
}

namespace {

// A mark of a row belongs to the same row of every array.
void require_same_rows(const std::vector<char>& marks, const Array& array) {
  if (marks.empty() || std::ssize(marks) == array.rows()) return;
  throw Error(ErrorKind::input, "data.rows",
              fmt::format("\"missing\": \"drop\" needs arrays of the same number of rows, got {} and {}", marks.size(),
                          array.rows()));
}

// The array in double, without the dropped rows.
ArrayPtr remaining(const ArrayPtr& array, const std::vector<char>& dropped) {
  if (!array || array->shape.rank() == 0 || array->rows() == 0) return array;
  require_same_rows(dropped, *array);
  const auto rows = static_cast<std::size_t>(array->rows());
  std::vector<double> kept;
  std::visit(
      [&](const auto& values) {
        for (std::size_t i = 0; i < values.size(); ++i) {
          if (dropped.empty() || !dropped[i / (values.size() / rows)]) kept.push_back(static_cast<double>(values[i]));
        }
      },
      array->values);
  auto result = std::make_shared<Array>(Array{array->shape, std::move(kept), array->columns});
  if (!dropped.empty()) result->shape[0] = std::count(dropped.begin(), dropped.end(), 0);
  return result;
}

}  // namespace

void read_gaps(SourceContext& context, Table& table) {
  const std::optional<json::Ref> at = context.split.get("missing");
  if (!at) return;
  const auto missing = read_missing(context.reader, *at, table.names(), context.is_other || table.arrays.empty());
  const auto dropped = std::make_shared<std::vector<char>>();  // one per row; empty: all rows remain
  std::vector<std::function<ArrayPtr()>> dropping;
  for (std::size_t i = 0; i < missing.size(); ++i) {
    NamedArray& array = table.arrays[i];
    const bool drops = missing[i].kind == Missing::Kind::drop;
    if (!drops) array.missing = missing[i];
    array.read = [read = array.read, dropped] { return remaining(read(), *dropped); };
    dropping.push_back(drops && !context.is_other ? array.read : nullptr);
  }
  table.use = [dropping, dropped, files = &context.files](const std::vector<std::size_t>& used) {
    dropped->clear();
    std::vector<char> gaps;
    for (const std::size_t i : used) {
      const ArrayPtr array = dropping[i] ? dropping[i]() : nullptr;
      if (!array || array->shape.rank() == 0 || array->rows() == 0) continue;
      const auto& values = std::get<std::vector<double>>(array->values);
      require_same_rows(gaps, *array);
      gaps.resize(static_cast<std::size_t>(array->rows()));
      for (std::size_t k = 0; k < values.size(); ++k) {
        if (std::isnan(values[k])) gaps[k / (values.size() / gaps.size())] = 1;
      }
    }
    if (!gaps.empty()) warn_of_dropped(*files, std::count(gaps.begin(), gaps.end(), 1), std::ssize(gaps));
    *dropped = std::move(gaps);
  };
}

std::optional<std::string> word_for_gaps(const NamedArray& column, const FitContext& table) {
  const Cells& cells = *column.cells;
  const Missing::Kind kind = column.missing.kind;
  std::int64_t gaps = 0, first = 0;
  for (std::int64_t row = cells.rows(); row-- > 0;) {
    if (cells.is_missing(row)) ++gaps, first = row;
  }
  if (kind == Missing::Kind::value) {
    if (gaps > 0) warn_of_gaps(column.name, gaps, fmt::format("'{}'", column.missing.value), table);
    return column.missing.value;
  }
  auto& words = table.fit.provenance.words;
  if (kind == Missing::Kind::most_frequent) {
    if (const std::optional<Rows> train = table.rows_to_fit(cells.rows())) {
      std::map<std::string_view, std::int64_t> counts;
      for (std::int64_t i = 0; i < train->count; ++i) {
        if (!cells.is_missing(train->row(i))) ++counts[cells.text(train->row(i))];
      }
      if (counts.empty()) fail_empty(column.name);
      const auto most = std::max_element(counts.begin(), counts.end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
      words.emplace(column.name, most->first);
    }
  }
  if (gaps == 0) return std::nullopt;
  if (kind != Missing::Kind::most_frequent) {
    cells.fail(first,
               column.missing.is_filled() ? fmt::format("the value is missing, and words have no {}", word_of(kind))
                                          : "the value is missing",
               fmt::format("\"missing\": {{\"{}\": \"most_frequent\"}} or {{\"{}\": {{\"value\": \"none\"}}}} selects "
                           "a replacement",
                           column.name, column.name));
  }
  const auto fitted = words.find(column.name);
  if (fitted == words.end()) fail_unfitted(column.name, gaps, word_of(kind), table);
  warn_of_gaps(column.name, gaps, fmt::format("the most frequent of the training rows, '{}'", fitted->second), table);
  return fitted->second;
}

}  // namespace graphrun::data
