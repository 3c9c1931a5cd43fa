#include "cli/stored_runs/stored_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string_view>

#include "cli/stored_runs/curves.h"
#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

// Cells of numbers and hashes need no quotes.
std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (;;) {
    const std::size_t comma = line.find(',');
    cells.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

// Of a run that was stopped before its first report.
bool has_heading_only(const std::string& path) {
  std::ifstream file(path);
  std::string heading, more;
  return std::getline(file, heading) && !std::getline(file, more);
}

}  // namespace

std::vector<StoredRow> stored_log(const std::string& path, bool may_be_empty) {
  if (may_be_empty && has_heading_only(path)) return {};
  const Table table = read_table(path);
  const std::size_t epoch = find_column(table, "epoch"), step = find_column(table, "step"),
                    loss = find_column(table, "loss");
  const auto found = std::find(table.columns.begin(), table.columns.end(), "weights_hash");
  const auto weights = static_cast<std::size_t>(found - table.columns.begin());
  std::vector<StoredRow> rows;
  std::string_view rest = table.rows;
  for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    const std::vector<std::string_view> cells = cells_of(rest.substr(0, end));
    rest.remove_prefix(end + 1);
    StoredRow row;
    const bool whole = cells.size() == table.columns.size();
    const auto parsed = whole ? std::from_chars(cells[step].data(), cells[step].data() + cells[step].size(), row.step)
                              : std::from_chars_result{nullptr, std::errc::invalid_argument};
    if (parsed.ec != std::errc())
      throw Error(ErrorKind::input, "replay.log",
                  fmt::format("line {} of '{}' is not a log line",
                              rows.size() + static_cast<std::size_t>(table.first_line), path));
    row.epoch = cells[epoch];
    row.loss = cells[loss];
    if (weights < cells.size()) row.weights = cells[weights];
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace graphrun::cli
