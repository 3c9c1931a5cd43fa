#include "data/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/file.h"
#include "data/sources.h"
#include "graphrun/error.h"

namespace graphrun::data {

// Reads one field and returns where it ends: at a delimiter, a line end, or the end of the text.
std::size_t Csv::read_field(std::size_t at, int& line, std::size_t& line_begin, Field& field) {
  field.line = line;
  field.column = static_cast<int>(at - line_begin) + 1;
  if (at < text_.size() && text_[at] == '"') {
    // What is quoted is put together in place: it never grows.
    std::size_t to = ++at;
    field.begin = at;
    for (;; ++at) {
      if (at == text_.size()) fail(field.line, field.column, "the quote is never closed");
      if (text_[at] == '"') {
        if (at + 1 == text_.size() || text_[at + 1] != '"') break;
        ++at;
      } else if (text_[at] == '\n') {
        ++line;
        line_begin = at + 1;
      }
      text_[to++] = text_[at];
    }
    field.length = to - field.begin;
    ++at;
    if (at < text_.size() && text_[at] != delimiter_ && text_[at] != '\n' && text_[at] != '\r')
      fail(line, static_cast<int>(at - line_begin) + 1, "expected the end of the field after the closing quote");
    return at;
  }
  field.begin = at;
  while (at < text_.size() && text_[at] != delimiter_ && text_[at] != '\n' && text_[at] != '\r') ++at;
  field.length = at - field.begin;
  return at;
}

Csv::Csv(std::string path, std::string text, bool header, char delimiter)
    : path_(std::move(path)), text_(std::move(text)), delimiter_(delimiter) {
  std::size_t at = text_.compare(0, 3, "\xEF\xBB\xBF") == 0 ? 3 : 0;
  std::size_t line_begin = at;
  int line = 1;
  std::vector<Field> record;
  std::size_t width = 0;
  while (at < text_.size()) {
    record.clear();
    const int first_line = line;
    for (;;) {
      Field field;
      at = read_field(at, line, line_begin, field);
      record.push_back(field);
      if (at == text_.size() || text_[at] != delimiter_) break;
      ++at;
    }
    if (at < text_.size() && text_[at] == '\r') ++at;
    if (at < text_.size() && text_[at] == '\n') ++at;
    ++line;
    line_begin = at;
    const bool is_blank = record.size() == 1 && record[0].length == 0 && record[0].begin == text_.size();
    if (is_blank) break;
    if (width == 0) {
      width = record.size();
      for (std::size_t i = 0; i < width; ++i)
        names_.push_back(header ? std::string(content(record[i])) : std::to_string(i));
      for (std::size_t i = 0; header && i < width; ++i) {
        if (std::find(names_.begin(), names_.begin() + static_cast<std::ptrdiff_t>(i), names_[i]) !=
            names_.begin() + static_cast<std::ptrdiff_t>(i))
          fail(record[i].line, record[i].column, fmt::format("there are two columns '{}'", names_[i]));
      }
      if (header) continue;
    }
    if (record.size() != width)
      fail(first_line, 1, fmt::format("expected {} fields as in the first line, got {}", width, record.size()));
    fields_.insert(fields_.end(), record.begin(), record.end());
  }
  if (fields_.empty()) fail(0, 0, "the file has no rows");
}

std::string_view Csv::content(const Field& field) const {
  std::string_view text = std::string_view(text_).substr(field.begin, field.length);
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

Array Csv::column(std::size_t index) const {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(rows()));
  for (std::size_t i = index; i < fields_.size(); i += names_.size()) {
    const Field& field = fields_[i];
    std::string_view text = content(field);
    const std::size_t row = i / names_.size();
    if (text.empty())
      fail(field.line, field.column, fmt::format("row {}, column '{}': the value is missing", row, names_[index]));
    if (text[0] == '+' && text.size() > 1 && text[1] != '-') text.remove_prefix(1);
    double value = 0;
    const std::from_chars_result result = std::from_chars(text.data(), text.data() + text.size(), value);
    if (result.ec == std::errc::result_out_of_range)
      fail(field.line, field.column,
           fmt::format("row {}, column '{}': '{}' is out of range", row, names_[index], text));
    if (result.ec != std::errc() || result.ptr != text.data() + text.size()) {
      fail(field.line, field.column,
           fmt::format("row {}, column '{}': expected a number, got '{}'", row, names_[index], text.substr(0, 40)));
    }
    values.push_back(value);
  }
  return {Shape{rows()}, std::move(values)};
}

void Csv::fail(int line, int column, std::string message) const {
  Diagnostic diagnostic;
  diagnostic.code = "data.csv";
  diagnostic.message = line > 0 ? std::move(message) : fmt::format("'{}': {}", path_, message);
  if (line > 0) {
    diagnostic.file = path_;
    diagnostic.line = line;
    diagnostic.column = column;
  }
  throw Error(ErrorKind::input, {std::move(diagnostic)});
}

Loaded read_csv(SourceContext& context) {
  Loaded loaded;
  loaded.rows.keyed = false;
  const bool header = context.split.boolean("header").value_or(true);
  char delimiter = ',';
  if (const std::optional<json::Place> at = context.split.get("delimiter")) {
    const std::optional<std::string> text = context.reader.string(*at);
    if (text && (text->size() != 1 || *text == "\"" || *text == "\n" || *text == "\r"))
      context.reader.report(*at, "data.csv", "must be one character, not a quote or a line end");
    else if (text)
      delimiter = text->front();
  }
  const std::optional<std::string> name = context.reader.string(context.value);
  if (!name) return loaded;
  const std::string path = context.files.find(*name);
  const auto csv = std::make_shared<const Csv>(path, read_file(path), header, delimiter);
  for (std::size_t i = 0; i < csv->names().size(); ++i) {
    loaded.rows.arrays.push_back(
        {csv->names()[i], context.value, [csv, i] { return std::make_shared<const Array>(csv->column(i)); }});
  }
  return loaded;
}

}  // namespace graphrun::data
