#include "history.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <system_error>

#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

Error failure(ErrorKind kind, const std::string& path, int cause) {
  return Error(kind, "log.write", fmt::format("cannot write '{}': {}", path, std::generic_category().message(cause)));
}

}  // namespace

History::History(const std::string& path, const Session& session) : path_(path) {
  if (path.empty()) return;
  file_ = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) throw failure(ErrorKind::input, path_, errno);
  line_.reserve(4096);  // of many metrics
  const auto to = std::back_inserter(line_);
  fmt::format_to(to, "epoch,step,seconds,steps_per_second,loss");
  if (session.has_split("validation")) {
    fmt::format_to(to, ",validation_loss");
    cells_ = 1;
    for (const std::string& name : session.metric_names()) {
      fmt::format_to(to, ",validation_{}", name);
      ++cells_;
    }
  }
  write_line();
}

History::~History() {
  if (file_ >= 0) close(file_);
}

void History::report(const Report& report) {
  if (file_ < 0) return;
  const auto to = std::back_inserter(line_);
  fmt::format_to(to, "{},{},{:.6f},{:.6g},{}", report.epoch, report.step, report.seconds, report.steps_per_second,
                 report.loss);
  if (report.validation == nullptr) {
    for (std::size_t i = 0; i < cells_; ++i) line_.push_back(',');
  } else {
    fmt::format_to(to, ",{}", report.validation->loss);
    for (const auto& [name, value] : report.validation->values) fmt::format_to(to, ",{}", value);
  }
  write_line();
}

void History::write_line() {
  line_.push_back('\n');
  ssize_t written = 0;
  do {
    written = write(file_, line_.data(), line_.size());
  } while (written < 0 && errno == EINTR);
  if (written != static_cast<ssize_t>(line_.size())) throw failure(ErrorKind::run, path_, written < 0 ? errno : ENOSPC);
  line_.clear();
}

}  // namespace graphrun::cli
