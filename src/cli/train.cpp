// train.cpp: the verb `train`: fit the model, evaluate it on every split, print the results.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "allocations.h"
#include "graphrun/error.h"
#include "graphrun/session.h"
#include "graphrun/weights.h"
#include "history.h"
#include "interrupt.h"
#include "open.h"
#include "profile.h"
#include "progress.h"
#include "result_file.h"
#include "results.h"
#include "terminal.h"
#include "verbs.h"

namespace graphrun::cli {
namespace {

// One number a line.
std::string as_lines(const std::vector<double>& losses) {
  std::string text;
  for (const double loss : losses) text += fmt::format("{:.9g}\n", loss);
  return text;
}

// Found out before the training and not after it.
void refuse_unwritable(const std::string& path) {
  if (path.empty()) return;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const std::string place = folder.empty() ? "." : folder.string();
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(path, ignored);
  if (access(place.c_str(), W_OK | X_OK) == 0 && !is_folder) return;
  throw Error(ErrorKind::input, "weights.write",
              fmt::format("cannot write '{}': {}", path,
                          is_folder ? "it is a folder" : std::generic_category().message(errno)));
}

// What the regions of the program save, and why what is in none is in none.
void describe_regions(const FusionSummary& fusion, Diagnostics& diagnostics) {
  for (const RegionSummary& region : fusion.regions) {
    diagnostics.note(fmt::format("phase {}: a region of {} steps, {} of them over tiles of {} rows; {} stay in tiles",
                                 region.phase, region.steps, region.row_steps, region.tile_rows,
                                 human_bytes(region.bytes_in_tiles)));
  }
  for (const std::string& note : fusion.notes) diagnostics.note(note);
  if (!fusion.regions.empty()) {
    diagnostics.note(fmt::format("arena without regions: {}", human_bytes(fusion.arena_bytes_without)));
  }
}

// The same for the results: how much of each phase is in a region, and what that saves.
std::vector<std::string> region_lines(const FusionSummary& fusion, const Program& program) {
  std::vector<std::string> lines;
  for (const RegionSummary& region : fusion.regions) {
    const auto phase = std::find_if(program.phases.begin(), program.phases.end(),
                                    [&](const Phase& one) { return one.name == region.phase; });
    lines.push_back(fmt::format("{}: {} of {} steps, {} never reach the arena", region.phase, region.steps,
                                phase->steps.size(), human_bytes(region.bytes_in_tiles)));
  }
  const bool some = !lines.empty();
  lines.push_back(some ? fmt::format("without them the arena has {}", human_bytes(fusion.arena_bytes_without))
                       : "none");
  if (!fusion.notes.empty()) lines.back() += some ? "; -v tells why the other steps are in none" : "; -v tells why";
  return lines;
}

}  // namespace

int run_train(const Arguments& arguments, Diagnostics& diagnostics) {
  refuse_unwritable(arguments.save_weights);
  ResultFile losses(arguments.losses, "losses.write");
  ResultFile trace(arguments.profile_trace, "profile.write");
  Session session = open_session(arguments, diagnostics);
  if (const std::string& stray = session.model().data.stray; !stray.empty()) {
    diagnostics.warn(stray + ": rows of 'validation' and 'test' may have been trained with");
  }
  std::optional<FusionSummary> fusion;
  if (arguments.session.fuse && (arguments.verbose || !arguments.json)) {
    SessionOptions options = arguments.session;
    if (!session.timings().empty()) options.executor = session.executor();  // the one that "auto" has chosen
    fusion = fusion_summary(session.model(), options);
  }
  if (arguments.verbose) {
    describe(session, diagnostics);
    if (fusion) describe_regions(*fusion, diagnostics);
  }
  History history(arguments.log, session);

  const Interrupt interrupt(session);
  AllocationWatch watch;
  TrainResult training;
  {
    Progress progress(diagnostics.chatty());
    TrainOptions options;
    options.keep_losses = !arguments.losses.empty();
    options.on_report = [&](const Report& report) {
      history.report(report);
      progress.report(report);
    };
    options.on_first_step = [&] {
      if (interrupted()) session.cancel();  // for a signal that came before train() began
      if (arguments.assert_no_alloc) watch.arm(session);
    };
    training = session.train(options);
    watch.disarm();
  }
  if (losses.wanted()) losses.write(as_lines(training.losses));
  if (arguments.verbose) {  // of training alone: evaluation adds its own
    for (const auto& [name, value] : session.counters()) diagnostics.note(fmt::format("{}: {}", name, value));
  }

  if (!arguments.save_weights.empty()) save_weights(session, arguments.save_weights);
  Results results = evaluated(session);
  results.training = std::move(training);
  if (fusion) results.regions = region_lines(*fusion, session.program());
  if (arguments.session.profiling != Profiling::off) {
    results.profile = session.profile();
    if (trace.wanted()) trace.write(chrome_trace(*results.profile));
  }

  write_results(arguments.json ? as_json(results) : as_text(results));
  refuse_non_finite(results);
  if (arguments.assert_no_alloc) tell_allocations(watch, diagnostics);
  return results.training->cancelled || interrupted() ? kInterrupted : kDone;
}

}  // namespace graphrun::cli
