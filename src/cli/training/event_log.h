// event_log.h: logs as TensorBoard reads them: a file of events, a scalar for each column that has a tag.
// Contract: records of TFRecord: length (8 bytes), its masked CRC-32C, an Event of TensorFlow's event.proto, its masked
// CRC-32C; little-endian. The first names the version "brain.Event:2", the second says that a run starts at that step,
// which hides what older files in the folder have from there on. A row is one event and one write: what is left of a
// run that is killed can be read. Leaves to others: names of files (output_files.h).
#pragma once

#include <string_view>
#include <vector>

#include "cli/training/line_file.h"
#include "cli/training/log_row.h"

namespace graphrun::cli {

std::uint32_t crc32c(std::string_view bytes);

class EventLog : public LogWriter {
 public:
  explicit EventLog(OutputFile& file) : records_(&file) {}
  bool begin(std::span<const LogColumn> columns, std::uint64_t from) override;
  void write(const LogRow& row) override;
  void finish() override { records_.finish(); }

 private:
  // Room for a record, then event(): its bytes, which end_record() frames and writes.
  void begin_record(std::uint64_t step);
  void end_record();

  std::span<const LogColumn> columns_;
  LineFile records_;
  std::size_t start_ = 0;  // of the record in the buffer
};

}  // namespace graphrun::cli
