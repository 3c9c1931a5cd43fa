// The sources "csv" and "records": each column is an array; dialect options and dropped rows.
#include <fmt/format.h>

#include <algorithm>

#include "data/csv/csv.h"
#include "data/csv/json_table.h"
#include "data/csv/missing.h"
#include "data/formats/inflate.h"
#include "data/sources/sources.h"
#include "graphrun/error.h"

namespace graphrun::data {
namespace {

// A file with a missing-value policy per column. Its rows are known once the used columns are.
class TextSource {
 public:
  TextSource(std::shared_ptr<const TextTable> table, std::vector<Missing> missing)
      : table_(std::move(table)), missing_(std::move(missing)) {
    const auto drops = [](const Missing& one) { return one.kind == Missing::Kind::drop; };
    if (std::any_of(missing_.begin(), missing_.end(), drops)) kept_ = std::make_shared<std::vector<std::size_t>>();
  }

  std::vector<NamedArray> arrays(const json::Ref& at) const {
    std::vector<NamedArray> all;
    for (std::size_t i = 0; i < missing_.size(); ++i)
      all.push_back(
          column_of(table_->names()[i], at, std::make_shared<const TextColumn>(table_, i, kept_), missing_[i]));
    return all;
  }

  void use(const std::vector<std::size_t>& columns, Files& files) {
    if (!kept_) return;
    kept_->clear();
    for (std::size_t row = 0; row < table_->rows(); ++row) {
      if (std::none_of(columns.begin(), columns.end(), [&](std::size_t c) {
            return missing_[c].kind == Missing::Kind::drop && table_->is_missing(row, c);
          }))
        kept_->push_back(row);
    }
    const auto rows = static_cast<std::int64_t>(table_->rows());
    warn_of_dropped(files, rows - static_cast<std::int64_t>(kept_->size()), rows);
  }

 private:
  std::shared_ptr<const TextTable> table_;
  std::vector<Missing> missing_;                    // one per column
  std::shared_ptr<std::vector<std::size_t>> kept_;  // null: all rows remain
};

// Each row of an inference input has its own prediction: a row with a missing value is rejected, not dropped.
std::vector<Missing> read_policies(SourceContext& context, const std::vector<std::string>& names) {
  std::vector<Missing> missing(names.size());
  if (const std::optional<json::Ref> at = context.split.get("missing"))
    missing = read_missing(context.reader, *at, names, context.is_other);
  for (Missing& one : missing) {
    if (context.is_other && one.kind == Missing::Kind::drop) one = {};
    one.is_other = context.is_other;
  }
  return missing;
}

// Reads one character, or returns `fallback`.
char read_sign(SourceContext& context, std::string_view key, char fallback) {
  const std::optional<json::Ref> at = context.split.get(key);
  const std::optional<std::string> text = at ? context.reader.string(*at) : std::nullopt;
  if (!text) return fallback;
  for (const char sign : {' ', '\''}) {
    if (text->size() > 1 && key == "thousands" && separator_bytes(*text, sign) == text->size()) return sign;
  }
  if (text->size() == 1 && *text != "\"" && *text != "\n" && *text != "\r") return text->front();
  context.reader.report(*at, "data.csv", "must be one character, not a quote or a line end");
  return fallback;
}

std::vector<std::string> read_words(SourceContext& context, std::string_view key) {
  std::vector<std::string> words;
  const std::optional<json::Ref> at = context.split.get(key);
  if (!at) return words;
  if (at->value->kind != json::Kind::array) {
    if (const std::optional<std::string> word = context.reader.string(*at)) words.push_back(*word);
    return words;
  }
  for (std::size_t i = 0; i < at->value->items.size(); ++i) {
    if (const std::optional<std::string> word = context.reader.string(at->item(i))) words.push_back(*word);
  }
  return words;
}

DateOrder read_date_order(SourceContext& context) {
  const std::optional<json::Ref> at = context.split.get("dates");
  const std::optional<std::string> order = at ? context.reader.string(*at) : std::nullopt;
  if (order == "dd/mm/yyyy") return DateOrder::day_first;
  if (order == "mm/dd/yyyy") return DateOrder::month_first;
  if (order) context.reader.report(*at, "data.csv", "must be \"dd/mm/yyyy\" or \"mm/dd/yyyy\"");
  return DateOrder::unknown;
}

Dialect read_dialect(SourceContext& context, char delimiter) {
  Dialect dialect;
  const std::optional<json::Ref> libsvm = context.split.get("libsvm"), names = context.split.get("names");
  if (libsvm) dialect.libsvm = context.reader.integer(*libsvm, 0, INT32_MAX).value_or(0);
  dialect.names = read_words(context, "names");
  dialect.header = context.split.boolean("header").value_or(!names) && !libsvm;
  dialect.delimiter = read_sign(context, "delimiter", delimiter);
  dialect.notation.decimal = read_sign(context, "decimal", '.');
  dialect.notation.thousands = read_sign(context, "thousands", '\0');
  dialect.notation.percent = context.split.boolean("percent").value_or(false);
  dialect.notation.currency = context.split.string("currency").value_or("");
  dialect.notation.na = read_words(context, "na");
  dialect.notation.dates = read_date_order(context);
  dialect.notation.is_other = context.is_other;
  dialect.comment = context.split.string("comment").value_or("");
  const auto clash = [&](std::string_view one, std::string_view other) {
    context.reader.report(context.split.place(), "data.csv",
                          fmt::format("\"{}\" and \"{}\" are the same character", one, other));
  };
  if (dialect.notation.decimal == dialect.notation.thousands) clash("decimal", "thousands");
  if (dialect.notation.decimal == dialect.delimiter) clash("decimal", "delimiter");
  return dialect;
}

bool ends_with(std::string_view path, std::string_view extension) {
  if (path.size() < extension.size()) return false;
  path.remove_prefix(path.size() - extension.size());
  return std::equal(path.begin(), path.end(), extension.begin(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; });
}

// Rejects a single-column header that contains a delimiter: the file uses another delimiter.
void reject_one_column(const SourceContext& context, const std::string& path, const Csv& csv, char delimiter) {
  const std::string other = csv.other_delimiter(), &name = csv.names().front();
  const auto is_name = [&](const json::Value& choice) { return choice.string == name; };
  const auto chooses = [&](const json::Member& member) {
    return is_name(member.value) || std::ranges::any_of(member.value.items, is_name);
  };
  if (other.empty() || (!context.is_other && context.split.find("delimiter"))) return;
  if (context.is_other && std::ranges::any_of(context.split.place().value->members, chooses)) return;
  if (context.is_other)
    throw Error(ErrorKind::input, "data.csv",
                fmt::format("'{}': the file has '{}' between columns, and the model expects '{}'", path, other,
                            delimiter == '\t' ? "\\t" : std::string(1, delimiter)),
                fmt::format("--set 'data.source.delimiter={}' reads it", other));
  throw Error(ErrorKind::input, "data.csv",
              fmt::format("'{}': the first line is one column, '{}'", path, name.substr(0, 60)), csv.delimiter_hint());
}

}  // namespace

namespace {

Loaded loaded_from(SourceContext& context, std::shared_ptr<const TextTable> table) {
  Loaded loaded;
  loaded.rows.keyed = false;
  loaded.rows.date_order = table->notation().dates;
  std::vector<Missing> missing = read_policies(context, table->names());
  const auto source = std::make_shared<TextSource>(std::move(table), std::move(missing));
  loaded.rows.arrays = source->arrays(context.value);
  loaded.rows.use = [source, files = &context.files](const std::vector<std::size_t>& used) {
    source->use(used, *files);
  };
  return loaded;
}

// For a file that is not opened: checks "missing", the only option not yet read.
Loaded no_rows(SourceContext& context) {
  const std::optional<json::Ref> missing = context.split.get("missing");
  if (missing) read_missing(context.reader, *missing, {}, true);
  Loaded loaded;
  loaded.rows.keyed = false;
  return loaded;
}

}  // namespace

Loaded read_csv(SourceContext& context) {
  const std::optional<std::string> name = context.reader.string(context.value);
  const bool has_tabs = name && (ends_with(*name, ".tsv") || ends_with(*name, ".tsv.gz") || ends_with(*name, ".tab"));
  Dialect dialect = read_dialect(context, has_tabs ? '\t' : ',');
  if (!name || !context.opens) return no_rows(context);
  const std::string path = context.files.find(*name);
  Chunk chunk = context.files.read_chunk(path);
  dialect.rows_before = chunk.rows_before;
  dialect.lines_before = chunk.lines_before;
  const std::string told = fmt::format("reading '{}'", path);
  std::string text = inflated_text(path, std::move(chunk.bytes));
  if (dialect.libsvm >= 0) text = csv_of_libsvm(path, text, dialect);
  const auto csv = std::make_shared<const Csv>(path, std::move(text), dialect,
                                               [&](double done) { context.files.report_progress(told, done); });
  if (dialect.header) reject_one_column(context, path, *csv, dialect.delimiter);
  return loaded_from(context, csv);
}

Loaded read_records(SourceContext& context) {
  const std::optional<std::string> name = context.reader.string(context.value);
  Notation notation;
  notation.na = read_words(context, "na");
  notation.dates = read_date_order(context);
  notation.is_other = context.is_other;
  if (!name || !context.opens) return no_rows(context);
  const std::string path = context.files.find(*name);
  Chunk chunk = context.files.read_chunk(path);
  chunk.bytes = inflated_text(path, std::move(chunk.bytes));
  return loaded_from(context, std::make_shared<const JsonTable>(path, chunk, std::move(notation)));
}

}  // namespace graphrun::data
