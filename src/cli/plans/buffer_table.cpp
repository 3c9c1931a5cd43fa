#include "cli/plans/buffer_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "cli/terminal/csv_cell.h"
#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

constexpr std::size_t kMostBytesOfBuffers = std::size_t{1} << 28;  // some ten million lines

constexpr std::array<std::string_view, 6> kColumns = {"id", "lower", "upper", "size", "alignment", "offset"};
constexpr std::size_t kId = 0, kLower = 1, kUpper = 2, kSize = 3, kAlignment = 4, kNeeded = 4;

struct Cell {
  std::string text;
  std::size_t column = 1;  // from 1, in bytes
};

// Reads all lines, gathers what is wrong with them, and throws it at the end.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  BufferTable read() {
    const std::string text = whole();
    std::string_view rest = text;
    if (rest.starts_with("\xef\xbb\xbf")) rest.remove_prefix(3);
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      line_ = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      ++number_;
      if (line_.ends_with('\r')) line_.remove_suffix(1);
      if (line_.find_first_not_of(" \t") == std::string_view::npos) continue;
      if (columns_.empty()) {
        read_header(cells());
        if (count_ > 0) break;  // what its lines say is not known
      } else {
        read_buffer(cells());
      }
    }
    if (columns_.empty())
      tell("empty", 0, "has no header", "the first line names the columns: id,lower,upper,size[,alignment]");
    if (count_ > 0) throw Error(ErrorKind::input, std::move(faults_), count_ - std::min(count_, kMaxDiagnostics));
    return std::move(table_);
  }

 private:
  std::string whole() {
    std::error_code ignored;
    const auto refuse = [&](std::string message) {
      number_ = 0;
      tell("file", 0, std::move(message));
      throw Error(ErrorKind::input, std::move(faults_));
    };
    if (std::filesystem::is_directory(path_, ignored)) refuse("is a folder, not a CSV file");
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path_.c_str(), "rbe"), std::fclose);
    if (!file) refuse("cannot be read: " + std::generic_category().message(errno));
    std::string text;
    std::array<char, 1 << 16> bytes{};
    while (const std::size_t count = std::fread(bytes.data(), 1, bytes.size(), file.get())) {
      text.append(bytes.data(), count);
      if (text.size() > kMostBytesOfBuffers) refuse("is larger than 256 MiB, the limit of plan");
    }
    if (std::ferror(file.get()) != 0) refuse("cannot be read: " + std::generic_category().message(errno));
    return text;
  }

  void tell(std::string_view code, std::size_t column, std::string message, std::string hint = {}) {
    if (++count_ > kMaxDiagnostics) return;
    faults_.push_back({.code = fmt::format("buffers.{}", code),
                       .message = std::move(message),
                       .hint = std::move(hint),
                       .file = path_,
                       .line = number_,
                       .column = static_cast<int>(column),
                       .source_line = number_ > 0 ? std::string(line_) : std::string()});
  }

  // A cell in quotes may hold commas and doubled quotes, not line ends.
  std::vector<Cell> cells() {
    std::vector<Cell> result;
    std::size_t at = 0;
    while (true) {
      while (at < line_.size() && (line_[at] == ' ' || line_[at] == '\t')) ++at;
      Cell cell{{}, at + 1};
      if (at < line_.size() && line_[at] == '"') {
        for (++at; at < line_.size(); ++at) {
          if (line_[at] == '"' && (at + 1 == line_.size() || line_[++at] != '"')) break;
          cell.text += line_[at];
        }
        at = std::min(line_.find(',', std::min(at, line_.size())), line_.size());
      } else {
        const std::size_t end = std::min(line_.find(',', at), line_.size());
        std::string_view text = line_.substr(at, end - at);
        while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
        cell.text = text;
        at = end;
      }
      result.push_back(std::move(cell));
      if (at >= line_.size()) return result;
      ++at;
    }
  }

  void read_header(const std::vector<Cell>& cells) {
    columns_.assign(cells.size(), kColumns.size());
    std::array<bool, kColumns.size()> is_there{};
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const auto known = std::find(kColumns.begin(), kColumns.end(), cells[c].text);
      if (known == kColumns.end()) continue;
      const auto column = static_cast<std::size_t>(known - kColumns.begin());
      if (is_there[column]) tell("header", cells[c].column, fmt::format("a second column '{}'", cells[c].text));
      is_there[column] = true;
      columns_[c] = column;
    }
    table_.has_alignments = is_there[kAlignment];
    std::vector<std::string> given;
    for (const Cell& cell : cells) given.push_back(cell.text);
    for (std::size_t column = 0; column < kNeeded; ++column) {
      if (is_there[column]) continue;
      std::string hint = "the first line names the columns: id,lower,upper,size[,alignment]";
      const std::string near = nearest_name(std::string(kColumns[column]), given);
      if (!near.empty()) hint = fmt::format("did you mean '{}'?", near);
      tell("header", 1, fmt::format("no column '{}'", kColumns[column]), std::move(hint));
    }
  }

  template <class T>
  bool read_number(const Cell& cell, std::string_view column, T least, T& value) {
    const char* const end = cell.text.data() + cell.text.size();
    const auto [rest, error] = std::from_chars(cell.text.data(), end, value);
    if (error == std::errc() && rest == end && value >= least) return true;
    const std::string expected = least == std::numeric_limits<T>::min() && least != 0
                                     ? "a whole number of 64 bits"
                                     : fmt::format("a whole number from {} on", least);
    tell("number", cell.column, fmt::format("{}: expected {}, got '{}'", column, expected, cell.text));
    return false;
  }

  void read_buffer(const std::vector<Cell>& cells) {
    if (cells.size() != columns_.size()) {
      tell("cells", 1, fmt::format("{} cells, the header has {}", cells.size(), columns_.size()));
      return;
    }
    BlockLife block;
    std::string id;
    std::size_t upper_at = 1, id_at = 1;
    bool good = true;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const Cell& cell = cells[c];
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
      tell("life", upper_at,
           fmt::format("upper: expected more than lower ({}), got {}: live ranges are [lower, upper)", block.lower,
                       block.upper));
      good = false;
    }
    const auto [before, is_new] = lines_.emplace(id, number_);
    if (!is_new) tell("id", id_at, fmt::format("duplicate id '{}', first in line {}", id, before->second));
    if (!good || !is_new) return;
    const bool adds_up = !__builtin_add_overflow(sum_, block.size, &sum_) &&
                         !__builtin_add_overflow(sum_, block.alignment - 1, &sum_) && sum_ >> 63 == 0;
    if (!adds_up) {
      tell("size", 1, "the sizes add up to more than 63 bits");
      sum_ = 0;
    }
    table_.ids.push_back(std::move(id));
    table_.blocks.push_back(block);
  }

  const std::string& path_;
  std::string_view line_;
  int number_ = 0;
  std::vector<std::size_t> columns_;  // of kColumns, or their number: another
  std::unordered_map<std::string, int> lines_;
  std::uint64_t sum_ = 0;
  BufferTable table_;
  std::vector<Diagnostic> faults_;
  std::size_t count_ = 0;
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
