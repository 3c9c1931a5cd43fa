// text_logs.h: logs as CSV, a header and a line for each row, and as JSON Lines, an object for each row.
// Contract: each line is one write to the end of the file, so that a run that is killed leaves whole lines. An empty
// cell is nothing between commas in CSV, and no key in JSON; a number that is not finite is null in JSON.
#pragma once

#include <string>
#include <vector>

#include "cli/training/line_file.h"
#include "cli/training/log_row.h"

namespace graphrun::cli {

bool is_json_log(const std::string& path);  // by its name

class CsvLog : public LogWriter {
 public:
  explicit CsvLog(OutputFile& file) : file_(file), lines_(&file) {}
  bool begin(std::span<const LogColumn> columns, std::uint64_t from) override;
  void write(const LogRow& row) override;
  void finish() override { lines_.finish(); }

 private:
  OutputFile& file_;
  std::span<const LogColumn> columns_;
  LineFile lines_;
};

class JsonLog : public LogWriter {
 public:
  explicit JsonLog(OutputFile& file) : file_(file), lines_(&file) {}
  bool begin(std::span<const LogColumn> columns, std::uint64_t from) override;
  void write(const LogRow& row) override;
  void finish() override { lines_.finish(); }

 private:
  OutputFile& file_;
  std::span<const LogColumn> columns_;
  std::vector<std::string> keys_;  // with quotes and colon
  LineFile lines_;
};

}  // namespace graphrun::cli
