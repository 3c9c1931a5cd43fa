// log_row.h: format-independent log rows: named columns, and cells that may be empty.
// Contract: columns are fixed before the first step. History fills the cells; one writer per format prints them. Not
// handled here: content of reports (graphrun/session.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>

namespace graphrun::cli {

struct LogColumn {
  std::string name;           // key in CSV and JSON: "validation_loss"
  std::string tag = {};       // curve in TensorBoard: "loss/validation"; empty: none
  const char* number = "{}";  // format string of fmt
};

struct LogHash {
  std::uint64_t value = 0;
};
using LogCell = std::variant<std::monostate, std::uint64_t, double, LogHash>;

struct LogRow {
  std::uint64_t step = 0;
  std::span<const LogCell> cells;  // one per column
};

// Log file of one format. Call begin() before the first step; no call after it allocates. When resuming from step
// `from`, begin() copies the rows up to that step from the old file, and returns whether they were found.
class LogWriter {
 public:
  virtual ~LogWriter() = default;
  virtual bool begin(std::span<const LogColumn> columns, std::uint64_t from) = 0;
  virtual void write(const LogRow& row) = 0;
  virtual void finish() = 0;  // ends the log; throws the error of a failed write
};

}  // namespace graphrun::cli
