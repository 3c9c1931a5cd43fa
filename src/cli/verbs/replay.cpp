// replay.cpp: the verb `replay`: repeats a stored run and compares the results.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/file.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "cli/command_line/help.h"
#include "cli/command_line/open.h"
#include "cli/command_line/stored_arguments.h"
#include "cli/command_line/verbs.h"
#include "cli/stored_runs/curves.h"
#include "cli/stored_runs/hyperparameter_changes.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal.h"
#include "graphrun/error.h"
#include "graphrun/run_folder.h"

namespace graphrun::cli {
namespace {

namespace fs = std::filesystem;

struct StoredRow {
  std::uint64_t step = 0;
  std::string epoch, loss, weights;  // weights: empty if the log has no hashes
};

// Reads the output of CsvLog (text_logs.h), complete lines only.
std::vector<StoredRow> stored_log(const std::string& path, bool may_be_empty) {
  if (may_be_empty && lines_of(read_file(path)).size() == 1) return {};  // stopped before its first report
  Table table = read_table(path);
  if (!table.is_whole) table.lines.pop_back();
  const std::size_t epoch = find_column(table, "epoch"), step = find_column(table, "step"),
                    loss = find_column(table, "loss");
  const auto found = std::find(table.columns.begin(), table.columns.end(), "weights_hash");
  const auto weights = static_cast<std::size_t>(found - table.columns.begin());
  std::vector<StoredRow> rows;
  for (const auto& [line, source, cells] : table.lines) {
    const auto number = cells.size() == table.columns.size() ? parse_number<std::uint64_t>(cells[step]) : std::nullopt;
    if (!number)
      throw Error(ErrorKind::input, "replay.log", fmt::format("line {} of '{}' is not a log line", line, path));
    rows.push_back({*number, cells[epoch], cells[loss], weights < cells.size() ? cells[weights] : ""});
  }
  return rows;
}

struct StoredRun {
  std::string folder;
  RunProvenance provenance;
  RunRecord record;
  std::vector<HyperparameterChange> changes;  // made during training
  std::vector<StoredRow> rows;                // rows of its log; empty without a log
  std::optional<std::string> hash;            // final hash of the weights
  std::uint64_t steps = 0;                    // steps until it was stopped; 0: completed
};

StoredRun stored_run(const Arguments& arguments) {
  if (arguments.names.size() != 1 || !is_run_folder(arguments.names[0]))
    throw Error(ErrorKind::input, "replay.run",
                fmt::format("'{}' is not the folder of a run", fmt::join(arguments.names, " ")),
                "replay takes the folder of one run, as `train --run-dir` makes them: graphrun replay runs/0001");
  StoredRun run{arguments.names[0],
                read_provenance(arguments.names[0]),
                read_run(arguments.names[0]),
                read_changes(arguments.names[0]),
                {},
                {}};
  std::error_code ignored;
  const fs::path folder(run.folder);
  if (!fs::exists(folder / "model.json", ignored))
    throw Error(ErrorKind::input, "replay.model", fmt::format("the run '{}' has no model.json", run.folder));
  if (const RunRecord::Field* hash = run.record.find("weights_hash")) run.hash = hash->text;
  if (run.record.state == RunRecord::State::interrupted) {
    const RunRecord::Field* steps = run.record.find("steps");
    if (steps != nullptr && steps->number) run.steps = static_cast<std::uint64_t>(*steps->number);
    if (run.steps == 0) run.hash.reset();  // stopped before its first step
  }
  const std::string log = (folder / "log.csv").string();
  if (fs::exists(log, ignored)) run.rows = stored_log(log, run.hash.has_value());
  if (run.rows.empty() && !run.hash)
    throw Error(ErrorKind::input, "replay.nothing",
                fmt::format("the run '{}' has left nothing to compare with: no log and no result", run.folder));
  return run;
}

// The first difference between the two runs.
struct ReplayDifference {
  std::uint64_t step = 0;
  std::string epoch, what, was, now;
};

class Comparison {
 public:
  explicit Comparison(const StoredRun& run) : run_(run) {}

  bool wants_hashes() const { return !run_.rows.empty() && !run_.rows.front().weights.empty(); }
  // Returns false if the replay can stop.
  bool see(const Report& report) {
    const bool listed = next_ < run_.rows.size();
    if (listed && run_.rows[next_].step == report.step) {
      const StoredRow& row = run_.rows[next_++];
      look(row, "loss", row.loss, fmt::format("{}", report.loss));
      if (report.weights) look(row, "weights_hash", row.weights, fmt::format("{:016x}", *report.weights));
    } else if (listed && run_.rows[next_].step < report.step) {
      look(run_.rows[next_], "report", "there", "not there");
    }
    return !found_ && (run_.hash || next_ < run_.rows.size());
  }
  void see_end(const std::string& hash) {
    if (found_) return;
    if (next_ < run_.rows.size()) return look(run_.rows[next_], "report", "there", "not there");
    if (run_.hash && *run_.hash != hash) found_ = ReplayDifference{0, "", "weights_hash", *run_.hash, hash};
  }

  std::size_t reports() const { return next_; }
  const std::optional<ReplayDifference>& found() const { return found_; }

 private:
  void look(const StoredRow& row, std::string_view what, const std::string& was, const std::string& now) {
    if (!found_ && was != now) found_ = ReplayDifference{row.step, row.epoch, std::string(what), was, now};
  }

  const StoredRun& run_;
  std::size_t next_ = 0;  // index of the next row
  std::optional<ReplayDifference> found_;
};

std::string as_json(const StoredRun& run, const Comparison& comparison, const std::string& hash) {
  JsonWriter json;
  json.begin_object().member("run", run.folder).member("reports", comparison.reports());
  json.member("same", !comparison.found()).key("difference");
  if (const std::optional<ReplayDifference>& found = comparison.found()) {
    json.begin_object().member("step", found->step).member("what", found->what);
    json.member("was", found->was).member("now", found->now).end_object();
  } else {
    json.null();
  }
  return json.member("weights_hash", hash).end_object().text() + "\n";
}

[[noreturn]] void reject(const StoredRun& run, const ReplayDifference& found) {
  const std::string place =
      found.step == 0 ? "at the end" : fmt::format("after step {} (epoch {})", found.step, found.epoch);
  std::string hint = "other data, another machine, or --executor=cuda with --math=fast give other bits";
  if (run.provenance.version != version_text())
    hint = fmt::format("it was run by {}, this is {}", run.provenance.version, version_text());
  throw Error(ErrorKind::check, "replay.differs",
              fmt::format("'{}' and its repetition part {}: {} was {}, now {}", run.folder, place, found.what,
                          found.was, found.now),
              hint);
}

// Repeats the user's changes to runtime hyperparameters, and the stop, after the same steps.
class Interventions {
 public:
  Interventions(const StoredRun& run, Session& session, TrainOptions& options)
      : run_(run), session_(session), options_(options) {
    if (run_.changes.empty() && run_.steps == 0) return;
    options_.on_step_end = [this](const StepEnd& at) { make(at); };
    options_.step_end_every = next_step();
  }

 private:
  std::uint64_t next_step() const { return next_ < run_.changes.size() ? run_.changes[next_].step : run_.steps; }

  void make(const StepEnd& at) {
    if (run_.steps > 0 && at.step >= run_.steps) return session_.cancel();
    while (next_ < run_.changes.size() && run_.changes[next_].step <= at.step && !at.last) {
      const HyperparameterChange& change = run_.changes[next_++];
      change_hyperparameter(session_, at.step, change.name, change.to);
    }
    options_.step_end_every = next_step();
  }

  const StoredRun& run_;
  std::size_t next_ = 0;  // index of the next change
  Session& session_;
  TrainOptions& options_;
};

std::string where_it_ended(const StoredRun& run) {
  if (!run.hash) return "";
  return run.steps == 0 ? " and at the end" : fmt::format(" and after step {}, where it was stopped", run.steps);
}

int run_replay(const Arguments& given, Diagnostics& diagnostics) {
  const StoredRun run = stored_run(given);
  const Arguments arguments = stored_arguments(run.folder, run.provenance);
  Model model = read_model(arguments, diagnostics);
  if (!run.changes.empty()) make_hyperparameters_runtime(model);
  Session session = open_session(std::move(model), arguments, diagnostics);
  Comparison comparison(run);
  {
    Progress progress(diagnostics.chatty(), session);
    TrainOptions options;
    options.keep_losses = false;
    options.hash_weights = comparison.wants_hashes();
    options.watch_every = arguments.watch_every;
    options.on_report = [&](const Report& report) {
      progress.report(report);
      if (!comparison.see(report)) session.cancel();
    };
    const Interventions interventions(run, session, options);
    const TrainResult result = session.train(options);
    if (!result.cancelled || result.steps == run.steps) comparison.see_end(session.weights_hash());
  }
  const std::string hash = session.weights_hash();
  if (given.json) {
    write_results(as_json(run, comparison, hash));
  } else if (!comparison.found()) {
    write_results(fmt::format("{}: the same after {} report{}{}, weights {}\n", printable(run.folder),
                              comparison.reports(), comparison.reports() == 1 ? "" : "s", where_it_ended(run), hash));
  }
  if (comparison.found()) reject(run, *comparison.found());
  return kDone;
}

}  // namespace

const Verb replay_verb = {
    "replay",
    "",
    Positionals::folder,
    "repeat a stored run and compare the weights",
    R"(Checks that a result is reproducible: repeats a run that `train --run-dir` stored, with its own model, command
line and data. At each report, replay compares the loss and the hash of the weights with the log. At the end,
it compares the hash of the final weights. If they differ, the message names the step (exit code 3).

replay applies the hyperparameter changes made in the studio, after the same steps. It repeats an interrupted
run up to its last step, and a killed or failed run up to its last report. It writes no file.

With --json, stdout is one object; docs/reference/command-line.md lists the keys.)",
    R"(graphrun train model.json --run-dir runs
graphrun replay runs/0001)",
    run_replay};

}  // namespace graphrun::cli
