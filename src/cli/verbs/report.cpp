// report.cpp: the verb `report`: HTML report of a stored run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "cli/command_line/open.h"
#include "cli/command_line/stored_arguments.h"
#include "cli/command_line/verbs.h"
#include "cli/pictures/html.h"
#include "cli/pictures/log_pictures.h"
#include "cli/pictures/model_pictures.h"
#include "cli/pictures/report_page.h"
#include "cli/results/results.h"
#include "cli/stored_runs/run_table.h"
#include "graphrun/error.h"
#include "graphrun/output_file.h"
#include "graphrun/run_folder.h"
#include "plot/render.h"

namespace graphrun::cli {
namespace {

std::string folder_of(const Arguments& arguments) {
  if (arguments.names.size() == 1 && is_run_folder(arguments.names[0])) return arguments.names[0];
  throw Error(ErrorKind::input, "report.run",
              fmt::format("'{}' is not the folder of a run", fmt::join(arguments.names, " ")),
              "report takes the folder of one run, as `train --run-dir` makes them: graphrun report runs/0001");
}

std::string in_run(const std::string& folder, std::string_view name) {
  return (std::filesystem::path(folder) / name).string();
}

void check_weights(const std::string& folder) {
  std::error_code ignored;
  if (std::filesystem::exists(in_run(folder, "weights.npz"), ignored)) return;
  throw Error(ErrorKind::input, "report.weights", fmt::format("the run '{}' has no weights", folder),
              "it still runs, has failed, or --save-weights named another file");
}

std::vector<std::pair<std::string, std::string>> facts_of(const RunRecord& run) {
  std::vector<std::pair<std::string, std::string>> facts = {{"state", std::string(name_of(run.state))}};
  for (const auto& [key, name] : {std::pair{"epochs", "epochs"}, std::pair{"steps", "steps"},
                                  std::pair{"seconds", "seconds"}, std::pair{"steps_per_second", "steps/s"}}) {
    if (const RunRecord::Field* entry = run.find(key)) facts.emplace_back(name, entry->text);
  }
  return facts;
}

// Page about the runs of a sweep, from their records and logs only.
int report_runs(const Arguments& arguments, Diagnostics& diagnostics) {
  const std::string& folder = arguments.names[0];
  OutputFile file(arguments.output.empty() ? in_run(folder, "report.html") : arguments.output, "report.write");
  const SettingComparison comparison = compare_settings(read_runs(folder), arguments.sort);
  std::string pictures;
  for (const char* what : {"parallel", "heatmap", "curves"}) {
    if (what[0] != 'c' && comparison.keys.size() < (what[0] == 'p' ? 3 : 2)) continue;
    const Picture picture = sweep_picture(comparison, what, {}, 1000);
    pictures += std::visit(
        [](const auto& drawn) { return html::picture(plot::as_svg(plot::draw(drawn)), drawn.title); }, picture);
  }
  const std::string title = std::filesystem::path(folder).filename().string();
  std::vector<std::vector<std::string>> rows = comparison_table(comparison);
  for (std::vector<std::string>& row : rows)  // the verdict behind the settings: a phone shows it without scrolling
    std::rotate(row.begin() + static_cast<std::ptrdiff_t>(comparison.keys.size()), row.end() - 1, row.end());
  const std::string all = rows.size() > 21 ? html::details("All settings", html::table("", rows)) : "";
  rows.resize(std::min<std::size_t>(rows.size(), 21));
  const std::string table = html::table(comparison_note(comparison), rows) + all;
  file.write(html::page(title, fmt::format("<h1>{}</h1>\n", html::escaped(title)) + html::section("Settings", table) +
                                   html::section("Figures", pictures)));
  file.commit();
  diagnostics.note(fmt::format("wrote {}", file.path()));
  return kDone;
}

int run_report(const Arguments& given, Diagnostics& diagnostics) {
  if (given.names.size() == 1 && has_runs(given.names[0])) return report_runs(given, diagnostics);
  Arguments arguments = given;
  const std::string folder = folder_of(arguments);
  OutputFile file(arguments.output.empty() ? in_run(folder, "report.html") : arguments.output, "report.write");
  for (const char* name : {"run.json", "model.json", "log.csv", "weights.npz", "result.json"}) {
    if (file.is(in_run(folder, name)))
      throw Error(ErrorKind::input, "output.input", fmt::format("--output '{}' is a file of the run", file.path()),
                  "an output must not replace a file that the run reads, or another output");
  }
  check_weights(folder);
  const RunRecord run = read_run(folder);
  arguments.model = in_run(folder, "model.json");
  arguments.load.weights = in_run(folder, "weights.npz");
  if (!is_given(arguments.load.data_dir))
    arguments.load.data_dir = stored_arguments(folder, read_provenance(folder)).load.data_dir;
  Session session = open_session(arguments, diagnostics);
  const Results results = evaluated(session);
  ReportSource source;
  source.heading = "run " + run.name;
  source.curves = log_pictures(in_run(folder, "log.csv"));
  source.facts = facts_of(run);
  source.graph_text = graph_of(arguments);
  source.environment = read_file(in_run(folder, "run.json"));
  file.write(report_page(session, results, source));
  file.commit();
  diagnostics.note(fmt::format("wrote {}", file.path()));
  return kDone;
}

}  // namespace

const Verb report_verb = {
    "report",
    "",
    Positionals::folder,
    "write a stored run as one HTML page",
    R"(Writes a run that `train --run-dir` stored as one self-contained HTML page: metrics and curves, metrics of
every split by class or column, evaluation plots, graph, memory plan, settings, command and environment. To
draw the plots, it evaluates the weights again. Without --output, the page is report.html in the run's folder.
`train --report` and `eval --report` write the same page for their own results.

For a folder of runs, such as that of a sweep, the page has the comparison of the settings and its plots.)",
    R"(graphrun train model.json --run-dir runs
graphrun report runs/0001 -o run.html)",
    run_report};

}  // namespace graphrun::cli
