#include "cli/pictures/report_page.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <thread>

#include "cli/command_line/help.h"
#include "cli/pictures/graph_picture.h"
#include "cli/pictures/html.h"
#include "cli/pictures/model_pictures.h"
#include "cli/plans/plan_picture.h"
#include "cli/results/score_tables.h"
#include "cli/terminal/terminal.h"
#include "graphrun/error.h"
#include "graphrun/show.h"
#include "plot/render.h"

namespace graphrun::cli {
namespace {

// Total size of all pictures, as embedded in the page.
constexpr std::size_t kMaxPictureBytes = 1'400'000;

std::string six_digits(double value) {
  return std::isnan(value) ? "-" : fmt::format("{:.6g}", value);
}

using NamedFigures = std::vector<std::pair<std::string, double>>;

// Loss and all metrics of a split, in the order of the text output; skips one that repeats an earlier name.
NamedFigures figures_of(const Results& results, std::size_t split) {
  NamedFigures figures;
  const auto add = [&](const std::string& name, double value) {
    if (std::ranges::find(figures, name, &NamedFigures::value_type::first) == figures.end())
      figures.emplace_back(name, value);
  };
  add("loss", results.splits[split]->loss);
  for (const auto& [name, value] : results.splits[split]->values) add(name, value);
  for (const OutputScores& scores : results.scores[split])
    for (const auto& [name, value] : main_figures(scores))
      add(results.scores[split].size() == 1 ? name : fmt::format("{}.{}", name, scores.output), value);
  return figures;
}

// Last available split of train, validation, test, which best represents the model's quality.
std::size_t summarized_split(const Results& results) {
  for (std::size_t i = kSplits.size(); i-- > 0;)
    if (results.splits[i]) return i;
  return kSplits.size();
}

std::string verdict(const Results& results) {
  const std::size_t split = summarized_split(results);
  if (split == kSplits.size()) return {};
  std::string text = fmt::format("<p>On the {} rows of <b>{}</b>:</p>\n<ul class=\"figures\">\n",
                                 grouped(results.rows[split]), kSplits[split]);
  for (const auto& [name, value] : figures_of(results, split))
    text += fmt::format("<li>{}<b>{}</b></li>\n", html::escaped(name),
                        std::isnan(value) ? "-" : fmt::format("{:.4g}", value));
  return text + "</ul>\n";
}

std::string scores_table(const Results& results) {
  std::vector<std::vector<std::string>> rows = {{""}, {"rows"}};
  for (std::size_t i = 0; i < kSplits.size(); ++i) {
    if (!results.splits[i]) continue;
    const std::size_t column = rows[0].size();
    rows[0].emplace_back(kSplits[i]);
    rows[1].push_back(grouped(results.rows[i]));
    const auto add = [&](const std::string& name, std::string cell) {
      auto row = std::ranges::find(rows, name, [](const auto& one) { return one.front(); });
      if (row == rows.end()) row = rows.insert(rows.end(), {name});
      row->resize(column, "");
      row->push_back(std::move(cell));
    };
    if (const auto& [first, last] = results.times[i]; !first.empty()) add("from", first), add("to", last);
    for (const auto& [name, value] : figures_of(results, i)) add(name, six_digits(value));
    for (auto& row : rows) row.resize(column + 1, "");
  }
  return html::table("Loss and metrics of each split", rows);
}

// Tables by class or column for the most relevant split. The confusion matrix is a picture.
std::string details_section(const Results& results) {
  constexpr std::size_t kMaxRows = 100;
  std::string text;
  const std::size_t split = summarized_split(results);
  if (split == kSplits.size()) return text;
  for (const OutputScores& scores : results.scores[split]) {
    for (const ScoreTable& table : details_of(scores, kMaxRows)) {
      const bool is_matrix = scores.classes && table.rows.front().front().empty();
      const std::string made =
          html::table(fmt::format("{}, {}: {}", kSplits[split], scores.output, table.title), table.rows);
      text += is_matrix ? html::details("Confusion matrix as a table", made) : made;
    }
  }
  return text;
}

class Pictures {
 public:
  std::string of(const plot::Drawing& drawing, std::string_view description) {
    const std::string svg = plot::as_svg(drawing);
    if (svg.size() * 4 / 3 > left_)
      return fmt::format("<p class=\"quiet\">{} is too large for this page: plot, show or plan draws it.</p>\n",
                         html::escaped(description));
    left_ -= svg.size() * 4 / 3;
    return html::picture(svg, description);
  }

 private:
  std::size_t left_ = kMaxPictureBytes;
};

std::string model_section(Session& session, const Results& results, Pictures& pictures) {
  const std::size_t split = summarized_split(results);
  if (split == kSplits.size() || !session.has_split(kSplits[split])) return {};
  std::string text;
  for (const std::string& name : pictures_of(session)) {
    try {
      const Picture picture = model_picture(session, name, std::string(kSplits[split]));
      text += std::visit([&](const auto& drawn) { return pictures.of(plot::draw(drawn), drawn.title); }, picture);
    } catch (const Error& error) {  // skips pictures that this model does not support
      if (error.kind() != ErrorKind::input) throw;
    }
  }
  return html::columns(text);
}

std::string graph_section(const Model& model, const ReportSource& source, Pictures& pictures) {
  std::string text;
  try {
    text = pictures.of(plot::draw(graph_picture(graph_outline(model))), "The graph, each value below its operands");
  } catch (const Error& error) {  // too large for a drawing: prints the reason instead
    if (error.kind() != ErrorKind::input) throw;
    text = fmt::format("<p class=\"quiet\">{}.</p>\n", html::escaped(error.what()));
  }
  return text + html::details("The graph as text", html::preformatted(source.graph_text));
}

std::string facts_table(const Session& session, const Results& results, const ReportSource& source) {
  std::vector<std::vector<std::string>> rows = {{"", ""}};
  for (const auto& [name, value] : source.facts) rows.push_back({name, value});
  rows.push_back({"seed", fmt::format("{}", results.seed)});
  rows.push_back({"executor", std::string(session.executor())});
  rows.push_back({"math", std::string(results.math)});
  rows.push_back({"arena", human_bytes(results.arena_bytes)});
  if (results.weights_hash) rows.push_back({"hash of the weights", *results.weights_hash});
  return html::table("", rows);
}

// Curves of at least two points, side by side.
std::string curves_section(const std::vector<plot::Figure>& curves, Pictures& pictures) {
  std::string text;
  for (const plot::Figure& figure : curves) {
    if (std::ranges::any_of(figure.series, [](const plot::Series& one) { return one.x.size() > 1; }))
      text += pictures.of(plot::draw(figure), figure.series.front().name + " over the epochs");
  }
  return html::columns(text);
}

}  // namespace

std::string graph_of(const Arguments& arguments) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(arguments.model, ignored)) return {};
  return show_model(arguments.model, arguments.load);
}

std::string described_environment(const std::vector<std::string>& command, const Session& session) {
  std::string line = "graphrun";
  for (const std::string& word : command) {
    const bool plain = !word.empty() && word.find_first_not_of(
                                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789_-+=/.,:@%") == std::string::npos;
    std::string quoted;
    for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += " " + (plain ? word : "'" + quoted + "'");
  }
  utsname system{};
  ::uname(&system);
  return fmt::format("{}\n\n{}\n{} {} {}, {} threads\nexecutor {}\n", line, version_text(), system.sysname,
                     system.release, system.machine, std::thread::hardware_concurrency(), session.executor());
}

std::string report_page(Session& session, const Results& results, const ReportSource& source) {
  const Model& model = session.model();
  Pictures pictures;
  const std::string title = source.heading.empty() ? model.name : fmt::format("{}: {}", model.name, source.heading);
  std::string body = fmt::format("<h1>{}</h1>\n", html::escaped(title));
  body += verdict(results);
  body += html::section("Curves", curves_section(source.curves, pictures));
  body += html::section("Metrics", scores_table(results) + details_section(results));
  body += html::section("Evaluation", model_section(session, results, pictures));
  body += html::section("Run", facts_table(session, results, source));
  body += html::section("Graph", graph_section(model, source, pictures));
  body += html::section(
      "Memory", pictures.of(plan_picture(session.program(), session.executor()), "The memory plan: offsets over time"));
  body += html::section("Settings", html::preformatted(training_settings(model)));
  body += html::section("Command and environment", html::preformatted(source.environment));
  return html::page(title, body);
}

}  // namespace graphrun::cli
