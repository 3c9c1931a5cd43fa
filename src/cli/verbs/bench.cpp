// bench.cpp: the verb `bench`: duration of a training step, alone and in a run, and startup time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "cli/command_line/open.h"
#include "cli/command_line/verbs.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/terminal.h"
#include "cli/training/allocations.h"
#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

constexpr double kSeconds = 2;                // duration without --steps
constexpr std::uint64_t kMaxSteps = 1000000;  // limit without --steps
constexpr std::uint64_t kMin = 10;            // minimum number of steps

// Nearest-rank percentile: the smallest value that at least this share of all values does not exceed.
double percentile(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

// Prints "one at a time: 45 %" on a terminal, rewritten in place between two steps: a thread would disturb the timing.
struct BenchProgress {
  bool enabled;
  double next = Profiler::now() + 0.2;

  void report(std::string_view what, double share) {
    if (!enabled || Profiler::now() < next) return;
    next = Profiler::now() + 0.2;
    fmt::basic_memory_buffer<char, 64> line;  // allocates nothing
    fmt::format_to(std::back_inserter(line), "\r{:>20}: {:3.0f} %", what, 100 * std::min(share, 1.0));
    write_error({line.data(), line.size()});
  }
  void finish() const {
    if (enabled) write_error(fmt::format("\r{:40}\r", ""));
  }
};

struct Figures {
  double load_seconds = 0;
  double first_step = 0;              // seconds
  std::vector<double> steps, sorted;  // seconds each
  std::uint64_t run_steps = 0;
  double steps_per_second = 0;  // measured in one run of many steps
  std::uint64_t late = 0;
  std::size_t worst = 0;
};

// Measures steps one at a time. The vector is preallocated, so that nothing is allocated between two steps.
void measure_steps(Session& session, const Arguments& arguments, Figures& figures, BenchProgress& progress) {
  const std::uint64_t most = arguments.steps.value_or(kMaxSteps);
  const double start = Profiler::now();
  while (figures.steps.size() < most && !interrupted()) {
    const bool enough = figures.steps.size() >= kMin && Profiler::now() - start >= kSeconds;
    if (!arguments.steps && enough) break;
    progress.report("steps one at a time", arguments.steps
                                               ? static_cast<double>(figures.steps.size()) / static_cast<double>(most)
                                               : (Profiler::now() - start) / kSeconds);
    if (arguments.bench.idle_gap_ms) wait_or_interrupt(*arguments.bench.idle_gap_ms * 1e-3);
    if (interrupted()) break;
    const double before = Profiler::now();
    session.advance(1);
    figures.steps.push_back(Profiler::now() - before);
  }
}

// Runs the same number of steps in chunks of about 50 ms, which allow an interrupt; only a few steps after one.
void run_steps(Session& session, Figures& figures, BenchProgress& progress) {
  constexpr double kPieceSeconds = 0.05;
  const std::uint64_t wanted =
      interrupted() ? std::min(kMin, std::uint64_t{figures.steps.size()}) : figures.steps.size();
  const double alone = std::accumulate(figures.steps.begin(), figures.steps.end(), 0.0);
  const double fitting = static_cast<double>(figures.steps.size()) * kPieceSeconds / std::max(alone, 1e-9);
  const auto most = static_cast<std::uint64_t>(std::clamp(fitting, 1.0, 1e15));
  while (figures.run_steps < wanted) {
    const std::uint64_t piece = std::min(most, wanted - figures.run_steps);
    session.advance(piece);
    figures.run_steps += piece;
    progress.report("steps in a run", static_cast<double>(figures.run_steps) / static_cast<double>(wanted));
    if (interrupted()) return;
  }
}

Figures measure(Session& session, const Arguments& arguments, Diagnostics& diagnostics) {
  Figures figures;
  double before = Profiler::now();
  session.advance(1);
  figures.first_step = Profiler::now() - before;
  BenchProgress progress{diagnostics.chatty() && !arguments.json && is_terminal(stderr)};
  for (std::uint64_t i = 1; i < arguments.bench.warmup && !interrupted(); ++i) {
    session.advance(1);
    progress.report("warming up", static_cast<double>(i) / static_cast<double>(arguments.bench.warmup));
  }

  AllocationWatch watch;
  figures.steps.reserve(arguments.steps.value_or(kMaxSteps));
  if (arguments.assert_no_alloc) watch.arm(session);
  measure_steps(session, arguments, figures, progress);
  before = Profiler::now();
  run_steps(session, figures, progress);
  figures.steps_per_second = static_cast<double>(figures.run_steps) / (Profiler::now() - before);
  watch.disarm();
  progress.finish();
  if (arguments.assert_no_alloc) report_allocations(watch, diagnostics);

  figures.worst =
      static_cast<std::size_t>(std::max_element(figures.steps.begin(), figures.steps.end()) - figures.steps.begin());
  figures.sorted = figures.steps;
  std::sort(figures.sorted.begin(), figures.sorted.end());
  if (arguments.bench.deadline_us) {
    const double limit = *arguments.bench.deadline_us * 1e-6;
    figures.late = static_cast<std::uint64_t>(
        std::count_if(figures.steps.begin(), figures.steps.end(), [&](double step) { return step > limit; }));
  }
  return figures;
}

// 1-based step number within the training.
std::uint64_t number_of(const Arguments& arguments, std::size_t index) {
  return std::max<std::uint64_t>(arguments.bench.warmup, 1) + index + 1;
}

constexpr std::pair<const char*, double> kShares[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}};

// Calls f(name, seconds) for each phase up to the end of the first step. The parts of the executor's load follow it.
template <class F>
void each_phase(const Session& session, const Figures& figures, F f) {
  const SetupTimes& times = session.setup_times();
  f("read model and data", figures.load_seconds);
  f("plan", times.plan);
  f("load", times.load);
  for (const auto& [name, value] : session.counters()) {
    if (name.ends_with("_ns")) f("load." + name.substr(0, name.size() - 3), static_cast<double>(value) * 1e-9);
  }
  f("write", times.write);
  f("first step", figures.first_step);
}

std::string as_json(const Session& session, const Figures& figures, const Arguments& arguments) {
  JsonWriter json;
  json.begin_object().member("model", session.model().name).member("executor", session.executor());
  json.member("math", name_of(session.program().math));
  json.member("target", session.program().target).member("batch", session.model().graph.batch());
  json.member("warmup", std::max<std::uint64_t>(arguments.bench.warmup, 1)).member("steps", figures.steps.size());
  json.member("steps_per_second", figures.steps_per_second);
  json.key("step_us").begin_object();
  for (const auto& [name, share] : kShares) json.member(name, percentile(figures.sorted, share) * 1e6);
  json.member("max", figures.sorted.back() * 1e6);
  json.member("worst_step", number_of(arguments, figures.worst)).end_object();
  json.key("start_us").begin_object();
  each_phase(session, figures, [&](std::string name, double seconds) {
    std::replace(name.begin(), name.end(), ' ', '_');
    json.member(name, seconds * 1e6);
  });
  json.end_object()
      .member("idle_gap_ms", arguments.bench.idle_gap_ms)
      .member("deadline_us", arguments.bench.deadline_us);
  json.member("late", figures.late).member("arena_bytes", session.program().arena_bytes);
  json.member("lower_bound", session.program().lower_bound);
  json.key("counters").begin_object();
  for (const auto& [name, value] : session.counters()) json.member(name, value);
  return json.end_object().end_object().text() + "\n";
}

std::string as_text(const Session& session, const Figures& figures, const Arguments& arguments) {
  std::string text =
      paint(stdout, Style::bold, fmt::format("{} on {}", printable(session.model().name), session.executor())) + "\n";
  const auto line = [&](std::string_view label, std::string_view content) {
    text += fmt::format("{:<30}{}\n", label, content);
  };
  line("steps/s",
       fmt::format("{}  ({} steps in a run)", human_rate(figures.steps_per_second), grouped(figures.run_steps)));
  const std::string gap =
      arguments.bench.idle_gap_ms ? fmt::format(", each after {} ms of idling", *arguments.bench.idle_gap_ms) : "";
  text += fmt::format("{} steps one at a time after {} to warm up{}:\n", grouped(figures.steps.size()),
                      std::max<std::uint64_t>(arguments.bench.warmup, 1), gap);
  for (const auto& [name, share] : kShares) {
    line(fmt::format("  {}", name), human_time(percentile(figures.sorted, share)));
  }
  line("  max",
       fmt::format("{}  (step {})", human_time(figures.sorted.back()), grouped(number_of(arguments, figures.worst))));
  text += "on the way to the first step:\n";
  each_phase(session, figures, [&](const std::string& name, double seconds) {
    line((name.starts_with("load.") ? "    " + name.substr(5) : "  " + name), human_time(seconds));
  });
  line("arena", human_bytes(session.program().arena_bytes));
  return text;
}

int run_bench(const Arguments& arguments, Diagnostics& diagnostics) {
  double load_seconds = 0;
  Session session = open_session(arguments, diagnostics, &load_seconds);
  if (arguments.verbose) describe(session, diagnostics);
  const Interrupt interrupt(session);
  Figures figures = measure(session, arguments, diagnostics);
  figures.load_seconds = load_seconds;
  if (figures.steps.empty()) return kInterrupted;
  write_results(arguments.json ? as_json(session, figures, arguments) : as_text(session, figures, arguments));
  if (figures.late > 0) {
    throw Error(ErrorKind::check, "check.deadline",
                fmt::format("--deadline-us: {} of {} steps took longer than {} µs; the worst was step {} with {}",
                            grouped(figures.late), grouped(figures.steps.size()), *arguments.bench.deadline_us,
                            number_of(arguments, figures.worst), human_time(figures.sorted.back())));
  }
  return interrupted() ? kInterrupted : kDone;
}

}  // namespace

const Verb bench_verb = {
    "bench",
    "time",
    Positionals::model,
    "measure the speed and the latency of training steps",
    R"(Measures steps per second over a run of many steps, and latencies (p50 to max) of single steps after a
warm-up, without reading the loss. Startup time, up to the end of the first step, is reported separately.

--idle-gap-ms pauses before each step, to measure a program that trains on occasional requests. With
--deadline-us, the exit code is 3 if a step takes longer.)",
    R"(graphrun bench model.json
graphrun bench model.json --executor=cuda --steps=1000 --json
graphrun bench model.json --idle-gap-ms=5 --deadline-us=200)",
    run_bench};

}  // namespace graphrun::cli
