#include "data/sources/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <unordered_set>

#include "base/input_limit.h"
#include "data/sources/formula.h"
#include "data/transforms/column_transforms.h"
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
bool is_formula(const json::Ref& at, const Table& table) {
  return at.value->kind == json::Kind::string && !table.find(at.value->string);
}

// A column or a formula.
struct Item {
  json::Ref place;
  bool is_formula = false;
  std::vector<const NamedArray*> arrays = {};  // named arrays
  bool good = true;                            // false: an error was reported
};

// Input selection of a split: "x": ["a", "log(b)"], "y": "price" or "y": "sin(a) + b".
struct Choice {
  bool is_said = false;
  bool is_list = false;  // list items are concatenated
  json::Ref place;
  std::vector<Item> items;

  bool good() const {
    return std::all_of(items.begin(), items.end(), [](const Item& item) { return item.good; });
  }
  bool names_one_column() const { return items.size() == 1 && !items.front().is_formula; }
};

void report_several(json::Reader& reader, const json::Ref& at) {
  reader.report(at, "data.column", "only one input can take the columns that are left; list those of the others");
}

void report_no_single(json::Reader& reader, const json::Ref& at, const std::string& input) {
  reader.report(
      at, "data.transform",
      fmt::format("only a single column can become classes; input '{}' takes a formula or several columns", input),
      "under the name of a column, \"transform\" changes that column");
}

void report_missing(json::Reader& reader, const json::Ref& at, const Table& table, const std::string& input) {
  if (reader.full()) return reader.report_more(1);
  reader.report(at, "data.missing_input",
                table.arrays.empty()
                    ? fmt::format("no array for input '{}'", input)
                    : fmt::format("no array for input '{}'; the source has {}", input, listed(table.names())),
                did_you_mean(input, table.names()));
}

void report_empty_list(json::Reader& reader, const json::Ref& at) {
  reader.report(at, "data.column", "the list names no column");
}

class Chooser {
 public:
  Chooser(json::Reader& reader, const Table& table, const DataOptions& options, const FitContext& fit)
      : reader_(reader), table_(table), options_(options), fit_(fit) {}

  Choice read_choice(const json::Ref& at) {
    Choice choice{true, at.value->kind == json::Kind::array, at, {}};
    if (!choice.is_list) {
      choice.items.push_back(read_item(at));
      return choice;
    }
    for (std::size_t i = 0; i < at.value->items.size(); ++i) {
      const json::Ref item = at.item(i);
      choice.items.push_back(is_one_word(item) ? read_column(item) : read_item(item));
    }
    if (!choice.items.empty()) return choice;
    report_empty_list(reader_, at);
    choice.items.push_back({at, false, {}, false});
    return choice;
  }

  ArrayPtr array_of(const Choice& choice, const std::string& input) {
    if (!choice.good()) return nullptr;
    if (!choice.is_list) return array_of(choice.items.front(), input);
    std::vector<ArrayPtr> arrays;
    std::vector<std::string> names;
    for (const Item& item : choice.items) {
      arrays.push_back(array_of(item, input));
      if (!arrays.back()) return nullptr;
      names.push_back(item.is_formula ? item.place.value->string : item.arrays.front()->name);
    }
    return side_by_side(choice.place, names, std::move(arrays));
  }

  ArrayPtr array_of(const Item& item, const std::string& input) {
    if (!item.is_formula) return read(*item.arrays.front());
    std::vector<FormulaColumn> columns;
    for (const NamedArray* named : item.arrays) {
      const ArrayPtr array = read(*named);
      if (!array) return nullptr;
      if (!columns.empty() && columns.front().array->rows() != array->rows()) {
        reader_.report(item.place, "data.rows",
                       fmt::format("'{}' has {} rows, but '{}' has {}", columns.front().name,
                                   columns.front().array->rows(), named->name, array->rows()));
        return nullptr;
      }
      columns.push_back({named->name, array});
    }
    return computed(item.place, input, columns);
  }

  ArrayPtr read(const NamedArray& named) {
    static const ColumnTransforms kNone;
    const ColumnTransforms& transforms = fit_.columns ? *fit_.columns : kNone;
    return attempt(named, [&] {
      return options_.use == DataUse::values ? transforms.numbers_of(named, fit_) : transforms.shape_of(named, fit_);
    });
  }

  // Classes of a categorical column, for an input whose list starts with a class step.
  ArrayPtr read_classes(const NamedArray& named, const ClassStep& step, const std::string& input) {
    return attempt(named, [&]() -> ArrayPtr {
      if (options_.use == DataUse::values) return classes_of(named, step, input, fit_);
      if (named.cells) return std::make_shared<const Array>(Array{Shape{named.cells->rows()}, {}});
      const ArrayPtr array = ColumnTransforms().shape_of(named, fit_);
      if (!array || array->shape.rank() == 0) return array;
      require_one_number_a_row(named.name, array->shape);
      return std::make_shared<const Array>(Array{Shape{array->rows()}, {}});
    });
  }

  // Columns that the input used in training; nothing if one is missing, which is reported.
  std::optional<std::vector<const NamedArray*>> named(const json::Ref& at, const std::vector<std::string>& names) {
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

  ArrayPtr side_by_side(const json::Ref& at, const std::vector<const NamedArray*>& columns) {
    std::vector<ArrayPtr> arrays;
    std::vector<std::string> names;
    for (const NamedArray* column : columns) {
      arrays.push_back(read(*column));
      if (!arrays.back()) return nullptr;
      names.push_back(column->name);
    }
    return side_by_side(at, names, std::move(arrays));
  }

 private:
  Item read_item(const json::Ref& at) {
    if (is_formula(at, table_)) {
      const auto named = formulas_of(options_).columns(reader_, at, table_);
      return {at, true, named.value_or(std::vector<const NamedArray*>()), named.has_value()};
    }
    return read_column(at);
  }

  // In a list, a single word is a column, never a formula, so a misspelled one is reported as a column name.
  static bool is_one_word(const json::Ref& at) {
    const std::string& text = at.value->string;
    return std::all_of(text.begin(), text.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
    });
  }

  Item read_column(const json::Ref& at) {
    const std::optional<std::string> name = reader_.string(at);
    const NamedArray* array = name ? table_.find(*name) : nullptr;
    if (array) return Item{at, false, {array}};
    if (name) report_unknown(at, *name);
    return Item{at, false, {}, false};
  }

  template <class F>
  ArrayPtr attempt(const NamedArray& named, F f) {
    fit_.files.report_progress(fmt::format("reading the values of '{}'", named.name));
    try {
      ArrayPtr array = f();
      if (!array || array->shape.rank() > 0) return array;
      reader_.report(named.place, "data.shape", fmt::format("array '{}' is one number; it has no rows", named.name));
    } catch (const Error& error) {
      reader_.report(named.place, error);
    }
    return nullptr;
  }

  // Concatenates columns of (rows) or (rows, k) to (rows, sum of k).
  ArrayPtr side_by_side(const json::Ref& at, const std::vector<std::string>& labels, std::vector<ArrayPtr> arrays) {
    Array together{Shape{arrays.front()->rows(), 0}, {}};
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const Array& array = *arrays[i];
      if (array.shape.rank() > 2 || array.rows() != together.rows()) {
        reader_.report(
            at, "data.shape",
            fmt::format("'{}' is {}; only columns of equal length can be joined", labels[i], to_string(array.shape)));
        return nullptr;
      }
      const std::int64_t own = array.shape.rank() == 1 ? 1 : array.shape[1];
      const bool has_names = static_cast<std::int64_t>(array.columns.size()) == own;
      for (std::int64_t c = 0; c < own; ++c) {
        together.columns.push_back(has_names                 ? array.columns[static_cast<std::size_t>(c)]
                                   : array.shape.rank() == 1 ? labels[i]
                                                             : fmt::format("{}[{}]", labels[i], c));
      }
      together.shape[1] += own;
      together.width_known = together.width_known && array.width_known;
    }
    if (options_.use == DataUse::values) {
      together.values = values_side_by_side(static_cast<std::size_t>(together.shape[1]),
                                            [&, i = std::size_t{0}]() mutable { return std::move(arrays[i++]); });
    }
    return std::make_shared<const Array>(std::move(together));
  }

  void report_unknown(const json::Ref& at, const std::string& name) {
    if (reader_.full()) return reader_.report_more(1);
    reader_.report(at, "data.column", fmt::format("no column '{}'; the source has {}", name, listed(table_.names())),
                   did_you_mean(name, table_.names()));
  }

  // Statistics of a formula are keyed by its text, so formulas never share them.
  ArrayPtr computed(const json::Ref& formula, const std::string& input, const std::vector<FormulaColumn>& columns) {
    const auto name = [&](std::size_t i) {
      return fmt::format("{}:aggregate.{} of {}", input, i, formula.value->string);
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
    ArrayPtr array = formulas_of(options_).evaluate(reader_, formula, columns, train, aggregates);
    for (std::size_t i = 0; train && i < aggregates.size(); ++i) fit_.fit.set(name(i), aggregates[i]);
    return array;
  }

  json::Reader& reader_;
  const Table& table_;
  const DataOptions& options_;
  const FitContext& fit_;
};

}  // namespace

std::vector<ArrayPtr> arrays_of(json::Reader& reader, const json::Ref& at, const Table& table,
                                std::span<const InputDecl> inputs, const std::vector<std::optional<json::Ref>>& said,
                                const DataOptions& options, const FitContext& fit, std::span<Pipeline> pipelines) {
  Chooser chooser(reader, table, options, fit);
  std::vector<Choice> choices(inputs.size());
  std::size_t open = 0;  // inputs without formula or list
  bool all_good = true;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (said[i])
      choices[i] = chooser.read_choice(*said[i]);
    else
      ++open;
    all_good = all_good && choices[i].good();
  }
  std::unordered_set<const NamedArray*> taken;  // columns named in formulas or lists
  for (const Choice& choice : choices) {
    for (const Item& item : choice.items) {
      for (const NamedArray* array : item.arrays) taken.insert(array->made_of ? array->made_of : array);
    }
  }
  std::vector<const NamedArray*> free;
  for (std::size_t i = 0; i < table.arrays.size(); ++i) {
    if (!taken.contains(&table.arrays[i])) free.push_back(&table.arrays[i]);
  }
  std::vector<ArrayPtr> arrays(inputs.size());
  if (!table.keyed && open > 1) {
    report_several(reader, at);
    return arrays;
  }
  for (std::size_t i = 0; i < inputs.size() && !table.keyed && all_good; ++i) {
    if (choices[i].is_said) continue;
    auto& known = fit.fit.provenance.columns;
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
    const auto is_open = [&](const std::string& name) {  // takes it by name, or all that is left
      return open > 0 && (!table.keyed || std::any_of(inputs.begin(), inputs.end(),
                                                      [&](const InputDecl& input) { return input.name == name; }));
    };
    for (std::size_t i = 0; i < table.arrays.size(); ++i) {
      if (taken.contains(&table.arrays[i]) || is_open(table.arrays[i].name)) used.push_back(i);
    }
    try {
      table.use(used);
    } catch (const Error& error) {
      reader.report(at, error);
      return arrays;
    }
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Pipeline* pipeline = i < pipelines.size() ? &pipelines[i] : nullptr;
    const ClassStep* classes = pipeline ? pipeline->class_step() : nullptr;
    const NamedArray* array = choices[i].is_said || !table.keyed ? nullptr : table.find(inputs[i].name);
    if (classes) {
      if (choices[i].names_one_column() && choices[i].good()) array = choices[i].items.front().arrays.front();
      if (!choices[i].is_said && !table.keyed && free.size() == 1) array = free.front();
    }
    if (array && classes) {
      arrays[i] = chooser.read_classes(*array, *classes, inputs[i].name);
      const auto words = labels_of(*classes, inputs[i].name, fit.fit.provenance);
      if (words) pipeline->set_classes(words->size());
    } else if (classes && all_good && (choices[i].is_said || !table.keyed)) {
      report_no_single(reader, choices[i].is_said ? choices[i].place : at, inputs[i].name);
    } else if (choices[i].is_said) {
      arrays[i] = chooser.array_of(choices[i], inputs[i].name);
    } else if (!table.keyed) {
      // The remaining columns are unknown if the selection of another input failed.
      if (free.empty() && all_good)
        reader.report(at, "data.column", fmt::format("no column is left for input '{}'", inputs[i].name),
                      fmt::format("every column is named by a formula or a list; say which it takes: \"{}\": [\"{}\"]",
                                  inputs[i].name, table.arrays.front().name));
      else if (all_good)
        arrays[i] = chooser.side_by_side(at, free);
    } else if (array) {
      arrays[i] = chooser.read(*array);
    } else {
      report_missing(reader, at, table, inputs[i].name);
    }
  }
  return arrays;
}

void check_choices(json::Reader& reader, const json::Ref& at, const Table& table, std::span<const InputDecl> inputs,
                   const std::vector<std::optional<json::Ref>>& said, std::span<const Pipeline> pipelines) {
  std::size_t open = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!said[i]) {
      ++open;
      if (table.keyed && !table.arrays.empty() && !table.find(inputs[i].name))
        report_missing(reader, at, table, inputs[i].name);
      continue;
    }
    const json::Ref& choice = *said[i];
    const std::vector<json::Value>& items = choice.value->items;
    if (choice.value->kind != json::Kind::array) reader.string(choice);
    if (choice.value->kind == json::Kind::array && items.empty()) report_empty_list(reader, choice);
    const std::size_t before = reader.errors();
    for (std::size_t k = 0; k < items.size(); ++k) reader.string(choice.item(k));
    const bool has_classes = i < pipelines.size() && pipelines[i].class_step() != nullptr;
    if (has_classes && items.size() > 1 && reader.errors() == before) report_no_single(reader, choice, inputs[i].name);
  }
  if (!table.keyed && open > 1) report_several(reader, at);
}

}  // namespace graphrun::data
