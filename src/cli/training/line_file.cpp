#include "cli/training/line_file.h"

#include <string_view>
#include <utility>

namespace graphrun::cli {
namespace {

constexpr std::size_t kGathered = std::size_t{1} << 15;  // bytes per write
constexpr std::chrono::milliseconds kPause{20};
constexpr std::size_t kLine = std::size_t{1} << 12;  // enough for many metrics

}  // namespace

LineFile::LineFile(OutputFile* file) : file_(file) {
  if (file_ != nullptr) lines_.reserve(kGathered + kLine);
}

void LineFile::end_line() {
  lines_.push_back('\n');
  if (lines_.size() >= kGathered) flush();
}

void LineFile::flush() {
  if (file_ != nullptr && !failure_ && lines_.size() > 0) {
    try {
      file_->write(std::string_view(lines_.data(), lines_.size()));
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
  lines_.clear();
}

void LineFile::flush_soon() {
  const auto now = std::chrono::steady_clock::now();
  if (now - flushed_ < kPause) return;
  flushed_ = now;
  flush();
}

void LineFile::check() const {
  if (failure_) std::rethrow_exception(failure_);
}

void LineFile::finish() {
  flush();
  OutputFile* file = std::exchange(file_, nullptr);
  check();
  if (file != nullptr) file->commit();
}

}  // namespace graphrun::cli
