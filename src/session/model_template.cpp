#include "graphrun/model_template.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>

#include "base/json_text.h"
#include "base/names_of.h"
#include "base/text.h"
#include "data/csv/row_stream.h"
#include "data/csv/type_inference.h"
#include "data/sources/columns.h"
#include "graphrun/error.h"
#include "session/image_template.h"
#include "session/rows/row_format.h"

namespace graphrun {
namespace {

using data::InferredColumn;
using data::InferredTable;
using Kind = InferredColumn::Kind;

constexpr std::size_t kShownCategories = 12;  // plus "other"
constexpr std::int64_t kFewRows = 10;         // smaller categories may be absent from the training rows

// Minimum row counts for a test split, and for a validation split in addition.
constexpr std::int64_t kTestRows = 5, kValidationRows = 20;

// Times are meaningful for new rows: "sale_year" is not a row number.
bool names_time(const std::string& name) {
  constexpr std::string_view kTimes[] = {"year", "month", "week", "day", "hour", "time",
                                         "Year", "Month", "Week", "Day", "Hour", "Time"};
  return std::any_of(std::begin(kTimes), std::end(kTimes),
                     [&](std::string_view time) { return name.find(time) != std::string::npos; });
}

// Numbers in an unsupported notation, such as "$5": texts with digits and without letters.
bool holds_signs(const InferredColumn& column) {
  return column.kind == Kind::categorical &&
         std::all_of(column.categories.begin(), column.categories.end(), [](const auto& category) {
           const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
           return category.first.find_first_of("0123456789") != std::string::npos &&
                  std::none_of(category.first.begin(), category.first.end(), is_letter);
         });
}

json::Value text_value(std::string_view text) {
  return json::make(text);
}

// Item of the list of x, and its count of numbers per row.
struct Feature {
  std::string item;
  std::int64_t width = 1;
  json::Value transform = json::make_null();  // column transform; null: no transform
};

class ModelTemplateWriter {
 public:
  ModelTemplateWriter(const InferredTable& inferred, const InferredColumn& target, std::string source,
                      std::int64_t window)
      : inferred_(inferred), target_(target), source_(std::move(source)), window_(window) {}

  ModelTemplate write() {
    is_classification_ = target_.kind == Kind::categorical ||
                         (target_.kind == Kind::number && target_.categories.size() == 2 && rows() >= kTestRows);
    name_inputs();
    if (is_classification_) note_labels();
    if (is_classification_ && classes() < 3)
      note(
          fmt::format("probability, precision and recall are those of '{1}'; [\"{1}\", \"{0}\"] in \"classes\" makes "
                      "them those of '{0}'",
                      ordered_classes().front(), ordered_classes().back()));
    for (const data::InferredGap& gap : inferred_.gaps)
      note(fmt::format(
          "'{}' is read as a missing value ({}line {}, column '{}'): correct the file if it is an error, or "
          "keep it in \"na\"",
          gap.text, gap.count > 1 ? fmt::format("{} cells, first in ", gap.count) : "", gap.line, gap.column));
    check_window();
    for (const InferredColumn& column : inferred_.columns) {
      if (&column != &target_) take(column);
      if (&column == &target_ && window_ > 0 && column.kind == Kind::number)
        features_.insert(features_.begin(), {column.name, 1, json::make_array({text_value("standardize")})});
      if (holds_signs(column))
        note(fmt::format("column '{}' contains text, such as '{}'; to use it as numbers, remove the symbols from it",
                         column.name, column.example));
    }
    if (features_.empty()) take_counter();
    if (features_.empty())
      throw Error(ErrorKind::input, "init.columns", "no column is left to predict from",
                  result_.notes.empty() ? "" : result_.notes.front());
    json::Value data = json::make_object();
    json::add(data, "source", source());
    if (has_validation())
      json::add(data, "split", json::make_array({json::make(0.7), json::make(0.15), json::make(0.15)}));
    else if (has_test())
      json::add(data, "split", json::make_array({json::make(0.8), json::make(0.0), json::make(0.2)}));
    if (!has_validation())
      note(fmt::format("{} rows are too few for a {}split, so the model has no early stopping", rows(),
                       has_test() ? "validation " : ""));
    if (is_classification_ && window_ == 0 && rows() >= std::max(kTestRows, 2 * classes()))
      json::add(data, "stratify", text_value(y_));
    if (!time_.empty() && has_test()) json::add(data, "split_by", text_value(time_));
    json::add(data, "transform", transforms());

    json::Value model = json::make_object();
    json::add(model, "format", json::make(std::int64_t{1}));
    json::add(model, "name", text_value(std::filesystem::path(source_).stem().stem().string()));
    json::add(model, "data", std::move(data));
    const std::int64_t outputs = is_classification_ && classes() > 2 ? classes() : 1;
    json::add(model, "inputs",
              json::make_object({{x_, json::make_array({text_value("batch"), json::make(width())})},
                                 {y_, json::make_array({text_value("batch"), json::make(outputs)})}}));
    json::add(model, "graph", graph(outputs));
    json::add(model, "outputs", json::make_object({{output(), text_value(y_)}}));
    json::add(model, "train", train());
    result_.text = json::text(model);
    return std::move(result_);
  }

 private:
  void note(std::string text) { result_.notes.push_back(std::move(text)); }

  bool is_column(const std::string& name, bool or_target) const {
    return std::any_of(inferred_.columns.begin(), inferred_.columns.end(), [&](const InferredColumn& column) {
      return column.name == name && (or_target || &column != &target_);
    });
  }

  // A column with the name of an input would share the input's key in "transform".
  void name_inputs() {
    if (!is_column(x_, true) && !is_column(y_, false)) return;
    x_ = "features";
    y_ = "target";
    while (is_column(x_, true)) x_ += '_';
    while (is_column(y_, false)) y_ += '_';
    note(fmt::format("the model's inputs are named '{}' and '{}', because a column is named x or y", x_, y_));
  }

  std::int64_t rows() const { return inferred_.rows - target_.missing; }
  // With windows, 15 or 20 % of the rows must be longer than a window.
  bool has_validation() const { return rows() >= kValidationRows && (window_ == 0 || rows() * 15 / 100 > window_); }
  bool has_test() const { return rows() >= kTestRows && (window_ == 0 || rows() / 5 > window_); }
  std::int64_t classes() const { return static_cast<std::int64_t>(target_.categories.size()); }
  std::int64_t width() const {
    std::int64_t width = 0;
    for (const Feature& feature : features_) width += feature.width;
    return width * std::max<std::int64_t>(window_, 1);
  }
  std::string output() const { return !is_classification_ ? "y_hat" : classes() > 2 ? "logits" : "probability"; }

  static constexpr std::string_view kCounts =
      "it counts the rows; to use it, add it to the columns of the input, and add 1 to the width of the input";
  static std::string left_out(const InferredColumn& column, std::string_view why) {
    return fmt::format("column '{}' is omitted: {}", column.name, why);
  }

  bool is_ambiguous(const InferredColumn& column) const {
    return column.is_ambiguous && inferred_.dialect.notation.dates == data::DateOrder::unknown;
  }

  void check_window() const {
    const auto fail = [&](std::string why) {
      throw Error(ErrorKind::input, "init.window", fmt::format("--window {}: {}", window_, why));
    };
    if (window_ == 0) return;
    if (target_.missing > 0)
      fail(fmt::format("'{}' has no value in {} rows, and a window is of consecutive rows; fill them first",
                       target_.name, target_.missing));
    if (rows() <= window_)
      fail(fmt::format("the table has {} rows, and a window with its target takes {}", rows(), window_ + 1));
  }

  void take(const InferredColumn& column) {
    const auto leave = [&](std::string_view why) { note(left_out(column, why)); };
    if (window_ > 0 && column.kind == Kind::date && !column.is_repeated && time_.empty()) {
      const bool orders = column.missing == 0 && column.is_unique && !is_ambiguous(column);
      if (!orders) return leave("its dates are missing, repeat or are ambiguous; windows follow the order of the file");
      time_ = column.name;
      return;
    }
    if (column.name.empty()) return leave("it has no name in the first line");
    if (column.is_repeated) return leave("another column has the same name");
    if (column.present == 0) return leave("it is empty");
    if (column.is_constant) return leave("all its values are equal");
    if (column.is_counter && !names_time(column.name)) return leave(kCounts);
    if (column.is_counter)
      note(fmt::format("column '{}' counts the rows, but is used, because its name suggests a time", column.name));
    if (column.kind == Kind::text)
      return leave(fmt::format("it has more than {} different strings, such as '{}'", data::kMaxCategories,
                               column.example.substr(0, 40)));
    if (column.missing > column.present) return leave("most of its values are missing");
    if (is_ambiguous(column))
      return leave(
          fmt::format("its dates, such as '{}', may be dd/mm/yyyy or mm/dd/yyyy; to use it, add \"dates\" to the "
                      "source, and days({}) to the columns of the input",
                      column.example, column.name));
    const std::string item = column.kind == Kind::date ? fmt::format("days({})", column.name) : column.name;
    if (column.kind == Kind::date && is_column(item, true)) return leave(fmt::format("'{}' is also a column", item));
    if (column.kind == Kind::date && column.missing == 0 && window_ == 0)
      note(fmt::format("\"split_by\": \"{}\" next to \"split\" keeps the latest rows for validation and test",
                       column.name));
    if (column.missing > 0)
      json::add(missing_, column.name, text_value(column.kind == Kind::categorical ? "most_frequent" : "median"));
    if (column.kind == Kind::categorical) return features_.push_back(words(column));
    features_.push_back({item, 1, json::make_array({text_value("standardize")})});
  }

  // In a table of x and y, a counter x of 1, 2, 3 is data: drop a counter only if there are other columns.
  void take_counter() {
    for (const InferredColumn& column : inferred_.columns) {
      if (&column == &target_ || !column.is_counter || column.missing > 0 || column.is_repeated || column.name.empty())
        continue;
      std::erase(result_.notes, left_out(column, kCounts));
      note(fmt::format("column '{}' counts the rows, but is used, because no other column is left", column.name));
      features_.push_back({column.name, 1, json::make_array({text_value("standardize")})});
      return;
    }
  }

  // List the categories: random training rows decide which of them occur, and must not decide the width of x.
  Feature words(const InferredColumn& column) const {
    auto all = column.categories;
    const bool has_rare = std::any_of(all.begin(), all.end(), [](const auto& one) { return one.second < kFewRows; });
    const bool has_other = all.size() > kShownCategories;
    if (has_other) {
      std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
      all.resize(kShownCategories);
    }
    std::vector<std::string> names;
    for (const auto& one : all) names.push_back(one.first);
    const bool is_pair = names.size() == 2 && !has_rare;
    json::Value argument = json::make_list(names);
    if (has_other || has_rare)
      argument = json::make_object({{"categories", std::move(argument)}, {"other", json::make(true)}});
    const auto count = static_cast<std::int64_t>(names.size()) + (has_other || has_rare ? 1 : 0);
    return {column.name, is_pair ? 1 : count,
            json::make_array({json::make_object({{is_pair ? "classes" : "one_hot", std::move(argument)}})})};
  }

  json::Value source() {
    const data::Dialect& dialect = inferred_.dialect;
    json::Value source = json::make_object({{"csv", text_value(source_)}});
    if (!dialect.names.empty() && dialect.libsvm < 0) json::add(source, "names", json::make_list(dialect.names));
    if (dialect.libsvm >= 0) json::add(source, "libsvm", json::make(dialect.libsvm));
    const std::string extension = std::filesystem::path(source_).extension().string();
    if (dialect.delimiter != (extension == ".tsv" || extension == ".tab" ? '\t' : ','))
      json::add(source, "delimiter", text_value(std::string(1, dialect.delimiter)));
    if (dialect.notation.decimal != '.')
      json::add(source, "decimal", text_value(std::string(1, dialect.notation.decimal)));
    if (dialect.notation.thousands != '\0')
      json::add(source, "thousands", text_value(std::string(1, dialect.notation.thousands)));
    if (!dialect.notation.currency.empty()) json::add(source, "currency", text_value(dialect.notation.currency));
    if (dialect.notation.percent) json::add(source, "percent", json::make(true));
    if (!dialect.comment.empty()) json::add(source, "comment", text_value(dialect.comment));
    if (dialect.notation.dates != data::DateOrder::unknown)
      json::add(source, "dates",
                text_value(dialect.notation.dates == data::DateOrder::day_first ? "dd/mm/yyyy" : "mm/dd/yyyy"));
    if (!dialect.notation.na.empty()) json::add(source, "na", json::make_list(dialect.notation.na));
    if (target_.missing > 0) {
      json::add(missing_, target_.name, text_value("drop"));
      note(fmt::format("{} rows without a value of '{}' are omitted", target_.missing, target_.name));
    }
    if (!missing_.members.empty()) json::add(source, "missing", missing_);
    if (window_ > 0) json::add(source, "window", json::make_object({{"length", json::make(window_)}}));
    std::vector<std::string> items;
    for (const Feature& feature : features_) items.push_back(feature.item);
    json::add(source, x_, json::make_list(items));
    json::add(source, y_, text_value(target_.name));
    return source;
  }

  // Numbers by value, so that class 0 is -1 and class 1 is +1.
  static bool is_before(const std::string& a, const std::string& b) {
    const auto number = [](std::string_view text) {
      const std::optional<double> value = parse_number<double>(text.substr(text.starts_with('+')));
      return value && std::isfinite(*value) ? value : std::nullopt;
    };
    const std::optional<double> x = number(a), y = number(b);
    return x && y && *x != *y ? *x < *y : !x != !y ? x.has_value() : a < b;
  }

  // Cells such as "a;b" may list the labels of a row.
  void note_labels() {
    for (const auto& category : target_.categories) {
      const std::string& name = category.first;
      const std::size_t at = name.find_first_of(";|");
      const bool has_part = at != std::string::npos && std::ranges::any_of(target_.categories, [&](const auto& other) {
                              return other.first == name.substr(0, at) || other.first == name.substr(at + 1);
                            });
      if (!has_part) continue;
      return note(
          fmt::format("'{}' in column '{}' is one class; if it lists several labels of a row, make a column of 0 "
                      "and 1 for each label",
                      name, target_.name));
    }
  }

  std::vector<std::string> ordered_classes() const {
    std::vector<std::string> names;
    for (const auto& one : target_.categories) names.push_back(one.first);
    std::sort(names.begin(), names.end(), is_before);
    return names;
  }

  json::Value transforms() const {
    json::Value transforms = json::make_object();
    // A column may be in the windows and the target: its input is transformed then, not the column.
    for (const Feature& feature : features_) {
      if (window_ == 0 || feature.transform.items.front().kind == json::Kind::object)
        json::add(transforms, feature.item, feature.transform);
    }
    if (window_ > 0) json::add(transforms, x_, json::make_array({text_value("standardize")}));
    json::Value own = text_value("standardize");
    if (is_classification_)
      own = json::make_object({{classes() > 2 ? "one_hot" : "classes", json::make_list(ordered_classes())}});
    json::add(transforms, y_, json::make_array({std::move(own)}));
    return transforms;
  }

  json::Value graph(std::int64_t outputs) const {
    const auto dense = [](std::string_view name, std::string_view input, std::int64_t units,
                          std::string_view activation) {
      json::Value entry = json::make_object({{"name", text_value(name)},
                                             {"op", text_value("dense")},
                                             {"inputs", json::make_list({std::string(input)})},
                                             {"units", json::make(units)}});
      if (!activation.empty()) json::add(entry, "activation", text_value(activation));
      return entry;
    };
    const std::int64_t units = std::clamp<std::int64_t>(2 * width(), 8, 64);
    std::vector<json::Value> entries = {dense("h", x_, units, "relu")};
    if (!is_classification_) {
      entries.push_back(dense("y_hat", "h", outputs, ""));
      entries.push_back(text_value(fmt::format("loss = mean(square(y_hat - {}))", y_)));
    } else if (classes() > 2) {
      entries.push_back(dense("logits", "h", outputs, ""));
      entries.push_back(text_value(fmt::format("loss = mean(softmax_cross_entropy(logits, {}))", y_)));
    } else {
      entries.push_back(dense("logits", "h", outputs, ""));
      entries.push_back(text_value("probability = sigmoid(logits)"));
      entries.push_back(text_value(fmt::format("loss = mean(sigmoid_cross_entropy(logits, {}))", y_)));
    }
    return json::make_array(std::move(entries));
  }

  // About 3000 steps, or 5 epochs of a large table.
  json::Value train() const {
    const std::int64_t tenths = has_validation() ? 7 : has_test() ? 8 : 10;
    const std::int64_t rows = std::max<std::int64_t>(this->rows() * tenths / 10 - window_, 1);
    const std::int64_t wanted = std::clamp<std::int64_t>(rows / 16, std::min<std::int64_t>(rows, 16), 1024);
    const auto batch = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(wanted)));
    const std::int64_t epochs = std::clamp<std::int64_t>(3000 / std::max<std::int64_t>(rows / batch, 1), 5, 200);
    std::vector<std::string> metrics = {"rmse", "mae", "r2"};
    if (is_classification_) metrics = {"accuracy"};
    json::Value train =
        json::make_object({{"minimize", text_value("loss")},
                           {"metrics", json::make_list(metrics)},
                           {"optimizer", json::make_object({{"adam", json::make_object({{"lr", json::make(0.003)}})}})},
                           {"batch", json::make(batch)},
                           {"shuffle", json::make(true)}});
    const std::int64_t patience = std::clamp<std::int64_t>(epochs / 10, 3, 20);
    if (has_validation()) json::add(train, "early_stopping", json::make_object({{"patience", json::make(patience)}}));
    json::add(train, "epochs", json::make(epochs));
    json::add(train, "seed", json::make(std::int64_t{1}));
    return train;
  }

  const InferredTable& inferred_;
  const InferredColumn& target_;
  std::string source_;
  std::int64_t window_ = 0;
  std::string time_;               // column of "split_by", for windows
  std::string x_ = "x", y_ = "y";  // input names
  bool is_classification_ = false;
  std::vector<Feature> features_;
  json::Value missing_ = json::make_object();
  ModelTemplate result_;
};

// Throws Error if the file is binary or JSON.
InferredTable infer_types(const std::string& path, bool has_header) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return data::infer_csv_types(path, has_header);
  const RowFormat format = format_of(path, data::RowStream(path).look(kFormatBytes), "");
  if (format == RowFormat::csv) return data::infer_csv_types(path, has_header);
  const bool is_json = format == RowFormat::records || format == RowFormat::flat_json;
  throw Error(ErrorKind::input, "init.format",
              fmt::format("init reads a table of text (CSV); '{}' is {}", path, is_json ? "JSON" : "binary"),
              fmt::format("save it as CSV, or write a model file: \"source\": {{\"{}\": ...}} reads {}, see "
                          "docs/reference/data.md",
                          format == RowFormat::flat_json ? "json"
                          : is_json                      ? "records"
                                                         : "npz",
                          is_json ? "this JSON" : "arrays"));
}

void check_target(const InferredColumn& column) {
  const auto fail = [&](std::string why, std::string hint = {}) {
    throw Error(ErrorKind::input, "init.target", fmt::format("the target '{}' {}", column.name, why), std::move(hint));
  };
  if (column.is_repeated) fail("is the name of two columns", "give each its own name in the first line");
  if (column.present == 0) fail("has no value");
  if (column.present == 1) fail("has a value in one row: there is nothing to learn from");
  if (column.is_constant) fail("has one value: there is nothing to predict");
  if (column.kind == Kind::text)
    fail(fmt::format("has more than {} different strings, such as '{}': neither a number nor a class",
                     data::kMaxCategories, column.example.substr(0, 40)));
  if (column.kind == Kind::date) fail("is a date", "predict a number made of it: --label of a column of days or years");
}

}  // namespace

std::vector<std::string> table_columns(const std::string& csv) {
  return names_of(infer_types(csv, true).columns);
}

ModelTemplate model_template(const std::string& csv, const std::string& target, const std::string& source,
                             bool has_header, std::int64_t window) {
  std::error_code ignored;
  if (std::filesystem::is_directory(csv, ignored)) {
    if (!target.empty() || !has_header || window > 0)
      throw Error(ErrorKind::input, "init.format", fmt::format("'{}' is a folder, not a table", csv),
                  "the class of an image is the name of its folder: a folder takes none of the options of a table");
    return image_template(csv, source);
  }
  const InferredTable inferred = infer_types(csv, has_header);
  const auto column = std::find_if(inferred.columns.begin(), inferred.columns.end(), [&](const InferredColumn& one) {
    return one.name == target || (!inferred.dialect.header && one.name == "c" + target);  // 2 is c2
  });
  if (column == inferred.columns.end()) {
    const std::vector<std::string> names = names_of(inferred.columns);
    const std::string near = did_you_mean(target, names);
    throw Error(
        ErrorKind::input, "init.target",
        fmt::format("'{}' has no column '{}'; it has {}", csv, target, data::listed(names)),
        inferred.columns.size() == 1
            ? "columns are separated by a comma, a semicolon, a tab, blanks or |, and the first line is one column"
        : near.empty() || (target[0] >= '0' && target[0] <= '9')
            ? "the first line names the columns; if it is a row, use init --no-header"
            : near);
  }
  check_target(*column);
  return ModelTemplateWriter(inferred, *column, source, window).write();
}

}  // namespace graphrun
