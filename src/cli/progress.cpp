#include "progress.h"

#include <algorithm>
#include <iterator>

#include "terminal.h"

namespace graphrun::cli {

Progress::Progress(bool enabled) : enabled_(enabled), in_place_(is_terminal(stderr)) {
  line_.reserve(4096);  // of many metrics
  validation_.reserve(4096);
}

void Progress::report(const Report& report) {
  if (!enabled_) return;
  describe(report);
  if (!in_place_) {
    if (!report.due) return;
    line_.push_back('\n');
    std::fwrite(line_.data(), 1, line_.size(), stderr);
    return;
  }
  const auto now = Clock::now();
  pending_ = now - drawn_ < std::chrono::milliseconds(100);
  if (pending_) return;
  drawn_ = now;
  rewrite();
}

void Progress::finish() {
  if (pending_) rewrite();
  pending_ = false;
  if (shown_ > 0) fmt::print(stderr, "\n");
  shown_ = 0;
}

void Progress::describe(const Report& report) {
  if (report.validation != nullptr) {
    validation_.clear();
    const auto to = std::back_inserter(validation_);
    fmt::format_to(to, "  validation loss {:.6g}", report.validation->loss);
    for (const auto& [name, value] : report.validation->values) {
      if (name != "loss") fmt::format_to(to, " {} {:.6g}", name, value);
    }
  }
  line_.clear();
  const auto to = std::back_inserter(line_);
  fmt::format_to(to, "epoch {}/{}  loss {:.6g}", report.epoch, report.epochs, report.loss);
  line_.append(validation_.data(), validation_.data() + validation_.size());
  fmt::format_to(to, "  {} steps/s", human_rate(report.steps_per_second));
  if (report.epoch > 0 && report.epoch < report.epochs) {
    const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
    const double left = static_cast<double>(report.epochs - report.epoch) / static_cast<double>(report.epoch);
    fmt::format_to(to, "  ETA {}", human_duration(elapsed * left));
  }
}

void Progress::rewrite() {
  // A line as wide as the screen would wrap, and a carriage return would come back to its second half only.
  const auto room = static_cast<std::size_t>(terminal_columns(stderr) - 1);
  const std::size_t length = std::min(line_.size(), room);
  line_.resize(length);
  while (line_.size() < std::min(shown_, room)) line_.push_back(' ');
  std::fputc('\r', stderr);
  std::fwrite(line_.data(), 1, line_.size(), stderr);
  std::fflush(stderr);
  shown_ = length;
}

}  // namespace graphrun::cli
