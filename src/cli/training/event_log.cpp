#include "cli/training/event_log.h"

#include <array>
#include <bit>
#include <chrono>

namespace graphrun::cli {
namespace {

constexpr std::size_t kHeader = 12;  // length and its checksum

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0);
    table[i] = crc;
  }
  return table;
}

// TFRecord masks the checksum, because the CRC of data that contains its own CRC is weak.
std::uint32_t masked(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return std::rotr(crc, 15) + 0xA282EAD8U;
}

template <class T>
void store(char* to, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) to[i] = static_cast<char>((value >> (8 * i)) & 0xFF);
}

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Value of a cell in a curve; null for an empty cell, a hash, or a column without a tag.
const double* number_of(const LogColumn& column, const LogCell& cell) {
  return column.tag.empty() ? nullptr : std::get_if<double>(&cell);
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<std::uint32_t, 256> kTable = crc_table();
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFF];
  return ~crc;
}

// Event: wall_time = 1 (double), step = 2, file_version = 3, summary = 5, session_log = 7
void EventLog::begin_event(std::uint64_t step) {
  event_.clear();
  event_.float64(1, wall_time());
  event_.number(2, static_cast<std::int64_t>(step));
}

void EventLog::write_event() {
  const std::string& event = event_.text();
  char header[kHeader], checksum[4];
  store(header, std::uint64_t{event.size()});
  store(header + 8, masked({header, 8}));
  store(checksum, masked(event));
  fmt::memory_buffer& record = records_.line();
  record.append(header, header + sizeof header);
  record.append(event);
  record.append(checksum, checksum + sizeof checksum);
  records_.flush();
}

// Summary: value = 1; Summary.Value: tag = 1, simple_value = 2 (float)
void EventLog::add_to_summary(std::string_view tag, double number) {
  value_.clear();
  value_.bytes(1, tag);
  value_.float32(2, static_cast<float>(number));
  summary_.bytes(1, value_.text());
}

bool EventLog::begin(std::span<const LogColumn> columns, std::uint64_t from) {
  columns_ = columns;
  begin_event(0);
  event_.bytes(3, "brain.Event:2");
  write_event();
  begin_event(from);
  value_.number(1, 1);  // SessionLog: status = 1, START
  event_.bytes(7, value_.text());
  write_event();
  records_.check();
  begin_event(~0ull);  // the largest event, for its memory: write() allocates nothing
  for (const LogColumn& column : columns_) add_to_summary(column.tag, 0);
  event_.bytes(5, summary_.text());
  return false;  // always a new file
}

void EventLog::write(const LogRow& row) {
  summary_.clear();
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (const double* number = number_of(columns_[i], row.cells[i])) add_to_summary(columns_[i].tag, *number);
  }
  begin_event(row.step);
  event_.bytes(5, summary_.text());
  write_event();
}

}  // namespace graphrun::cli
