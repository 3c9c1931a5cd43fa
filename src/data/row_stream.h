// row_stream.h: a pipe as whole records, as they arrive: lines of a CSV file, whose quoted fields may hold line ends,
// or of JSON Lines. Contract: next() waits for one record at least and gives all that have come; what is not yet whole
// is kept. Bytes that have been looked at are not looked at again. Throws Error: cannot be read, or a record beyond the
// limit of input_limit.h. Leaves to others: what the records say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/descriptor.h"
#include "data/files.h"

namespace graphrun::data {

class RowStream {
 public:
  explicit RowStream(const std::string& path);  // opens it

  // At least so many bytes from its begin, or all there are: to see what it holds. Before anything is taken.
  std::string_view look(std::size_t bytes);
  std::string read_all();  // from its begin

  // Fields in quotes begin behind the delimiter; `comment` as in csv.h.
  void cut_as_csv(char delimiter, bool has_header, std::string comment);
  void cut_as_lines() { is_csv_ = needs_header_ = false; }

  // Records that have come since, of a CSV file with its header in front; no bytes at the end. `rows` of the piece
  // before.
  Chunk next(std::size_t rows);

 private:
  // Where in a record: at the begin of a field or in spaces there, in one without or with quotes, behind the closing
  // quote; or in a comment.
  enum class State { field, plain, quoted, closed, comment };

  bool fill();  // false: the end
  void scan();
  bool take_header();  // false: it is not whole yet
  std::size_t first_record() const;
  std::size_t record_end(std::size_t begin) const;  // of a whole one
  bool is_comment(std::size_t begin) const;         // of a record
  // What follows a character. `next`: the one behind it, '\0' where there is none. True: a record ends here.
  bool advance(State& state, char c, char next) const;

  std::string path_;
  Descriptor file_;
  std::uint64_t limit_;
  std::string buffer_;
  std::size_t scanned_ = 0;   // bytes of it that state_ tells of
  std::size_t complete_ = 0;  // of those, up to the end of the last whole record
  State state_ = State::field;
  bool at_end_ = false;

  bool is_csv_ = true, needs_header_ = true;
  char delimiter_ = ',';
  std::string comment_;
  std::string header_;  // with what stands before it: "sep=;", comments
  std::size_t rows_ = 0;
  int lines_ = 0;  // given so far, without the header's
};

}  // namespace graphrun::data
