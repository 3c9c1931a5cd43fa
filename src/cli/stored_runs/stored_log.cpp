#include "cli/stored_runs/stored_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/file.h"
#include "base/text.h"
#include "cli/stored_runs/curves.h"
#include "cli/terminal/csv_cell.h"
#include "graphrun/error.h"

namespace graphrun::cli {

std::vector<StoredRow> stored_log(const std::string& path, bool may_be_empty) {
  if (may_be_empty && lines_of(read_file(path)).size() == 1) return {};  // stopped before its first report
  const Table table = read_table(path);
  const std::size_t epoch = find_column(table, "epoch"), step = find_column(table, "step"),
                    loss = find_column(table, "loss");
  const auto found = std::find(table.columns.begin(), table.columns.end(), "weights_hash");
  const auto weights = static_cast<std::size_t>(found - table.columns.begin());
  std::vector<StoredRow> rows;
  std::string_view whole = table.rows;
  whole = whole.substr(0, whole.rfind('\n') + 1);
  for (const std::string_view line : lines_of(whole)) {
    const std::vector<CsvCell> cells = csv_cells(line);
    StoredRow row;
    const auto number =
        cells.size() == table.columns.size() ? parse_number<std::uint64_t>(cells[step].text) : std::nullopt;
    if (!number)
      throw Error(ErrorKind::input, "replay.log",
                  fmt::format("line {} of '{}' is not a log line",
                              rows.size() + static_cast<std::size_t>(table.first_line), path));
    row.step = *number;
    row.epoch = cells[epoch].text;
    row.loss = cells[loss].text;
    if (weights < cells.size()) row.weights = cells[weights].text;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace graphrun::cli
