// log_row.h: what every log has of a report: named columns, and a cell of each that may be empty.
// Contract: columns are known before the first step and stay the same; History fills the cells, a writer for each
// format prints them. Leaves to others: what is in a report (graphrun/session.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>

namespace graphrun::cli {

struct LogColumn {
  std::string name;           // "validation_loss": of CSV and JSON
  std::string tag = {};       // "loss/validation": of a curve in TensorBoard; empty: it has none
  const char* number = "{}";  // how fmt writes it
};

struct LogHash {
  std::uint64_t value = 0;
};
using LogCell = std::variant<std::monostate, std::uint64_t, double, LogHash>;

struct LogRow {
  std::uint64_t step = 0;
  std::span<const LogCell> cells;  // one for each column
};

// A file of one format. begin() before the first step; afterwards nothing is allocated. Where a training goes on from
// the step `from`, begin() takes over the rows up to there of the old file, and says whether that has such a log.
class LogWriter {
 public:
  virtual ~LogWriter() = default;
  virtual bool begin(std::span<const LogColumn> columns, std::uint64_t from) = 0;
  virtual void write(const LogRow& row) = 0;
  virtual void finish() = 0;  // no row will follow; throws what a write threw
};

}  // namespace graphrun::cli
