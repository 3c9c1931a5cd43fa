// The source "csv": a column is an array; what its missing values become.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "data/columns.h"
#include "data/csv.h"
#include "data/sources.h"
#include "graphrun/error.h"

namespace graphrun::data {

std::span<const Doc> missing_docs() {
  static constexpr Doc docs[] = {
      {"error", "a missing value is a mistake"},
      {"mean", "the mean of the column's values in the training rows takes its place"},
      {"drop", "a row that lacks a value of a column that is used is left out"},
  };
  return docs;
}

namespace {

enum class Missing { error, mean, drop };  // in the order of the table

// A file with a policy. Which rows it has is known when it is known which columns are used.
class Columns {
 public:
  Columns(Csv csv, Missing policy, Files& files) : csv_(std::move(csv)), policy_(policy), files_(files) {}

  const std::vector<std::string>& names() const { return csv_.names(); }

  void use(const std::vector<std::size_t>& columns) {
    if (policy_ != Missing::drop) return;
    kept_.clear();
    for (std::size_t row = 0; row < csv_.rows(); ++row) {
      if (std::none_of(columns.begin(), columns.end(), [&](std::size_t c) { return csv_.is_missing(row, c); }))
        kept_.push_back(row);
    }
    if (kept_.empty()) throw Error(ErrorKind::input, "data.csv", "every row lacks a value: \"drop\" leaves none");
    if (kept_.size() < csv_.rows())
      files_.warn(fmt::format("{} of {} rows lack a value and are left out", csv_.rows() - kept_.size(), csv_.rows()));
  }

  Array column(std::size_t index) const {
    std::vector<double> values(policy_ == Missing::drop ? kept_.size() : csv_.rows());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t row = policy_ == Missing::drop ? kept_[i] : i;
      if (policy_ == Missing::drop || !csv_.is_missing(row, index)) {
        values[i] = csv_.number(row, index);
      } else if (policy_ == Missing::error) {
        csv_.fail_at(row, index, "the value is missing", "\"missing\": \"mean\" or \"drop\" says what to do about it");
      } else {
        values[i] = std::numeric_limits<double>::quiet_NaN();  // fill_gaps() knows the mean
      }
    }
    const auto rows = static_cast<std::int64_t>(values.size());
    return {Shape{rows}, std::move(values)};
  }

 private:
  Csv csv_;
  Missing policy_;
  Files& files_;
  std::vector<std::size_t> kept_;  // drop: the rows that are left
};

Missing read_policy(SourceContext& context) {
  const std::optional<json::Place> at = context.split.get("missing");
  const std::optional<std::string> word = at ? context.reader.string(*at) : std::nullopt;
  if (!word) return Missing::error;
  const std::vector<std::string> words = names_of(missing_docs());
  const auto found = std::find(words.begin(), words.end(), *word);
  if (found != words.end()) return static_cast<Missing>(found - words.begin());
  context.reader.report(*at, "data.csv", fmt::format("must be \"error\", \"mean\" or \"drop\", got \"{}\"", *word),
                        did_you_mean(*word, words));
  return Missing::error;
}

char read_delimiter(SourceContext& context) {
  const std::optional<json::Place> at = context.split.get("delimiter");
  const std::optional<std::string> text = at ? context.reader.string(*at) : std::nullopt;
  if (!text) return ',';
  if (text->size() == 1 && *text != "\"" && *text != "\n" && *text != "\r") return text->front();
  context.reader.report(*at, "data.csv", "must be one character, not a quote or a line end");
  return ',';
}

}  // namespace

Loaded read_csv(SourceContext& context) {
  Loaded loaded;
  loaded.rows.keyed = false;
  const bool header = context.split.boolean("header").value_or(true);
  const char delimiter = read_delimiter(context);
  const Missing policy = read_policy(context);
  const std::optional<std::string> name = context.reader.string(context.value);
  if (!name) return loaded;
  const std::string path = context.files.find(*name);
  const auto columns =
      std::make_shared<Columns>(Csv(path, context.files.read(path), header, delimiter), policy, context.files);
  for (std::size_t i = 0; i < columns->names().size(); ++i) {
    loaded.rows.arrays.push_back({columns->names()[i],
                                  context.value,
                                  [columns, i] { return std::make_shared<const Array>(columns->column(i)); },
                                  {},
                                  policy == Missing::mean});
  }
  loaded.rows.use = [columns](const std::vector<std::size_t>& used) { columns->use(used); };
  return loaded;
}

}  // namespace graphrun::data
