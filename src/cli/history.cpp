#include "history.h"

#include <iterator>
#include <string>
#include <string_view>

#include "earlier_lines.h"

namespace graphrun::cli {

History::History(std::optional<OutputFile>& file, const Session& session, Diagnostics& diagnostics,
                 std::optional<std::uint64_t> resumed)
    : lines_(file) {
  if (!lines_.wanted()) return;
  const auto to = std::back_inserter(lines_.line());
  fmt::format_to(to, "epoch,step,seconds,steps_per_second,loss");
  if (session.has_split("validation")) {
    fmt::format_to(to, ",validation_loss");
    cells_ = 1;
    for (const std::string& name : session.metric_names()) {
      fmt::format_to(to, ",validation_{}", name);
      ++cells_;
    }
  }
  std::optional<std::string> earlier;
  if (resumed && !file->is_direct())
    earlier = log_lines_until(file->path(), std::string_view(lines_.line().data(), lines_.line().size()), *resumed);
  lines_.end_line();
  lines_.flush();
  lines_.check();
  if (earlier) file->write(*earlier);
  if (const std::string place = file->publish(earlier.has_value()); place != file->path()) {
    diagnostics.note(fmt::format("'{}' is an older log, which stays until this run has ended; its own grows in '{}'",
                                 file->path(), place));
  }
}

void History::report(const Report& report) {
  if (!lines_.wanted()) return;
  const auto to = std::back_inserter(lines_.line());
  fmt::format_to(to, "{},{},{:.6f},{:.6g},{}", report.epoch, report.step, report.seconds, report.steps_per_second,
                 report.loss);
  if (report.validation == nullptr) {
    for (std::size_t i = 0; i < cells_; ++i) lines_.line().push_back(',');
  } else {
    fmt::format_to(to, ",{}", report.validation->loss);
    for (const auto& [name, value] : report.validation->values) fmt::format_to(to, ",{}", value);
  }
  lines_.end_line();
  lines_.flush();
}

}  // namespace graphrun::cli
