#include "cli/training/event_log.h"

#include <array>
#include <bit>
#include <chrono>

namespace graphrun::cli {
namespace {

using Bytes = fmt::memory_buffer;

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
template <class T>
void add_fixed(Bytes& to, T value) {
  char bytes[sizeof(T)];
  store(bytes, value);
  to.append(bytes, bytes + sizeof(T));
}

// ---- protocol buffers: field number and wire type, then a number or a length and bytes

enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

constexpr char key(int field, Wire wire) {
  return static_cast<char>(field << 3 | static_cast<int>(wire));
}
std::size_t varint_size(std::uint64_t value) {
  std::size_t size = 1;
  while ((value >>= 7) != 0) ++size;
  return size;
}
void add_varint(Bytes& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<char>(value | 0x80));
  to.push_back(static_cast<char>(value));
}
void add_bytes(Bytes& to, int field, std::string_view bytes) {
  to.push_back(key(field, Wire::bytes));
  add_varint(to, bytes.size());
  to.append(bytes.data(), bytes.data() + bytes.size());
}
std::size_t bytes_size(std::size_t content) {
  return 1 + varint_size(content) + content;
}

// Summary.Value: tag = 1, simple_value = 2 (float)
std::size_t value_size(std::string_view tag) {
  return bytes_size(tag.size()) + 1 + sizeof(float);
}
void add_value(Bytes& to, std::string_view tag, double number) {
  add_bytes(to, 1, tag);
  to.push_back(key(2, Wire::fixed32));
  add_fixed(to, std::bit_cast<std::uint32_t>(static_cast<float>(number)));
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
void EventLog::begin_record(std::uint64_t step) {
  Bytes& bytes = records_.line();
  start_ = bytes.size();
  bytes.resize(start_ + kHeader);
  bytes.push_back(key(1, Wire::fixed64));
  add_fixed(bytes, std::bit_cast<std::uint64_t>(wall_time()));
  bytes.push_back(key(2, Wire::varint));
  add_varint(bytes, step);
}

void EventLog::end_record() {
  Bytes& bytes = records_.line();
  char* header = bytes.data() + start_;
  const std::size_t length = bytes.size() - start_ - kHeader;
  store(header, static_cast<std::uint64_t>(length));
  store(header + 8, masked({header, 8}));
  add_fixed(bytes, masked({header + kHeader, length}));
  records_.flush();
}

bool EventLog::begin(std::span<const LogColumn> columns, std::uint64_t from) {
  columns_ = columns;
  begin_record(0);
  add_bytes(records_.line(), 3, "brain.Event:2");
  end_record();
  begin_record(from);
  constexpr char kStart[] = {key(1, Wire::varint), 1};  // SessionLog: status = 1, START
  add_bytes(records_.line(), 7, {kStart, sizeof kStart});
  end_record();
  records_.check();
  return false;  // always a new file
}

void EventLog::write(const LogRow& row) {
  std::size_t summary = 0;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (number_of(columns_[i], row.cells[i]) != nullptr) summary += bytes_size(value_size(columns_[i].tag));
  }
  begin_record(row.step);
  Bytes& bytes = records_.line();
  bytes.push_back(key(5, Wire::bytes));
  add_varint(bytes, summary);
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const double* number = number_of(columns_[i], row.cells[i]);
    if (number == nullptr) continue;
    bytes.push_back(key(1, Wire::bytes));  // Summary: value = 1
    add_varint(bytes, value_size(columns_[i].tag));
    add_value(bytes, columns_[i].tag, *number);
  }
  end_record();
}

}  // namespace graphrun::cli
