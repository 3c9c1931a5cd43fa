#include "cli/command_line/open.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "cli/terminal/slow_operation.h"
#include "cli/terminal/terminal.h"

namespace graphrun::cli {
namespace {

void report_timings(const Session& session, Diagnostics& diagnostics) {
  if (session.timings().empty()) return;
  std::string text;
  for (const ExecutorTiming& timing : session.timings()) {
    text += text.empty() ? "" : ", ";
    text += timing.reason.empty() ? fmt::format("{} {} per step", timing.executor, human_time(timing.seconds_per_step))
                                  : fmt::format("{} unavailable ({})", timing.executor, timing.reason);
  }
  diagnostics.note(fmt::format("auto: {}; using {}", text, session.timings().front().executor));
}

}  // namespace

Model read_model(const Arguments& arguments, Diagnostics& diagnostics) {
  return read_model(arguments, arguments.load, diagnostics);
}

Model read_model(const Arguments& arguments, const LoadOptions& how, Diagnostics& diagnostics) {
  SlowOperationNotice notice(diagnostics, fmt::format("reading {} and its data", arguments.model));
  LoadOptions options = how;
  options.on_progress = notice.progress();
  Model model = load_model(arguments.model, options);
  for (const std::string& warning : model.data.warnings) diagnostics.warn(warning);
  return model;
}

Session open_session(const Arguments& arguments, Diagnostics& diagnostics, double* load_seconds,
                     const OutputFiles* outputs) {
  const double start = Profiler::now();
  Model model = read_model(arguments, diagnostics);
  if (outputs != nullptr) outputs->reject_read(model);
  if (load_seconds != nullptr) *load_seconds = Profiler::now() - start;
  return open_session(std::move(model), arguments, diagnostics);
}

Session open_session(Model model, const Arguments& arguments, Diagnostics& diagnostics) {
  std::optional<SlowOperationNotice> notice;
  notice.emplace(diagnostics, "planning");
  SessionOptions options = arguments.session;
  options.on_progress = notice->progress();
  Session session(std::move(model), options);
  notice.reset();
  report_timings(session, diagnostics);
  for (const std::string& fallback : session.fusion().fallbacks) diagnostics.note(fallback);
  return session;
}

void describe(const Session& session, Diagnostics& diagnostics) {
  for (const Split& split : session.model().data.splits) {
    diagnostics.note(fmt::format("{} split: {} rows", split.name, split.samples()));
  }
  const Program& program = session.program();
  diagnostics.note(
      fmt::format("arena: {}, lower bound {}", human_bytes(program.arena_bytes), human_bytes(program.lower_bound)));
  for (const Phase& phase : program.phases) {
    diagnostics.note(fmt::format("phase {}: {} steps, {} rows", phase.name, phase.steps.size(), phase.capacity));
  }
}

void report_allocations(const AllocationWatch& watch, Diagnostics& diagnostics) {
  watch.require_none();
  const std::uint64_t others = watch.drivers();
  diagnostics.note(fmt::format("--assert-no-alloc: none after the first step{}",
                               others == 0 ? "" : fmt::format(", {} by the GPU driver's own libraries", others)));
}

}  // namespace graphrun::cli
