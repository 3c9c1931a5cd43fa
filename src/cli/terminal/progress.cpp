#include "cli/terminal/progress.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "cli/terminal/terminal.h"
#include "graphrun/batches.h"

namespace graphrun::cli {
namespace {

constexpr std::size_t kRoom = 4096;  // enough for many metrics
constexpr double kFirst = 0.8;       // seconds until the first message
constexpr double kRedraw = 0.5;      // seconds between redraws on a terminal

// Appends "  26k/s".
void append_short_rate(fmt::basic_memory_buffer<char, 64>& text, double per_second) {
  const auto to = std::back_inserter(text);
  if (per_second >= 1e6)
    fmt::format_to(to, "  {:.1f}M/s", per_second / 1e6);
  else if (per_second >= 1e4)
    fmt::format_to(to, "  {:.0f}k/s", per_second / 1e3);
  else
    fmt::format_to(to, "  {}/s", human_rate(per_second));
}

std::uint64_t steps_an_epoch(const Model& model) {
  const Split* train = model.data.find("train");
  const Batches batches{train == nullptr ? 0 : train->samples(), model.graph.batch(), model.train.drop_last};
  return static_cast<std::uint64_t>(std::max<std::int64_t>(batches.count(), 1));
}

}  // namespace

Progress::Progress(bool enabled, const Session& session)
    : session_(session),
      enabled_(enabled),
      in_place_(is_terminal(stderr)),
      sparse_(session.model().train.log_every == 0 && !session.model().train.log_spaced),
      steps_an_epoch_(steps_an_epoch(session.model())),
      first_step_(session.step()) {
  line_.reserve(kRoom);
  part_.reserve(kRoom);
  for (std::string& name : session.metric_names()) validation_.values.emplace_back(std::move(name), 0.0);
  if (enabled_) timer_.start(kFirst, [this] { return tick(); });
}

// Prints the step count until the first report.
double Progress::tick() {
  const std::lock_guard lock(drawing_);
  if (reported_) return -1;
  const std::uint64_t step = session_.step();
  const std::uint64_t epoch = step == 0 ? 1 : (step - 1) / steps_an_epoch_ + 1;
  const double seconds = elapsed();
  line_.clear();
  const auto to = std::back_inserter(line_);
  fmt::format_to(to, "epoch {}/{}  step {} of {}", epoch, session_.model().train.epochs,
                 step - (epoch - 1) * steps_an_epoch_, steps_an_epoch_);
  if (step > first_step_ + 1)
    fmt::format_to(to, "  {} steps/s", human_rate(static_cast<double>(step - 1 - first_step_) / seconds));
  if (in_place_) {
    rewrite();
    return kRedraw;
  }
  line_.push_back('\n');
  write_error({line_.data(), line_.size()});
  return until_next_line(seconds);
}

void Progress::report(const Report& report) {
  if (!enabled_) return;
  const std::lock_guard lock(drawing_);
  reported_ = true;
  if (report.validation != nullptr) {
    validation_.loss = report.validation->loss;
    const std::size_t count = std::min(validation_.values.size(), report.validation->values.size());
    for (std::size_t i = 0; i < count; ++i) validation_.values[i].second = report.validation->values[i].second;
    evaluated_ = report.epoch;
  }
  if (!in_place_) {
    if (!is_due(report)) return;
    describe(report, std::numeric_limits<std::size_t>::max());
    line_.push_back('\n');
    write_error({line_.data(), line_.size()});
    return;
  }
  // A full-width line would wrap, and the carriage return would only rewrite its last row.
  describe(report, static_cast<std::size_t>(terminal_columns(stderr) - 1));
  const double now = Profiler::now();
  pending_ = now - drawn_ < 0.1;
  if (pending_) return;
  drawn_ = now;
  rewrite();
}

void Progress::finish() {
  timer_.stop();
  if (pending_) rewrite();
  pending_ = false;
  if (shown_ > 0) write_error("\n");
  shown_ = 0;
}

// Uses the model's interval, or spreads kLines evenly over the training.
bool Progress::is_due(const Report& report) {
  if (!report.due || !sparse_) return report.due;
  const double share =
      static_cast<double>(report.epoch) / static_cast<double>(std::max<std::int64_t>(report.epochs, 1));
  const auto part = static_cast<std::int64_t>(share * static_cast<double>(kLines) + 1e-9);
  if (part <= printed_) return false;
  printed_ = part;
  return true;
}

// Fits the parts by priority: loss, remaining time, validation, rate. The line prints them in another order.
void Progress::describe(const Report& report, std::size_t room) {
  if (!describe(report, room, false)) describe(report, room, true);
}

bool Progress::describe(const Report& report, std::size_t room, bool in_short) {
  const int digits = in_short ? 4 : 6;
  fmt::basic_memory_buffer<char, 64> time, rate;
  if (report.step > first_step_ && report.epoch < report.epochs) {
    const double steps = static_cast<double>(steps_an_epoch_) * static_cast<double>(report.epochs - report.epoch);
    const double left = steps / static_cast<double>(report.step - first_step_);
    fmt::format_to(std::back_inserter(time), "  ETA {}", human_duration(elapsed() * left));
  }
  if (in_short)
    append_short_rate(rate, report.steps_per_second);
  else
    fmt::format_to(std::back_inserter(rate), "  {} steps/s", human_rate(report.steps_per_second));

  line_.clear();
  fmt::format_to(std::back_inserter(line_), "epoch {}/{}  loss {:.{}g}", report.epoch, report.epochs, report.loss,
                 digits);
  for (std::size_t i = 0; i < report.objectives.size(); ++i) {
    fmt::format_to(std::back_inserter(line_), " {} {:.{}g}", session_.model().train.objectives[i].name,
                   report.objectives[i], digits);
  }
  if (line_.size() > room) line_.resize(room);
  const bool timed = line_.size() + time.size() <= room;
  if (timed) room -= time.size();
  const bool validated = evaluated_ == 0 || describe_validation(report.epoch, room, digits);
  const bool rated = append({rate.data(), rate.size()}, room);
  if (timed) line_.append(time.data(), time.data() + time.size());
  return timed && validated && rated;
}

// Adds the epoch if it is not the current one. Returns whether the loss fit.
bool Progress::describe_validation(std::int64_t epoch, std::size_t room, int digits) {
  part_.clear();
  const auto to = std::back_inserter(part_);
  fmt::format_to(to, "  validation");
  if (evaluated_ != epoch) fmt::format_to(to, "@{}", evaluated_);
  fmt::format_to(to, " loss {:.{}g}", validation_.loss, digits);
  if (!append({part_.data(), part_.size()}, room)) return false;
  for (const auto& [name, value] : validation_.values) {
    if (name == "loss") continue;
    part_.clear();
    fmt::format_to(to, " {} {:.{}g}", name, value, digits);
    if (!append({part_.data(), part_.size()}, room)) break;
  }
  return true;
}

// Returns whether the part fit.
bool Progress::append(std::string_view part, std::size_t room) {
  if (line_.size() + part.size() > room) return false;
  line_.append(part.data(), part.data() + part.size());
  return true;
}

void Progress::rewrite() {
  const std::size_t length = line_.size();
  part_.clear();
  part_.push_back('\r');
  part_.append(line_.data(), line_.data() + length);
  while (part_.size() < shown_ + 1) part_.push_back(' ');
  write_error({part_.data(), part_.size()});
  shown_ = length;
}

}  // namespace graphrun::cli
