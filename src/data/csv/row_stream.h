// row_stream.h: splits a pipe into complete records as they arrive: CSV records (quoted fields may contain line ends)
// or JSON Lines. Contract: next() waits for at least one record and returns all that have arrived; an incomplete record
// stays buffered. Each byte is scanned once. Throws Error if reading fails or a record exceeds the limit of
// input_limit.h. Not here: parsing of the records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/descriptor.h"
#include "data/sources/files.h"

namespace graphrun::data {

class RowStream {
 public:
  explicit RowStream(const std::string& path);  // opens the pipe

  // Peeks at the first `bytes` bytes, or at all if there are fewer. Only valid before any record is taken.
  std::string_view look(std::size_t bytes);
  std::string read_all();  // from the start

  // A quoted field starts right after the delimiter; `comment` as in csv.h.
  void cut_as_csv(char delimiter, bool has_header, std::string comment);
  void cut_as_lines() { is_csv_ = needs_header_ = false; }

  // Returns the records that arrived since the last call, with the header in front for CSV; empty bytes at the end.
  // `rows`: row count of the previous chunk.
  Chunk next(std::size_t rows);

 private:
  // Scanner state: at the start of a field (or in its leading spaces), in an unquoted field, in a quoted field, after
  // the closing quote, in a comment.
  enum class State { field, plain, quoted, closed, comment };

  bool fill();  // false at the end of the stream
  void scan();
  bool take_header();  // false if the header is incomplete
  std::size_t first_record() const;
  std::size_t record_end(std::size_t begin) const;  // for a complete record
  bool is_comment(std::size_t begin) const;         // for the start of a record
  // Updates the state for c. `next`: the following character, or '\0' at the end. Returns true if a record ends here.
  bool advance(State& state, char c, char next) const;

  std::string path_;
  Descriptor file_;
  std::uint64_t limit_;
  std::string buffer_;
  std::size_t scanned_ = 0;   // bytes of buffer_ covered by state_
  std::size_t complete_ = 0;  // end of the last complete record
  State state_ = State::field;
  bool at_end_ = false;

  bool is_csv_ = true, needs_header_ = true;
  char delimiter_ = ',';
  std::string comment_;
  std::string header_;  // with any preceding lines: "sep=;", comments
  std::size_t rows_ = 0;
  int lines_ = 0;  // returned so far, without the header
};

}  // namespace graphrun::data
