// text_logs.h: logs as CSV (a header and one line per row) and as JSON Lines (one object per row).
// Contract: whole lines are appended, so that a killed run leaves whole lines: each line on its own (`each_row`), or
// those of 20 ms together, when the next line or the end comes. An empty cell is an empty field in CSV and an absent
// key in JSON. A non-finite number is null in JSON.
#pragma once

#include <string>
#include <vector>

#include "cli/training/line_file.h"
#include "cli/training/log_row.h"

namespace graphrun::cli {

bool is_json_log(const std::string& path);  // checks the extension

class TextLog : public LogWriter {
 public:
  TextLog(OutputFile& file, bool each_row) : file_(file), each_row_(each_row), lines_(&file) {}
  void finish() override { lines_.finish(); }

 protected:
  void end_row();

  OutputFile& file_;
  const bool each_row_;
  std::span<const LogColumn> columns_;
  LineFile lines_;
};

class CsvLog : public TextLog {
 public:
  using TextLog::TextLog;
  bool begin(std::span<const LogColumn> columns, std::uint64_t from) override;
  void write(const LogRow& row) override;
};

class JsonLog : public TextLog {
 public:
  using TextLog::TextLog;
  bool begin(std::span<const LogColumn> columns, std::uint64_t from) override;
  void write(const LogRow& row) override;

 private:
  std::vector<std::string> keys_;  // quoted, with colon
};

}  // namespace graphrun::cli
