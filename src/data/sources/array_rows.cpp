#include "data/sources/array_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "data/csv/missing.h"
#include "data/sources/columns.h"
#include "graphrun/elements.h"
#include "graphrun/error.h"

namespace graphrun::data {
namespace {

// 0.1f is the category 0.1.
std::string word_of(double value) {
  const auto narrow = static_cast<float>(value);
  return static_cast<double>(narrow) == value ? category_of(fmt::format("{}", narrow)) : category_of(value);
}

// Column of a given array as cells. A class reads as its name, or as its number if there are no names.
class ArrayCells final : public Cells {
 public:
  ArrayCells(std::vector<double> values, std::vector<std::string> words, std::string where)
      : values_(std::move(values)), words_(std::move(words)), where_(std::move(where)) {}

  std::int64_t rows() const override { return static_cast<std::int64_t>(values_.size()); }
  bool is_missing(std::int64_t row) const override { return std::isnan(number(row)); }
  double number(std::int64_t row) const override { return values_[static_cast<std::size_t>(row)]; }
  std::string_view text(std::int64_t row) const override {
    const double value = number(row);
    text_ = word_of(value);
    const bool is_word = std::find(words_.begin(), words_.end(), text_) != words_.end();
    const bool is_number = value >= 0 && value < static_cast<double>(words_.size()) && value == std::floor(value);
    return !is_word && is_number ? std::string_view(words_[static_cast<std::size_t>(value)]) : std::string_view(text_);
  }
  Error error(std::int64_t row, std::string_view what, std::string hint) const override {
    return Error(ErrorKind::input, "data.value", fmt::format("{}: row {}: {}", where_, row, what), std::move(hint));
  }

 private:
  std::vector<double> values_;
  std::vector<std::string> words_;
  std::string where_;
  mutable std::string text_;
};

// Columns that an input lists; a formula in the list counts as a column of its result.
std::vector<std::string> listed_columns(const json::Value& said) {
  if (said.kind == json::Kind::string) return {said.string};
  std::vector<std::string> names;
  for (const json::Value& item : said.items) names.push_back(item.string);
  return names;
}

std::vector<double> every(std::size_t step, std::size_t first, const HostTensor& rows) {
  return with_elements(rows, [&](const auto values) {
    std::vector<double> column;
    for (std::size_t i = first; i < values.size(); i += step) column.push_back(static_cast<double>(values[i]));
    return column;
  });
}

}  // namespace

ArrayRows::ArrayRows(const json::Ref& block, std::span<const InputDecl> inputs, std::vector<Pipeline> pipelines,
                     ColumnTransforms transforms, const Provenance& provenance, bool is_fitted)
    : transforms_(std::move(transforms)), is_fitted_(is_fitted) {
  const json::Document nowhere = json::parse("", "{}");
  json::Reader silent(nowhere);  // errors were reported when the source was read
  const json::Member* source = nullptr;
  for (const char* key : {"source", "train"}) {
    if (const json::Member* own = block.value->find(key)) source = own;
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Input& input = inputs_.emplace_back(Input{inputs[i], std::move(pipelines[i]), {}, {}, false});
    // A row of a program is a whole window, not one number of each column.
    if (source && source->value.find("window") && !input.decl.is_target) continue;
    const json::Member* said = source ? source->value.find(input.decl.name) : nullptr;
    if (said) input.columns = listed_columns(said->value);
    if (const auto took = provenance.columns.find(input.decl.name); !said && took != provenance.columns.end())
      input.columns = took->second;
    if (input.columns.empty() || input.decl.sample.rank() > 1 || !is_float(input.decl.dtype)) continue;
    input.missing.resize(input.columns.size());
    if (const json::Member* missing = source->value.find("missing"))
      input.missing = read_missing(silent, block.member(*source).member(*missing), input.columns, true);
    for (std::size_t c = 0; c < input.columns.size(); ++c)
      input.is_changed = input.is_changed || input.missing[c].is_filled() || transforms_.find(input.columns[c]);
    const Pipeline* only = input.columns.size() == 1 ? transforms_.find(input.columns.front()) : nullptr;
    input.is_array = only && !only->makes_classes() && input.decl.sample.elements() > 1;
  }
}

std::vector<InputColumns> ArrayRows::columns(const Provenance& provenance) const {
  std::vector<InputColumns> all;
  for (const Input& input : inputs_) {
    const auto count = static_cast<std::int64_t>(input.columns.size());
    if (count == 0 || (!input.is_changed && count != input.decl.sample.elements())) continue;
    InputColumns& one = all.emplace_back(InputColumns{input.decl.name, input.columns, {}, {}});
    for (const std::string& column : input.columns) {
      one.words.push_back(transforms_.labels_of(column, provenance).value_or(std::vector<std::string>()));
      const Pipeline* pipeline = transforms_.find(column);
      std::size_t width = 1;
      if (pipeline && pipeline->is_one_hot())
        width = pipeline->class_step() ? one.words.back().size()
                                       : static_cast<std::size_t>(pipeline->result_of(Shape{1}, column)->elements());
      one.widths.push_back(width);
    }
  }
  return all;
}

const ArrayRows::Input* ArrayRows::find(std::string_view name) const {
  const auto found = std::find_if(inputs_.begin(), inputs_.end(), [&](const Input& i) { return i.decl.name == name; });
  return found == inputs_.end() ? nullptr : &*found;
}

std::int64_t ArrayRows::width(std::string_view input) const {
  const Input* found = find(input);
  if (found == nullptr || !found->is_changed) return 0;
  return found->is_array ? found->decl.sample.elements() : static_cast<std::int64_t>(found->columns.size());
}

Array ArrayRows::side_by_side(const Input& input, const HostTensor& given, const FitContext& table,
                              const std::string& where) const {
  const std::int64_t rows = given.shape()[0], count = given.shape().elements() / rows, wanted = width(input.decl.name);
  if (count != wanted) {
    throw Error(ErrorKind::input, "data.shape",
                fmt::format("{}: a row has {} numbers, not {}, one for each of {}", where, count, wanted,
                            listed(input.columns)));
  }
  if (input.is_array) {
    const auto whole = std::make_shared<const Array>(Array{given.shape(), every(1, 0, given)});
    return *transforms_.numbers_of({input.columns.front(), {}, [&] { return whole; }}, table);
  }
  const std::size_t columns = input.columns.size();
  std::vector<ArrayPtr> arrays;
  std::int64_t total = 0;
  for (std::size_t c = 0; c < columns; ++c) {
    const std::string& name = input.columns[c];
    auto words = transforms_.labels_of(name, table.fit.provenance).value_or(std::vector<std::string>());
    const Pipeline* pipeline = transforms_.find(name);
    if (words.empty() && table.train && pipeline && pipeline->class_step()) {  // numbers in ascending order
      const std::vector<double> values = every(columns, c, given);
      std::set<double> numbers;
      std::copy_if(values.begin(), values.end(), std::inserter(numbers, numbers.end()),
                   [](double x) { return x == x; });
      for (const double number : numbers) words.push_back(word_of(number));
      table.fit.provenance.categories.emplace(name, words);
    }
    const auto cells = std::make_shared<const ArrayCells>(every(columns, c, given), std::move(words),
                                                          fmt::format("{}, column '{}'", where, name));
    arrays.push_back(transforms_.numbers_of(column_of(name, {}, cells, input.missing[c]), table));
    total += arrays.back()->shape.elements() / rows;
  }
  Array all{Shape{rows, total}, std::vector<double>()};
  all.values = values_side_by_side(static_cast<std::size_t>(total),
                                   [&, i = std::size_t{0}]() mutable { return std::move(arrays[i++]); });
  if (input.decl.sample.rank() == 0) all.shape = Shape{rows};
  return all;
}

HostTensor ArrayRows::rows(std::string_view input, const HostTensor& given, FittedStatistics& fit,
                           const std::string& where) const {
  Files files{DataOptions()};
  const Input& known = *find(input);
  const Array array = side_by_side(known, given, {fit, files, &transforms_}, where);
  HostTensor changed(DType::f64, array.shape);
  const auto& values = std::get<std::vector<double>>(array.values);
  std::copy(values.begin(), values.end(), changed.elements<double>().begin());
  return changed;
}

void ArrayRows::change(DataSet& set) const {
  const auto is_given = [](const Split& split) { return !split.original.empty(); };
  if (std::none_of(set.splits.begin(), set.splits.end(), is_given)) return;
  const Split* const train = set.find("train");
  const bool fits = !is_fitted_ && train != nullptr && !train->original.empty();
  FittedStatistics fit(set);
  if (fits) {
    fit = FittedStatistics(fit.provenance.seed);
    fit.provenance.samples = train->samples();
  }
  Files files{DataOptions()};
  for (const Input& input : inputs_) {
    const std::string& name = input.decl.name;
    Pipeline pipeline = input.pipeline;
    if (pipeline.names().empty() && !input.is_changed) continue;
    std::vector<Split*> splits;  // training split first
    for (Split& split : set.splits) {
      if (std::find(split.original.begin(), split.original.end(), name) != split.original.end())
        splits.insert(split.name == "train" ? splits.begin() : splits.end(), &split);
    }
    if (splits.empty()) continue;
    const auto own = std::find_if(set.standardizations.begin(), set.standardizations.end(),
                                  [&](const Standardization& one) { return one.input == name; });
    std::optional<Standardization> record;
    if (own != set.standardizations.end()) record = *own;
    if (!fits) pipeline.adopt(record ? &*record : nullptr, input.decl);
    if (fits && pipeline.log() != LogTransform::none) fit.set(name + ":curve", {static_cast<double>(pipeline.log())});
    for (Split* split : splits) {
      auto column =
          std::find_if(split->columns.begin(), split->columns.end(), [&](auto& c) { return c.first == name; });
      const HostTensor& given = column->second;
      const std::string where = fmt::format("input '{}' of {}", name, split->name);
      const std::int64_t rows = given.shape().rank() > 0 ? given.shape()[0] : 0;
      // Class numbers and one-hot rows may be given in the graph's own layout.
      const bool fits_input = Shape(given.shape().dims().subspan(rows > 0 ? 1 : 0)) == input.decl.sample;
      const Pipeline* only = input.columns.size() == 1 ? transforms_.find(input.columns.front()) : nullptr;
      const bool are_classes = pipeline.makes_classes() || (only && only->makes_classes());
      const bool is_done = pipeline.class_step() || (are_classes && fits_input && input.decl.sample.elements() > 1);
      if (rows == 0 || is_done) continue;
      const bool trains = fits && split->name == "train";
      FitContext table{fit, files, &transforms_};
      if (trains) table.train = [](std::int64_t total) { return std::optional(Rows{0, total}); };
      const ArrayPtr array = std::make_shared<const Array>(input.is_changed ? side_by_side(input, given, table, where)
                                                                            : Array{given.shape(), every(1, 0, given)});
      if (trains) record = pipeline.fit({array, {0, rows}}, name, set.warnings);
      column->second = pipeline.apply({array, {0, rows}}, split->name, input.decl);
    }
    if (!fits) continue;
    std::erase_if(set.standardizations, [&](const Standardization& one) { return one.input == name; });
    if (record) set.standardizations.push_back(*record);
  }
  for (Split& split : set.splits) split.original.clear();
  set.warnings.insert(set.warnings.end(), files.warnings().begin(), files.warnings().end());
  if (!fits) return;
  set.fitted = fit.numbers();
  set.provenance = text(fit.provenance);
}

}  // namespace graphrun::data
