#include "data/csv/row_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/input_limit.h"
#include "data/csv/csv.h"
#include "graphrun/error.h"

namespace graphrun::data {

RowStream::RowStream(const std::string& path)
    : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), limit_(input_limit()) {
  if (file_.number() < 0) {
    throw Error(ErrorKind::input, "file.read",
                fmt::format("cannot read '{}': {}", path, std::generic_category().message(errno)));
  }
  reject_device(file_.number(), path);
}

bool RowStream::fill() {
  if (at_end_) return false;
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  const std::size_t size = buffer_.size();
  require_within_input_limit(size + kPiece, fmt::format("a record of '{}'", path_), limit_);
  buffer_.resize(size + kPiece);
  ssize_t count = 0;
  do {
    count = ::read(file_.number(), buffer_.data() + size, kPiece);
  } while (count < 0 && errno == EINTR);
  if (count < 0) {
    throw Error(ErrorKind::input, "file.read",
                fmt::format("cannot read '{}': {}", path_, std::generic_category().message(errno)));
  }
  buffer_.resize(size + static_cast<std::size_t>(count));
  at_end_ = count == 0;
  return !at_end_;
}

std::string_view RowStream::look(std::size_t bytes) {
  while (buffer_.size() < bytes && fill()) {
  }
  return std::string_view(buffer_).substr(0, bytes);
}

std::string RowStream::read_all() {
  while (fill()) {
  }
  return std::move(buffer_);
}

void RowStream::cut_as_csv(char delimiter, bool has_header, std::string comment) {
  delimiter_ = delimiter;
  needs_header_ = has_header;
  comment_ = std::move(comment);
  // Excel's first line "sep=;". The peek waits for no more bytes than a header and one row have.
  const std::size_t begin = has_header && look(3) == "\xEF\xBB\xBF" ? 3 : 0;
  if (!has_header || !look(begin + 4).ends_with('=')) return;
  const std::optional<SepLine> sep = look(begin + 7).size() < begin + 7 ? std::nullopt : sep_line(look(begin + 7));
  if (!sep) return;
  delimiter_ = sep->delimiter;
  header_ = buffer_.substr(0, sep->end);
  buffer_.erase(0, sep->end);
}

bool RowStream::advance(State& state, char c, char next) const {
  if (state == State::quoted) {
    if (c == '"') state = State::closed;
    return false;
  }
  const bool is_space = (c == ' ' || c == '\t') && c != delimiter_;
  if (is_csv_ && is_space && state == State::field) return false;
  if (is_csv_ && c == '"' && state != State::plain && state != State::comment) {  // a doubled quote reopens the field
    state = State::quoted;
    return false;
  }
  const bool ends = c == '\n' || (c == '\r' && next != '\n');
  if (ends || state != State::comment) state = ends || (is_csv_ && c == delimiter_) ? State::field : State::plain;
  return ends;
}

// A carriage return waits for the next byte, which may be its line feed.
void RowStream::scan() {
  for (; scanned_ < buffer_.size(); ++scanned_) {
    if (scanned_ == complete_ && !comment_.empty()) {
      if (buffer_.size() - scanned_ < comment_.size() && !at_end_) return;
      if (is_comment(scanned_)) state_ = State::comment;
    }
    const bool is_last = scanned_ + 1 == buffer_.size();
    if (buffer_[scanned_] == '\r' && is_last && !at_end_) return;
    if (advance(state_, buffer_[scanned_], is_last ? '\0' : buffer_[scanned_ + 1])) complete_ = scanned_ + 1;
  }
  if (at_end_) complete_ = buffer_.size();
}

std::size_t RowStream::record_end(std::size_t begin) const {
  State state = is_comment(begin) ? State::comment : State::field;
  for (std::size_t at = begin; at < complete_; ++at) {
    if (advance(state, buffer_[at], at + 1 < buffer_.size() ? buffer_[at + 1] : '\0')) return at + 1;
  }
  return complete_;
}

bool RowStream::is_comment(std::size_t begin) const {
  return !comment_.empty() && std::string_view(buffer_).substr(begin).starts_with(comment_);
}

// First complete record that is not empty or a comment; complete_ if there is none.
std::size_t RowStream::first_record() const {
  std::size_t at = 0;
  while (at < complete_ && (is_comment(at) || buffer_[at] == '\n' || buffer_[at] == '\r')) at = record_end(at);
  return at;
}

bool RowStream::take_header() {
  const std::size_t begin = first_record();
  if (begin == complete_) return false;
  const std::size_t end = record_end(begin);
  header_ += buffer_.substr(0, end);
  buffer_.erase(0, end);
  scanned_ -= end;
  complete_ -= end;
  return true;
}

Chunk RowStream::next(std::size_t rows) {
  rows_ += rows;
  for (;; fill()) {
    scan();
    if (needs_header_ && take_header()) needs_header_ = false;
    if (at_end_ || (!needs_header_ && first_record() < complete_)) break;
  }
  const std::string_view whole = std::string_view(buffer_).substr(0, complete_);
  Chunk chunk{{}, rows_, lines_, !is_csv_};
  if (first_record() < complete_) chunk.bytes = header_ + std::string(whole);
  for (std::size_t i = 0; i < whole.size(); ++i)
    lines_ += whole[i] == '\n' || (whole[i] == '\r' && i + 1 < whole.size() && whole[i + 1] != '\n') ? 1 : 0;
  buffer_.erase(0, complete_);
  scanned_ -= complete_;
  complete_ = 0;
  return chunk;
}

}  // namespace graphrun::data
