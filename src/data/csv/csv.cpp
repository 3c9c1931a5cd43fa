#include "data/csv/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "base/input_limit.h"
#include "data/transforms/encoding.h"
#include "graphrun/error.h"

namespace graphrun::data {
namespace {

// Fixed cost of a column: its name, its entry in the table, its reader.
constexpr std::uint64_t kColumnBytes = 1024;

constexpr std::size_t kReportEvery = std::size_t{1} << 20;  // bytes between progress reports

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool is_line_end(char c) {
  return c == '\n' || c == '\r';
}

std::size_t text_begin(std::string_view text) {
  return text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
}

}  // namespace

std::optional<SepLine> sep_line(std::string_view text) {
  const std::size_t begin = text_begin(text), sign = begin + 4;
  const std::string_view word = text.substr(begin, 4);
  if ((word != "sep=" && word != "SEP=") || text.size() < sign + 2 || !is_line_end(text[sign + 1])) return std::nullopt;
  const bool is_crlf = text.substr(sign + 1).starts_with("\r\n");
  return SepLine{text[sign], sign + (is_crlf ? 3 : 2)};
}

void Csv::make_room(std::vector<Field>& fields, std::size_t more) const {
  if (fields.capacity() - fields.size() >= more) return;
  const std::size_t room = std::max(2 * fields.capacity(), fields.size() + more);
  require_within_input_limit((room + fields.capacity()) * sizeof(Field), fmt::format("the table of '{}'", path_),
                             limit_);
  fields.reserve(room);
}

// Reads one field and returns its end: at a delimiter, a line end, or the end of the text.
std::size_t Csv::read_field(std::size_t at, Field& field) {
  std::size_t begin = at;
  const auto skip_spaces = [&](std::size_t from) {
    while (from < text_.size() && (text_[from] == ' ' || text_[from] == '\t') && !ends_field(text_[from])) ++from;
    return from;
  };
  const std::size_t quote = skip_spaces(at);
  field.quoted = quote < text_.size() && text_[quote] == '"';
  if (field.quoted) begin = at = quote;
  if (field.quoted) {
    // Unescape quoted text in place: it never grows.
    std::size_t to = ++at;
    field.begin = at;
    for (;; ++at) {
      if (at == text_.size()) fail(begin, "the quote is never closed");
      if (text_[at] == '"') {
        if (at + 1 == text_.size() || text_[at + 1] != '"') break;
        ++at;
      }
      text_[to++] = text_[at];
    }
    field.length = static_cast<std::uint32_t>(std::min<std::size_t>(to - field.begin, UINT32_MAX));
    std::fill(text_.begin() + static_cast<std::ptrdiff_t>(to), text_.begin() + static_cast<std::ptrdiff_t>(at), '"');
    at = skip_spaces(at + 1);
    if (at < text_.size() && !ends_field(text_[at])) fail(at, "expected the end of the field after the closing quote");
  } else {
    field.begin = at;
    while (at < text_.size() && !ends_field(text_[at])) ++at;
    field.length = static_cast<std::uint32_t>(std::min<std::size_t>(at - begin, UINT32_MAX));
  }
  if (at - begin > UINT32_MAX) fail(begin, "the field is longer than 4 GiB");
  return at;
}

std::size_t Csv::skip_blanks(std::size_t at) const {
  while (at < text_.size() && (text_[at] == ' ' || text_[at] == '\t')) ++at;
  return at;
}

std::size_t Csv::read_record(std::size_t at, std::vector<Field>& record) {
  record.clear();
  const bool has_blanks = dialect_.delimiter == ' ';
  for (;; ++at) {
    if (has_blanks) at = skip_blanks(at);
    make_room(record, 1);
    at = read_field(at, record.emplace_back());
    if (has_blanks) {  // any number of blanks is one delimiter, and none at the end of a line
      const std::size_t next = skip_blanks(at);
      if (next == text_.size() || is_line_end(text_[next])) at = next;
    }
    if (at == text_.size() || is_line_end(text_[at])) break;
  }
  if (at < text_.size() && text_[at] == '\r') ++at;  // part of \r\n, or alone
  if (at < text_.size() && text_[at] == '\n') ++at;
  return at;
}

// A numeric first line is data in a file without a header; as a header it would be lost.
void Csv::reject_numbers(const std::vector<Field>& record) const {
  std::size_t numbers = 0;
  for (const Field& field : record) {
    const std::string_view text = content(field);
    if (reads_as_number(text) && !stands_for_nothing(text))
      ++numbers;
    else if (!stands_for_nothing(text))
      return;
  }
  if (numbers == 0) return;
  fail(record.front().begin - record.front().quoted, "the first line should name the columns, and it holds numbers",
       "put a line of names above it, such as x0,x1; a model's own file may say \"header\": false");
}

void Csv::take_header(const std::vector<Field>& record) {
  const bool header = dialect_.header;
  require_within_input_limit(record.size() * kColumnBytes,
                             fmt::format("'{}': a table of {} columns", path_, record.size()), limit_);
  if (header) reject_numbers(record);
  if (!dialect_.names.empty() && record.size() > dialect_.names.size())
    fail(record.front().begin - record.front().quoted,
         fmt::format("the row has {} fields, and \"names\" lists {}", record.size(), dialect_.names.size()));
  names_.reserve(record.size());
  std::unordered_set<std::string_view> seen;
  for (const Field& field : record) {
    const std::size_t i = names_.size();
    names_.push_back(i < dialect_.names.size() ? dialect_.names[i]
                     : header                  ? std::string(content(field))
                                               : std::to_string(i));
    if (!seen.insert(names_.back()).second) repeated_.try_emplace(names_.back(), field.begin - field.quoted);
  }
}

// Checks every `step`th field from `first` on.
bool Csv::is_blank(const std::vector<Field>& fields, std::size_t first, std::size_t step) const {
  for (std::size_t i = first; i < fields.size(); i += step) {
    if (!content(fields[i]).empty()) return false;
  }
  return true;
}

// Sets the width from the first row. The header, the rows, or both may end with delimiters.
void Csv::take_width(const std::vector<Field>& record) {
  while (dialect_.header && names_.size() > std::max<std::size_t>(record.size(), 1) && names_.back().empty())
    names_.pop_back();
  width_ = names_.size();
  if (record.size() > width_ && is_blank(record, width_, 1)) width_ = record.size();
}

Error Csv::repeated_error(std::size_t column) const {
  const std::string& name = names_[column];
  return error(repeated_.at(name),
               name.empty() ? "there are two columns without a name" : fmt::format("there are two columns '{}'", name),
               "each used column needs a unique name; if the first line is a row, put a line of names above it");
}

bool Csv::is_comment(std::size_t at) const {
  return !dialect_.comment.empty() && std::string_view(text_).substr(at).starts_with(dialect_.comment);
}

Csv::Csv(std::string path, std::string text, Dialect dialect, const std::function<void(double done)>& on_progress)
    : TextTable(dialect.notation),
      path_(std::move(path)),
      text_(std::move(text)),
      dialect_(std::move(dialect)),
      limit_(input_limit()) {
  require_utf8(path_, text_, dialect_.lines_before);
  std::size_t at = text_begin(text_);
  if (const std::optional<SepLine> sep = sep_line(text_)) {
    dialect_.delimiter = sep->delimiter;
    at = sep->end;
  }
  for (const char c : {'\n', '\r', dialect_.delimiter, dialect_.delimiter == ' ' ? '\t' : dialect_.delimiter})
    ends_[static_cast<unsigned char>(c)] = true;
  std::vector<Field> record;
  std::size_t reported = 0;
  while (at < text_.size()) {
    if (dialect_.delimiter == ' ') at = std::min(skip_blanks(at), text_.size() - 1);
    const std::size_t begin = at;
    if (on_progress && begin - reported > kReportEvery) {
      reported = begin;
      on_progress(static_cast<double>(begin) / static_cast<double>(text_.size()));
    }
    if (is_comment(at)) {
      at = std::min(text_.find_first_of("\r\n", at), text_.size());
      while (at < text_.size() && is_line_end(text_[at])) ++at;
      continue;
    }
    at = read_record(at, record);
    if (is_line_end(text_[begin])) continue;
    const bool is_first = names_.empty();
    if (is_first) take_header(record);
    if (is_first && dialect_.header) continue;
    if (fields_.empty()) take_width(record);
    if (record.size() != width_ || !is_blank(record, names_.size(), 1)) {
      const char* where = width_ == names_.size() ? " as in the first line" : ", then empty ones as in the first row";
      fail(begin, fmt::format("expected {} fields{}, got {}", names_.size(), where, record.size()), delimiter_hint());
    }
    make_room(fields_, record.size());
    fields_.insert(fields_.end(), record.begin(), record.end());
  }
  if (fields_.empty()) throw Error(ErrorKind::input, "data.csv", fmt::format("'{}': the file has no rows", path_));
  while (dialect_.header && names_.size() > 1 && names_.back().empty() && is_blank(fields_, names_.size() - 1, width_))
    names_.pop_back();
}

std::string Csv::other_delimiter() const {
  if (names_.size() != 1) return "";
  for (const char sign : {';', '\t', '|', ','}) {
    if (names_.front().find(sign) != std::string::npos) return sign == '\t' ? "\\t" : std::string(1, sign);
  }
  return "";
}

std::string Csv::delimiter_hint() const {
  const std::string other = other_delimiter();
  return other.empty() ? "" : fmt::format("\"delimiter\": \"{}\" next to the file name splits it", other);
}

std::string_view Csv::content(const Field& field) const {
  std::string_view text = std::string_view(text_).substr(field.begin, field.length);
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

Error Csv::error_at(std::size_t row, std::size_t column, std::string_view what, std::string hint) const {
  const Field& at = field(row, column);
  return error(at.begin - at.quoted,
               fmt::format("row {}, column '{}': {}", row + dialect_.rows_before, names_[column], what),
               std::move(hint));
}

// Rescans the text with the parser's line ends to find the line; only used for messages.
Error Csv::error(std::size_t offset, std::string message, std::string hint) const {
  int line = 1;
  std::size_t begin = text_begin(text_);
  for (std::size_t i = begin; i < offset; ++i) {
    if (text_[i] != '\n' && !(text_[i] == '\r' && i + 1 < text_.size() && text_[i + 1] != '\n')) continue;
    ++line;
    begin = i + 1;
  }
  line += dialect_.lines_before;
  const int column = static_cast<int>(std::min<std::size_t>(offset - begin, INT32_MAX - 1)) + 1;
  return Error(ErrorKind::input, {{"data.csv", std::move(message), std::move(hint), path_, line, column, {}, {}}});
}

}  // namespace graphrun::data
