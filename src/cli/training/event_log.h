// event_log.h: TensorBoard logs: an event file with a scalar for each column that has a tag.
// Contract: TFRecord records, little-endian: length (8 bytes), its masked CRC-32C, an Event (TensorFlow's event.proto),
// its masked CRC-32C. The first names the version "brain.Event:2". The second starts a session at that step, which
// hides later events of older files in the folder. A row is one event and one write, so that the file of a killed run
// is readable. Not handled here: file names (output_files.h).
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
  // Starts a record; append the Event's fields, then end_record() frames and writes it.
  void begin_record(std::uint64_t step);
  void end_record();

  std::span<const LogColumn> columns_;
  LineFile records_;
  std::size_t start_ = 0;  // offset of the record in the buffer
};

}  // namespace graphrun::cli
