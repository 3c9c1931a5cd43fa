#include "data/csv/categories.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "base/input_limit.h"
#include "base/text.h"
#include "data/csv/missing.h"
#include "data/sources/columns.h"
#include "graphrun/error.h"

namespace graphrun::data {

std::string category_of(double number) {
  return fmt::format("{}", number == 0 ? 0.0 : number);
}

std::string category_of(std::string_view text) {
  const bool is_code = text.size() > 1 && text[0] == '0' && text[1] != '.';  // "007" is not a number
  const std::optional<double> number = parse_number<double>(text);
  return is_code || !number || !std::isfinite(*number) ? std::string(text) : category_of(*number);
}

std::optional<std::vector<std::string>> labels_of(const ClassStep& step, const std::string& key,
                                                  const Provenance& provenance) {
  std::vector<std::string> words = step.words;
  if (words.empty()) {
    const auto known = provenance.categories.find(key);
    if (known == provenance.categories.end()) return std::nullopt;
    words = known->second;
  }
  if (step.other) words.emplace_back(kOther);
  return words;
}

namespace {

// Column values, text or numeric, numbered by first appearance.
struct Numbered {
  std::vector<std::int32_t> numbers;  // one per row
  std::vector<std::string> words;     // category of each number
};

Numbered numbered(const NamedArray& column, const ArrayPtr& array, const FitContext& table) {
  Numbered result;
  std::unordered_map<std::string, std::int32_t> by_text;  // text as in the file
  std::unordered_map<std::string, std::int32_t> by_word;
  const auto number_of = [&](std::string word) {
    const auto [place, is_new] = by_word.try_emplace(word, static_cast<std::int32_t>(result.words.size()));
    if (is_new) result.words.push_back(std::move(word));
    return place->second;
  };
  const auto reserve = [&](std::int64_t rows) {
    require_within_input_limit(static_cast<std::uint64_t>(rows) * sizeof(std::int32_t),
                               fmt::format("the classes of '{}'", column.name));
    result.numbers.reserve(static_cast<std::size_t>(rows));
  };
  if (column.cells) {
    const Cells& cells = *column.cells;
    const std::optional<std::string> fill = word_for_gaps(column, table);
    reserve(cells.rows());
    std::string text;
    for (std::int64_t row = 0; row < cells.rows(); ++row) {
      text = fill && cells.is_missing(row) ? std::string_view(*fill) : cells.text(row);
      auto known = by_text.find(text);
      if (known == by_text.end()) known = by_text.emplace(text, number_of(category_of(text))).first;
      result.numbers.push_back(known->second);
    }
    return result;
  }
  reserve(array->rows());
  std::unordered_map<double, std::int32_t> by_value;
  std::visit(
      [&](const auto& values) {
        for (const auto value : values) {
          const auto number = static_cast<double>(value);
          auto known = by_value.find(number);
          if (known == by_value.end()) known = by_value.emplace(number, number_of(category_of(number))).first;
          result.numbers.push_back(known->second);
        }
      },
      array->values);
  return result;
}

// Categories of the training rows, in file order.
std::vector<std::string> categories_of(const Numbered& all, const Rows& train) {
  std::vector<std::int64_t> first(all.words.size(), -1);
  for (std::int64_t i = 0; i < train.count; ++i) {
    const std::int64_t row = train.row(i);
    std::int64_t& seen = first[static_cast<std::size_t>(all.numbers[static_cast<std::size_t>(row)])];
    if (seen < 0 || row < seen) seen = row;
  }
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first[i] >= 0) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return first[a] < first[b]; });
  std::vector<std::string> words;
  for (const std::size_t i : order) words.push_back(all.words[i]);
  return words;
}

// Final categories: from the model file, the weights, or the training rows.
const std::vector<std::string>& decide(const Numbered& all, const NamedArray& column, const ClassStep& step,
                                       const std::string& key, const FitContext& table) {
  auto& known = table.fit.provenance.categories;
  const auto before = known.find(key);
  if (before != known.end() && !step.words.empty() && before->second != step.words) {
    throw Error(ErrorKind::input, "weights.fitted",
                fmt::format("the weights go with other categories of '{}': {}", key, listed(before->second)),
                "the list of transforms must be that of the training");
  }
  if (before != known.end()) return before->second;
  if (!step.words.empty()) return known.emplace(key, step.words).first->second;
  const std::optional<Rows> train = table.rows_to_fit(static_cast<std::int64_t>(all.numbers.size()));
  if (!train) {
    throw Error(
        ErrorKind::input, "data.transform",
        fmt::format("the categories of '{}' are those of the training rows, and none were found there", column.name),
        table.fit.is_given() ? "the list of transforms must be that of the training" : "");
  }
  return known.emplace(key, categories_of(all, *train)).first->second;
}

[[noreturn]] void fail_unknown(const NamedArray& column, std::int64_t row, const std::string& word,
                               const std::vector<std::string>& categories, const std::string& key) {
  const std::string what = fmt::format("'{}' is not one of the categories {}", word.substr(0, 40), listed(categories));
  std::string hint = did_you_mean(word, categories);
  if (hint.empty())
    hint = fmt::format(
        "\"transform\": {{\"{}\": [{{\"one_hot\": {{\"other\": true}}}}]}} makes one category of all others", key);
  if (column.cells) column.cells->fail(row, what, std::move(hint));
  throw Error(ErrorKind::input, "data.value", fmt::format("'{}': row {}: {}", column.name, row, what), std::move(hint));
}

// Class weights in training: given, or balanced so that every class has the same total weight.
std::vector<double> weights_of(const std::vector<std::int32_t>& classes, std::size_t count, const ClassStep& step,
                               const std::string& key, const FitContext& table) {
  if (!step.weights.empty()) return step.weights;
  const std::string name = key + ":class_weight";
  if (const std::optional<Rows> train = table.rows_to_fit(static_cast<std::int64_t>(classes.size()))) {
    std::vector<double> weights(count, 0);
    for (std::int64_t i = 0; i < train->count; ++i)
      ++weights[static_cast<std::size_t>(classes[static_cast<std::size_t>(train->row(i))])];
    for (double& weight : weights)
      weight = weight > 0 ? static_cast<double>(train->count) / (static_cast<double>(count) * weight) : 0;
    table.fit.set(name, std::move(weights));
  }
  const std::vector<double>* known = table.fit.find(name);
  if (known && known->size() == count) return *known;
  throw Error(ErrorKind::input, "data.transform",
              fmt::format("the class weights of '{}' are those of the training rows, and none were found there", key));
}

}  // namespace

void require_one_number_a_row(const std::string& name, const Shape& shape) {
  if (shape.elements() == shape[0]) return;
  throw Error(ErrorKind::input, "data.transform",
              fmt::format("'{}' has {} numbers a row; categories are made of one", name,
                          shape.elements() / std::max<std::int64_t>(shape[0], 1)));
}

ArrayPtr classes_of(const NamedArray& column, const ClassStep& step, const std::string& key, const FitContext& table) {
  const ArrayPtr array = column.cells ? nullptr : column.read();
  if (!column.cells) {
    if (!array || array->shape.rank() == 0) return array;  // the caller reports it
    require_one_number_a_row(column.name, array->shape);
  }
  Numbered all = numbered(column, array, table);
  const std::vector<std::string>& categories = decide(all, column, step, key, table);
  std::unordered_map<std::string_view, std::int32_t> places;
  for (std::size_t i = 0; i < categories.size(); ++i) places.emplace(categories[i], static_cast<std::int32_t>(i));
  std::vector<std::int32_t> moved(all.words.size(), -1);
  for (std::size_t i = 0; i < moved.size(); ++i) {
    const auto place = places.find(all.words[i]);
    if (place != places.end())
      moved[i] = place->second;
    else if (step.other)
      moved[i] = static_cast<std::int32_t>(categories.size());
  }
  for (std::size_t row = 0; row < all.numbers.size(); ++row) {
    std::int32_t& number = all.numbers[row];
    const std::int32_t place = moved[static_cast<std::size_t>(number)];
    if (place < 0 && !table.fit.accepts_unseen.contains(key))
      fail_unknown(column, static_cast<std::int64_t>(row), all.words[static_cast<std::size_t>(number)], categories,
                   key);
    number = place;
  }
  const Shape shape{static_cast<std::int64_t>(all.numbers.size())};
  const std::size_t count = categories.size() + (step.other ? 1 : 0);
  if (table.see) table.see({shape, all.numbers});
  if (!step.weighs) return std::make_shared<const Array>(Array{shape, std::move(all.numbers)});
  const std::vector<double> weights = weights_of(all.numbers, count, step, key, table);
  std::vector<double> values;
  values.reserve(all.numbers.size());
  for (const std::int32_t one : all.numbers) values.push_back(weights[static_cast<std::size_t>(one)]);
  return std::make_shared<const Array>(Array{shape, std::move(values)});
}

}  // namespace graphrun::data
