#include "progress.h"

#include <fmt/format.h>

#include <utility>

#include "terminal.h"

namespace graphrun::cli {

Progress::Progress(bool enabled) : enabled_(enabled), in_place_(is_terminal(stderr)) {}

void Progress::report(const Report& report) {
  if (!enabled_) return;
  std::string line = describe(report);
  if (!in_place_) {
    fmt::print(stderr, "{}\n", line);
    return;
  }
  if (const auto now = Clock::now(); now - drawn_ >= std::chrono::milliseconds(100)) {
    drawn_ = now;
    rewrite(std::move(line));
    latest_.clear();
  } else {
    latest_ = std::move(line);
  }
}

void Progress::finish() {
  if (!latest_.empty()) rewrite(std::exchange(latest_, {}));
  if (shown_ > 0) fmt::print(stderr, "\n");
  shown_ = 0;
}

std::string Progress::describe(const Report& report) const {
  std::string line = fmt::format("epoch {}/{}  loss {:.6g}", report.epoch, report.epochs, report.loss);
  if (report.validation) {
    line += fmt::format("  validation loss {:.6g}", report.validation->loss);
    for (const auto& [name, value] : report.validation->values) {
      if (name != "loss") line += fmt::format(" {} {:.6g}", name, value);
    }
  }
  line += fmt::format("  {} steps/s", human_rate(report.steps_per_second));
  if (report.epoch > 0 && report.epoch < report.epochs) {
    const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
    const double left = static_cast<double>(report.epochs - report.epoch) / static_cast<double>(report.epoch);
    line += "  ETA " + human_duration(elapsed * left);
  }
  return line;
}

void Progress::rewrite(std::string line) {
  // A line as wide as the screen would wrap, and a carriage return would come back to its second half only.
  const auto room = static_cast<std::size_t>(terminal_columns(stderr) - 1);
  if (line.size() > room) line.resize(room);
  const std::size_t length = line.size();
  if (shown_ > length) line.append(shown_ - length, ' ');
  fmt::print(stderr, "\r{}", line);
  std::fflush(stderr);
  shown_ = length;
}

}  // namespace graphrun::cli
