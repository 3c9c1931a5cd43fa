// event_log.h: TensorBoard logs: an event file with a scalar for each column that has a tag.
// Contract: TFRecord records, little-endian: length (8 bytes), its masked CRC-32C, an Event (TensorFlow's event.proto),
// its masked CRC-32C. The first names the version "brain.Event:2". The second starts a session at that step, which
// hides later events of older files in the folder. A row is one event and one write, so that the file of a killed run
// is readable. Not handled here: file names (output_files.h).
#pragma once

#include <string_view>

#include "base/protobuf.h"
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
  // Starts event_; add fields, then write_event() frames and writes it.
  void begin_event(std::uint64_t step);
  void write_event();
  void add_to_summary(std::string_view tag, double number);

  std::span<const LogColumn> columns_;
  LineFile records_;
  protobuf::Writer event_, summary_, value_;
};

}  // namespace graphrun::cli
