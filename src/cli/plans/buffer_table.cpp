#include "cli/plans/buffer_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "cli/terminal/csv_cell.h"
#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

constexpr std::array<std::string_view, 6> kColumns = {"id", "lower", "upper", "size", "alignment", "offset"};
constexpr std::size_t kId = 0, kLower = 1, kUpper = 2, kSize = 3, kAlignment = 4, kNeeded = 4;

// Reads all lines, collects their errors, and throws them at the end.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), errors_(path) {}

  BufferTable read() {
    std::string text = read_file(path_);
    if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
    for (const std::string_view line : lines_of(text)) {
      line_ = line;
      ++number_;
      if (trimmed(line).empty()) continue;
      if (!columns_.empty()) {
        read_buffer(csv_cells(line));
      } else {
        read_header(csv_cells(line));
        errors_.check();  // without a valid header the other lines have no meaning
      }
    }
    if (columns_.empty())
      report("empty", 0, "has no header", "the first line names the columns: id,lower,upper,size[,alignment]");
    errors_.check();
    return std::move(table_);
  }

 private:
  void report(std::string_view code, std::size_t column, std::string message, std::string hint = {}) {
    errors_.add(fmt::format("buffers.{}", code), number_, column, line_, std::move(message), std::move(hint));
  }

  void read_header(const std::vector<CsvCell>& cells) {
    columns_.assign(cells.size(), kColumns.size());
    std::array<bool, kColumns.size()> is_there{};
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const auto known = std::find(kColumns.begin(), kColumns.end(), cells[c].text);
      if (known == kColumns.end()) continue;
      const auto column = static_cast<std::size_t>(known - kColumns.begin());
      if (is_there[column]) report("header", cells[c].column, fmt::format("a second column '{}'", cells[c].text));
      is_there[column] = true;
      columns_[c] = column;
    }
    table_.has_alignments = is_there[kAlignment];
    std::vector<std::string> given;
    for (const CsvCell& cell : cells) given.push_back(cell.text);
    for (std::size_t column = 0; column < kNeeded; ++column) {
      if (is_there[column]) continue;
      std::string hint = "the first line names the columns: id,lower,upper,size[,alignment]";
      const std::string near = nearest_name(std::string(kColumns[column]), given);
      if (!near.empty()) hint = fmt::format("did you mean '{}'?", near);
      report("header", 1, fmt::format("no column '{}'", kColumns[column]), std::move(hint));
    }
  }

  template <class T>
  bool read_number(const CsvCell& cell, std::string_view column, T least, T& value) {
    const std::optional<T> number = parse_number<T>(cell.text);
    value = number.value_or(value);
    if (number && value >= least) return true;
    const std::string expected = least == std::numeric_limits<T>::min() && least != 0
                                     ? "a whole number of 64 bits"
                                     : fmt::format("a whole number from {} on", least);
    report("number", cell.column, fmt::format("{}: expected {}, got '{}'", column, expected, cell.text));
    return false;
  }

  void read_buffer(const std::vector<CsvCell>& cells) {
    if (cells.size() != columns_.size()) {
      report("cells", 1, fmt::format("{} cells, the header has {}", cells.size(), columns_.size()));
      return;
    }
    BlockLife block;
    std::string id;
    std::size_t upper_at = 1, id_at = 1;
    bool good = true;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const CsvCell& cell = cells[c];
      constexpr std::int64_t kAnyTime = std::numeric_limits<std::int64_t>::min();
      if (columns_[c] == kId) id = cell.text;
      if (columns_[c] == kId) id_at = cell.column;
      if (columns_[c] == kLower) good = read_number(cell, "lower", kAnyTime, block.lower) && good;
      if (columns_[c] == kUpper) good = read_number(cell, "upper", kAnyTime, block.upper) && good;
      if (columns_[c] == kUpper) upper_at = cell.column;
      if (columns_[c] == kSize) good = read_number(cell, "size", std::uint64_t{0}, block.size) && good;
      if (columns_[c] == kAlignment) good = read_number(cell, "alignment", std::uint64_t{1}, block.alignment) && good;
    }
    if (good && block.lower >= block.upper) {
      report("life", upper_at,
             fmt::format("upper: expected more than lower ({}), got {}: live ranges are [lower, upper)", block.lower,
                         block.upper));
      good = false;
    }
    const auto [before, is_new] = lines_.emplace(id, number_);
    if (!is_new) report("id", id_at, fmt::format("duplicate id '{}', first in line {}", id, before->second));
    if (!good || !is_new) return;
    const bool adds_up = !__builtin_add_overflow(sum_, block.size, &sum_) &&
                         !__builtin_add_overflow(sum_, block.alignment - 1, &sum_) && sum_ >> 63 == 0;
    if (!adds_up) {
      report("size", 1, "the sizes add up to more than 63 bits");
      sum_ = 0;
    }
    table_.ids.push_back(std::move(id));
    table_.blocks.push_back(block);
  }

  const std::string& path_;
  std::string_view line_;
  int number_ = 0;
  std::vector<std::size_t> columns_;  // indices into kColumns, or its size for an unknown column
  std::unordered_map<std::string, int> lines_;
  std::uint64_t sum_ = 0;
  BufferTable table_;
  LineErrors errors_;
};

}  // namespace

BufferTable read_buffers(const std::string& path) {
  return Reader(path).read();
}

std::string as_csv(const BufferTable& table, std::span<const std::uint64_t> offsets) {
  std::string text = table.has_alignments ? "id,lower,upper,size,alignment,offset\n" : "id,lower,upper,size,offset\n";
  for (std::size_t i = 0; i < table.blocks.size(); ++i) {
    const BlockLife& b = table.blocks[i];
    text += fmt::format("{},{},{},{},", csv_cell(table.ids[i]), b.lower, b.upper, b.size);
    if (table.has_alignments) text += fmt::format("{},", b.alignment);
    text += fmt::format("{}\n", offsets[i]);
  }
  return text;
}

}  // namespace graphrun::cli
