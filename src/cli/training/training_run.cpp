#include "cli/training/training_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command_line/open.h"
#include "cli/pictures/log_pictures.h"
#include "cli/pictures/report_page.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/output_files.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/slow_operation.h"
#include "cli/terminal/terminal.h"
#include "cli/training/allocations.h"
#include "cli/training/certificate.h"
#include "cli/training/checkpoints.h"
#include "cli/training/history.h"
#include "cli/training/line_file.h"
#include "cli/training/log_resume.h"
#include "cli/training/profile.h"
#include "cli/training/text_logs.h"
#include "graphrun/elements.h"
#include "graphrun/error.h"
#include "graphrun/session.h"
#include "graphrun/show.h"
#include "graphrun/weights.h"

namespace graphrun::cli {
namespace {

// Prints a note on the savings of each fused region, and on the reason for each op outside them.
void describe_regions(const FusionSummary& fusion, Diagnostics& diagnostics) {
  for (const RegionSummary& region : fusion.regions) {
    if (region.chains > 0) {
      diagnostics.note(fmt::format("phase {}: a region of {} steps over elements; {} stay in registers", region.phase,
                                   region.steps, human_bytes(region.bytes_in_tiles)));
      continue;
    }
    diagnostics.note(fmt::format("phase {}: a region of {} steps, {} of them over {}; {} stay in tiles", region.phase,
                                 region.steps, region.row_steps, to_string(region.tiling),
                                 human_bytes(region.bytes_in_tiles)));
  }
  for (const std::string& note : fusion.notes) diagnostics.note(note);
}

// Same for the results: number of steps in regions by phase, and bytes kept out of the arena.
std::vector<std::string> region_lines(const FusionSummary& fusion, const Program& program) {
  std::vector<std::string> lines;
  for (const RegionSummary& region : fusion.regions) {
    const auto phase = std::find_if(program.phases.begin(), program.phases.end(),
                                    [&](const Phase& one) { return one.name == region.phase; });
    lines.push_back(fmt::format("{}: {} of {} steps, {} never reach the arena", region.phase, region.steps,
                                phase->steps.size(), human_bytes(region.bytes_in_tiles)));
  }
  if (lines.empty()) return {"none"};
  return lines;
}

// Runs each action even if an earlier one failed: a file that cannot be written must not lose the others.
class Attempts {
 public:
  template <class F>
  void run(F f) {
    try {
      f();
    } catch (const Error& error) {
      found_.insert(found_.end(), error.diagnostics().begin(), error.diagnostics().end());
    } catch (const std::bad_alloc&) {
      out_of_memory_ = true;
    }
  }
  // Reports the errors when a more severe one will be thrown.
  void report(Diagnostics& diagnostics) const {
    if (!found_.empty()) diagnostics.error(Error(ErrorKind::run, found_));
  }
  bool failed() const { return !found_.empty() || out_of_memory_; }
  void throw_if_failed() const {
    if (!found_.empty()) throw Error(ErrorKind::run, found_);
    if (out_of_memory_) throw std::bad_alloc();
  }

 private:
  std::vector<Diagnostic> found_;
  bool out_of_memory_ = false;
};

std::vector<std::pair<std::string, std::string>> facts_of_training(const TrainResult& training) {
  const double steps = static_cast<double>(training.steps - training.first_step);
  const double rate = training.seconds > 0 ? steps / training.seconds : 0;
  return {{"epochs", epochs_text(training)},
          {"steps", grouped(training.steps)},
          {"seconds", fmt::format("{:.3f}", training.seconds)},
          {"steps/s", human_rate(rate)}};
}

void write_whole(OutputFile& file, std::string_view text) {
  file.write(text);
  file.commit();
}

// Saves the weights elsewhere if that fails: training time must not be lost.
void save_or_rescue(Session& session, OutputFile& file) {
  std::vector<Diagnostic> found;
  try {
    return save_weights(session, file);
  } catch (const Error& error) {
    found = error.diagnostics();
  } catch (const std::bad_alloc&) {
    const Error error(ErrorKind::run, "weights.write", fmt::format("cannot write '{}': out of memory", file.path()));
    found = error.diagnostics();
  }
  try {
    found.front().hint = fmt::format("the weights are in '{}' instead", rescue_weights(session));
  } catch (const Error& error) {
    found.insert(found.end(), error.diagnostics().begin(), error.diagnostics().end());
  }
  throw Error(ErrorKind::run, std::move(found));
}

// First --log in CSV, which the report page can read.
std::string csv_log(const Arguments& arguments) {
  const auto csv = std::ranges::find_if_not(arguments.logs, is_json_log);
  return csv == arguments.logs.end() ? "" : *csv;
}

// Copies the losses before the checkpoint from the old file, if it has them.
void keep_losses(OutputFile& file, std::uint64_t steps, Diagnostics& diagnostics) {
  if (file.is_direct()) return;
  const std::string earlier = first_losses(file.path(), steps);
  if (earlier.empty() && steps > 0)
    diagnostics.warn(fmt::format("'{}' has no losses of the first {} steps: it will begin with step {}", file.path(),
                                 steps, steps + 1));
  file.write(earlier);
}

// Trains with log, losses and progress. A non-finite loss or a device failure ends the training, but log and losses
// stay complete. A failure before the first step leaves existing files unchanged.
TrainResult train(Session& session, const Arguments& arguments, OutputFiles& outputs, AllocationWatch& watch,
                  Attempts& attempts, Diagnostics& diagnostics, TrainingCurves& curves, Checkpoints& checkpoints) {
  History history(outputs, session, arguments.hash_weights, checkpoints.resumed(), checkpoints.keeps(), diagnostics);
  LineFile losses(outputs.losses);
  if (losses.wanted() && checkpoints.resumed()) keep_losses(*outputs.losses, *checkpoints.resumed(), diagnostics);
  if (losses.wanted() && checkpoints.keeps()) outputs.losses->publish(true);
  const auto finish = [&] {
    attempts.run([&] { losses.finish(); });
    attempts.run([&] { history.finish(); });
  };
  try {
    Progress progress(diagnostics.chatty(), session);
    TrainOptions options;
    options.keep_losses = false;
    options.hash_weights = arguments.hash_weights;
    options.watch_every = arguments.watch_every;
    options.trace_not_finite = arguments.nan_trace;
    options.on_report = [&](const Report& report) {
      history.report(report);
      progress.report(report);
      curves.report(report);
    };
    if (losses.wanted()) {
      options.on_losses = [&](std::span<const double> some) {
        for (const double loss : some) {
          fmt::format_to(std::back_inserter(losses.line()), "{:.9g}", unsigned_nan(loss));
          losses.end_line();
        }
        if (checkpoints.keeps()) losses.flush();  // before the checkpoint, so that a killed run has them
      };
    }
    checkpoints.connect(options);
    if (arguments.stop_epoch > 0) {
      options.on_step_end = [&, save = std::move(options.on_step_end)](const StepEnd& end) {
        if (save) save(end);
        if (end.step >= static_cast<std::uint64_t>(arguments.stop_epoch) * end.steps_of_epoch) session.cancel();
      };
    }
    options.on_first_step = [&] {
      if (interrupted()) session.cancel();  // a signal arrived before train() began
      if (arguments.assert_no_alloc || outputs.certificate) watch.arm(session);
    };
    TrainResult training;
    if (arguments.stop_epoch > 0 && checkpoints.resumed_epoch() >= arguments.stop_epoch) {  // killed after its end
      training.epochs = checkpoints.resumed_epoch();
      training.first_step = training.steps = *checkpoints.resumed();
      training.cancelled = true;
    } else {
      training = session.train(options);
    }
    watch.disarm();
    finish();
    return training;
  } catch (const NotFinite& error) {
    watch.disarm();
    finish();
    // Saves the weights, as after an interrupt.
    if (outputs.weights && error.steps() > 0) {
      attempts.run([&] {
        save_or_rescue(session, *outputs.weights);
        diagnostics.note(fmt::format("'{}' has the weights after step {}, which are finite", outputs.weights->path(),
                                     error.steps()));
      });
    }
    attempts.report(diagnostics);
    throw;
  } catch (...) {
    watch.disarm();
    if (session.step() > 0) finish();
    attempts.report(diagnostics);
    throw;
  }
}

}  // namespace

int train_and_store(const Arguments& given, Diagnostics& diagnostics, const PrintResults& print,
                    UnsyncedRun* unsynced) {
  Arguments arguments = given;
  if (!arguments.certificate.empty()) AllocationWatch::count_setup();
  RunFolder folder(arguments, unsynced);
  OutputFiles outputs(arguments);
  if (unsynced != nullptr) {
    outputs.rows_together = true;
    for (OutputFile& log : outputs.logs) log.defer_sync();
    if (outputs.weights) outputs.weights->defer_sync();
  }
  Checkpoints checkpoints(arguments, diagnostics);
  Session session = open_session(arguments, diagnostics, nullptr, &outputs);
  if (const std::string& split_mismatch = session.model().data.split_mismatch; !split_mismatch.empty()) {
    diagnostics.warn(split_mismatch + ": rows of 'validation' and 'test' may have been trained with");
  }
  for (const std::string& warning : session.training_warnings()) diagnostics.warn(warning);
  std::optional<FusionSummary> fusion;
  if (arguments.session.fuse && arguments.verbose) fusion = session.fusion();
  if (arguments.verbose) {
    describe(session, diagnostics);
    if (fusion) describe_regions(*fusion, diagnostics);
  }

  // Computed before training, because there is no time for it after an interrupt.
  std::string settings;
  if (arguments.json || !arguments.run_dir.empty()) settings = training_settings(session.model());
  checkpoints.begin(session);
  folder.begin(session);
  outputs.connect(diagnostics);
  const Interrupt interrupt(session, checkpoints.folder());
  AllocationWatch watch;
  Attempts attempts;
  TrainingCurves curves(session, outputs.report.has_value());
  TrainResult training = [&] {
    try {
      return train(session, arguments, outputs, watch, attempts, diagnostics, curves, checkpoints);
    } catch (const NotFinite& failure) {
      if (!settings.empty()) folder.end(failure_json(session, failure, settings));
      throw;
    }
  }();
  attempts.run([&] { checkpoints.finish(); });
  if (outputs.weights) attempts.run([&] { save_or_rescue(session, *outputs.weights); });
  const bool is_stored = !attempts.failed();
  if (arguments.verbose) {  // training counters only: evaluation adds its own
    for (const auto& [name, value] : session.counters()) diagnostics.note(fmt::format("{}: {}", name, value));
  }

  // Ctrl-C ends the program within 0.2 seconds, including shutdown.
  constexpr double kAfterInterrupt = 0.05;
  Results results = [&] {
    const SlowOperationNotice notice(diagnostics, "evaluating");
    return evaluated(session, kAfterInterrupt - seconds_since_interrupt());
  }();
  if (session.model().train.threshold && session.model().data.thresholds.empty()) {
    if (training.cancelled)
      results.left_out.emplace_back("threshold");
    else
      diagnostics.warn("no threshold: no output has two classes or several labels, or it has too many rows to rank");
  }
  if (arguments.intervals && training.cancelled) {
    results.intervals.emplace();
    results.intervals_note =
        "none: the training was interrupted; eval --weights --intervals prints those of saved weights";
  } else if (arguments.intervals) {
    add_intervals(results, session);
  }
  results.training = std::move(training);
  results.settings = std::move(settings);
  if (outputs.certificate)
    attempts.run([&] { write_whole(*outputs.certificate, certificate(session, results, watch)); });
  if (fusion) results.regions = region_lines(*fusion, session.program());
  if (arguments.session.profiling != Profiling::off) {
    results.profile = session.profile();
    if (outputs.trace) attempts.run([&] { write_whole(*outputs.trace, chrome_trace(*results.profile)); });
  }

  if (outputs.report && !interrupted()) {
    attempts.run([&] {
      ReportSource source;
      source.curves = curves.figures(checkpoints.resumed() ? csv_log(arguments) : "");
      source.facts = facts_of_training(*results.training);
      source.graph_text = graph_of(arguments);
      source.environment = described_environment(arguments.command, session);
      write_whole(*outputs.report, report_page(session, results, source));
    });
  } else if (outputs.report) {
    diagnostics.note("the training was interrupted: there is no page of it");
  }
  // A run with result.json is done: without its log or its weights it must be trained again.
  if (is_stored) attempts.run([&] { folder.end(as_json(results)); });
  if (print) attempts.run([&] { print(results); });
  attempts.throw_if_failed();
  reject_non_finite(results);
  if (arguments.assert_no_alloc || outputs.certificate) report_allocations(watch, diagnostics);
  return results.training->cancelled || interrupted() ? kInterrupted : kDone;
}

}  // namespace graphrun::cli
