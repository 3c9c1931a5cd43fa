#include "data/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <unordered_set>

#include "base/input_limit.h"
#include "data/formula.h"
#include "graphrun/error.h"

namespace graphrun::data {

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  constexpr std::size_t kShown = 12;
  for (std::size_t i = 0; i < names.size() && i < kShown; ++i) text += (i > 0 ? ", " : "") + names[i];
  return names.size() > kShown ? text + fmt::format(" and {} more", names.size() - kShown) : text;
}

std::vector<double> values_side_by_side(std::size_t width, const std::function<ArrayPtr()>& next) {
  std::vector<double> values;
  for (std::size_t column = 0; column < width;) {
    const ArrayPtr array = next();
    const auto rows = static_cast<std::size_t>(array->rows());
    const auto own = static_cast<std::size_t>(array->shape.rank() == 1 ? 1 : array->shape[1]);
    if (values.empty()) {
      require_within_input_limit(saturating_product(rows, width * sizeof(double)),
                                 fmt::format("{} columns of {} rows side by side", width, rows));
      values.resize(rows * width);
    }
    std::visit(
        [&](const auto& from) {
          for (std::size_t r = 0; r < rows; ++r) {
            for (std::size_t c = 0; c < own; ++c)
              values[r * width + column + c] = static_cast<double>(from[r * own + c]);
          }
        },
        array->values);
    column += own;
  }
  return values;
}

namespace {

const Formulas& formulas_of(const DataOptions& options) {
  if (!options.formulas) throw std::logic_error("read_data: a formula, and nobody to evaluate it");
  return *options.formulas;
}

// A string that is not the name of a column.
bool is_formula(const json::Place& at, const Table& table) {
  return at.value->kind == json::Kind::string && !table.find(at.value->string);
}

// What a split says about an input beside its source: "x": ["a", "b"], "y": "price" or "y": "sin(a) + b".
struct Choice {
  enum class Kind { nothing, array, list, formula };
  Kind kind = Kind::nothing;
  json::Place place;
  std::vector<const NamedArray*> arrays;  // that it names
  bool good = true;                       // false: reported
};

class Chooser {
 public:
  Chooser(json::Reader& reader, const Table& table, const DataOptions& options, const TableFit& fit)
      : reader_(reader), table_(table), options_(options), fit_(fit) {}

  Choice read_choice(const json::Place& at) {
    if (is_formula(at, table_)) {
      const auto named = formulas_of(options_).columns(reader_, at, table_);
      return {Choice::Kind::formula, at, named.value_or(std::vector<const NamedArray*>()), named.has_value()};
    }
    const bool is_list = at.value->kind == json::Kind::array;
    Choice choice{is_list ? Choice::Kind::list : Choice::Kind::array, at, {}, true};
    if (!is_list) {
      add(choice, at);
      return choice;
    }
    if (at.value->items.empty()) {
      reader_.report(at, "data.column", "the list names no column");
      choice.good = false;
    }
    for (std::size_t i = 0; i < at.value->items.size(); ++i) add(choice, at.item(i));
    return choice;
  }

  ArrayPtr array_of(const Choice& choice, const std::string& input) {
    if (!choice.good) return nullptr;
    if (choice.kind == Choice::Kind::array) return read(*choice.arrays.front());
    if (choice.kind == Choice::Kind::list) return side_by_side(choice.place, choice.arrays);
    std::vector<FormulaColumn> columns;
    for (const NamedArray* named : choice.arrays) {
      const ArrayPtr array = read(*named);
      if (!array) return nullptr;
      if (!columns.empty() && columns.front().array->rows() != array->rows()) {
        reader_.report(choice.place, "data.rows",
                       fmt::format("'{}' has {} rows, but '{}' has {}", columns.front().name,
                                   columns.front().array->rows(), named->name, array->rows()));
        return nullptr;
      }
      columns.push_back({named->name, array});
    }
    return computed(choice, input, columns);
  }

  ArrayPtr read(const NamedArray& named) {
    if (options_.use != DataUse::values && named.shape && named.shape->rank() > 0)
      return std::make_shared<const Array>(Array{*named.shape, {}});
    try {
      const ArrayPtr array = named.read();
      if (array && array->shape.rank() == 0) {
        reader_.report(named.place, "data.shape", fmt::format("array '{}' is one number; it has no rows", named.name));
        return nullptr;
      }
      if (!array) return nullptr;
      if (options_.use != DataUse::values) return std::make_shared<const Array>(Array{array->shape, {}});
      if (fit_.see) fit_.see(*array);
      return named.has_gaps ? fill_gaps(named.name, array, fit_) : array;
    } catch (const Error& error) {
      reader_.report(named.place, error);
      return nullptr;
    }
  }

  // The columns that the input took when it was trained; nothing when one of them is not there, which is reported.
  std::optional<std::vector<const NamedArray*>> named(const json::Place& at, const std::vector<std::string>& names) {
    std::vector<const NamedArray*> columns;
    for (const std::string& name : names) {
      const NamedArray* array = table_.find(name);
      if (array)
        columns.push_back(array);
      else
        report_unknown(at, name);
    }
    if (columns.size() != names.size()) return std::nullopt;
    return columns;
  }

  // Columns of (rows) or (rows, k), side by side as (rows, sum of k).
  ArrayPtr side_by_side(const json::Place& at, const std::vector<const NamedArray*>& columns) {
    std::vector<ArrayPtr> arrays;
    std::vector<std::string> names;
    std::int64_t width = 0;
    for (const NamedArray* column : columns) {
      const ArrayPtr array = read(*column);
      if (!array) return nullptr;
      if (array->shape.rank() > 2 || (!arrays.empty() && arrays.front()->rows() != array->rows())) {
        reader_.report(at, "data.shape",
                       fmt::format("'{}' is {}; only columns of equal length can stand side by side", column->name,
                                   to_string(array->shape)));
        return nullptr;
      }
      const std::int64_t own = array->shape.rank() == 1 ? 1 : array->shape[1];
      for (std::int64_t i = 0; i < own; ++i)
        names.push_back(array->shape.rank() == 1 ? column->name : fmt::format("{}[{}]", column->name, i));
      width += own;
      arrays.push_back(array);
    }
    const std::int64_t rows = arrays.front()->rows();
    Array together{Shape{rows, width}, {}, std::move(names)};
    if (options_.use == DataUse::values) {
      together.values = values_side_by_side(static_cast<std::size_t>(width),
                                            [&, i = std::size_t{0}]() mutable { return std::move(arrays[i++]); });
    }
    return std::make_shared<const Array>(std::move(together));
  }

 private:
  void add(Choice& choice, const json::Place& item) {
    const std::optional<std::string> name = reader_.string(item);
    const NamedArray* array = name ? table_.find(*name) : nullptr;
    if (array)
      choice.arrays.push_back(array);
    else
      choice.good = false;
    if (name && !array) report_unknown(item, *name);
  }

  void report_unknown(const json::Place& at, const std::string& name) {
    if (reader_.full()) return reader_.report_more(1);
    reader_.report(at, "data.column", fmt::format("no column '{}'; the source has {}", name, listed(table_.names())),
                   did_you_mean(name, table_.names()));
  }

  // The numbers of a formula go by its text: those of another are not taken for them.
  ArrayPtr computed(const Choice& choice, const std::string& input, const std::vector<FormulaColumn>& columns) {
    const auto name = [&](std::size_t i) {
      return fmt::format("{}:aggregate.{} of {}", input, i, choice.place.value->string);
    };
    const bool has_values = options_.use == DataUse::values;
    const std::optional<Rows> train =
        has_values ? fit_.rows_to_fit(columns.front().array->rows()) : std::optional<Rows>();
    std::vector<std::vector<double>> aggregates;
    for (std::size_t i = 0; has_values && !train; ++i) {
      const std::vector<double>* known = fit_.fit.find(name(i));
      if (!known) break;
      aggregates.push_back(*known);
    }
    ArrayPtr array = formulas_of(options_).evaluate(reader_, choice.place, columns, train, aggregates);
    for (std::size_t i = 0; train && i < aggregates.size(); ++i) fit_.fit.set(name(i), aggregates[i]);
    return array;
  }

  json::Reader& reader_;
  const Table& table_;
  const DataOptions& options_;
  const TableFit& fit_;
};

}  // namespace

std::vector<ArrayPtr> arrays_of(json::Reader& reader, const json::Place& at, const Table& table,
                                std::span<const InputDecl> inputs, const std::vector<std::optional<json::Place>>& said,
                                const DataOptions& options, const TableFit& fit) {
  Chooser chooser(reader, table, options, fit);
  std::vector<Choice> choices(inputs.size());
  std::size_t open = 0;  // inputs with neither formula nor list
  bool all_good = true;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (said[i])
      choices[i] = chooser.read_choice(*said[i]);
    else
      ++open;
    all_good = all_good && choices[i].good;
  }
  std::unordered_set<const NamedArray*> taken;  // by a formula or a list
  for (const Choice& choice : choices) taken.insert(choice.arrays.begin(), choice.arrays.end());
  std::vector<const NamedArray*> free;
  for (std::size_t i = 0; i < table.arrays.size(); ++i) {
    if (!taken.contains(&table.arrays[i])) free.push_back(&table.arrays[i]);
  }
  std::vector<ArrayPtr> arrays(inputs.size());
  if (!table.keyed && open > 1) {
    reader.report(at, "data.column", "only one input can take the columns that are left; list those of the others");
    return arrays;
  }
  for (std::size_t i = 0; i < inputs.size() && !table.keyed && all_good; ++i) {
    if (choices[i].kind != Choice::Kind::nothing) continue;
    auto& known = fit.fit.origin.columns;
    if (const auto took = known.find(inputs[i].name); took != known.end()) {
      const auto columns = chooser.named(at, took->second);
      if (!columns) return arrays;
      free = *columns;
    } else if (fit.train) {
      for (const NamedArray* column : free) known[inputs[i].name].push_back(column->name);
    }
  }
  if (table.use) {
    std::vector<std::size_t> used;
    for (std::size_t i = 0; i < table.arrays.size(); ++i) {
      if (taken.contains(&table.arrays[i]) || open > 0) used.push_back(i);
    }
    try {
      table.use(used);
    } catch (const Error& error) {
      reader.report(at, error);
      return arrays;
    }
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (choices[i].kind != Choice::Kind::nothing) {
      arrays[i] = chooser.array_of(choices[i], inputs[i].name);
    } else if (!table.keyed) {
      // What is left is not known while another input's choice is not.
      if (free.empty() && all_good)
        reader.report(at, "data.column", fmt::format("no column is left for input '{}'", inputs[i].name),
                      fmt::format("every column is named by a formula or a list; say which it takes: \"{}\": [\"{}\"]",
                                  inputs[i].name, table.arrays.front().name));
      else if (all_good)
        arrays[i] = chooser.side_by_side(at, free);
    } else if (const NamedArray* array = table.find(inputs[i].name)) {
      arrays[i] = chooser.read(*array);
    } else if (reader.full()) {
      reader.report_more(1);
    } else {
      reader.report(at, "data.missing_input",
                    table.arrays.empty() ? fmt::format("no array for input '{}'", inputs[i].name)
                                         : fmt::format("no array for input '{}'; the source has {}", inputs[i].name,
                                                       listed(table.names())),
                    did_you_mean(inputs[i].name, table.names()));
    }
  }
  return arrays;
}

}  // namespace graphrun::data
