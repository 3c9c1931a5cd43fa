#include "cli/training/text_logs.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>

#include "cli/terminal/csv_cell.h"
#include "cli/training/log_resume.h"
#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

using Line = fmt::memory_buffer;

void append(Line& line, std::string_view text) {
  line.append(text.data(), text.data() + text.size());
}

void append_number(Line& line, const LogColumn& column, const LogCell& cell) {
  const auto to = std::back_inserter(line);
  if (const auto* whole = std::get_if<std::uint64_t>(&cell)) fmt::format_to(to, "{}", *whole);
  if (const auto* real = std::get_if<double>(&cell)) fmt::format_to(to, fmt::runtime(column.number), *real);
}

}  // namespace

bool is_json_log(const std::string& path) {
  return path.ends_with(".jsonl") || path.ends_with(".ndjson");
}

void TextLog::end_row() {
  lines_.end_line();
  each_row_ ? lines_.flush() : lines_.flush_soon();
}

bool CsvLog::begin(std::span<const LogColumn> columns, std::uint64_t from) {
  columns_ = columns;
  for (const LogColumn& column : columns) {
    if (&column != columns.data()) append(lines_.line(), ",");
    append(lines_.line(), csv_cell(column.name));
  }
  std::optional<std::string> earlier;
  if (from > 0 && !file_.is_direct())
    earlier = log_lines_until(file_.path(), {lines_.line().data(), lines_.line().size()}, from);
  lines_.end_line();
  lines_.flush();
  lines_.check();
  if (earlier) file_.write(*earlier);
  return earlier.has_value();
}

void CsvLog::write(const LogRow& row) {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (i > 0) append(lines_.line(), ",");
    const LogCell& cell = row.cells[i];
    append_number(lines_.line(), columns_[i], cell);
    if (const auto* hash = std::get_if<LogHash>(&cell))
      fmt::format_to(std::back_inserter(lines_.line()), "{:016x}", hash->value);
  }
  end_row();
}

bool JsonLog::begin(std::span<const LogColumn> columns, std::uint64_t from) {
  columns_ = columns;
  for (const LogColumn& column : columns) keys_.push_back(json_string(column.name) + ":");
  std::optional<std::string> earlier;
  if (from > 0 && !file_.is_direct()) earlier = json_lines_until(file_.path(), from);
  if (earlier) file_.write(*earlier);
  return earlier.has_value();
}

void JsonLog::write(const LogRow& row) {
  char before = '{';
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const LogCell& cell = row.cells[i];
    if (std::holds_alternative<std::monostate>(cell)) continue;
    lines_.line().push_back(before);
    before = ',';
    append(lines_.line(), keys_[i]);
    const auto* real = std::get_if<double>(&cell);
    if (real != nullptr && !std::isfinite(*real)) {
      append(lines_.line(), "null");
    } else if (const auto* hash = std::get_if<LogHash>(&cell)) {
      fmt::format_to(std::back_inserter(lines_.line()), "\"{:016x}\"", hash->value);
    } else {
      append_number(lines_.line(), columns_[i], cell);
    }
  }
  append(lines_.line(), "}");
  end_row();
}

}  // namespace graphrun::cli
