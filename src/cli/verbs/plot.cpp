// plot.cpp: the verb `plot`: curves of logs and pictures of models, on the terminal or as a file.
#include "plot/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "cli/command_line/open.h"
#include "cli/command_line/stored_arguments.h"
#include "cli/command_line/verbs.h"
#include "cli/pictures/log_pictures.h"
#include "cli/pictures/model_pictures.h"
#include "cli/stored_runs/run_table.h"
#include "cli/terminal/result_file.h"
#include "cli/terminal/terminal.h"
#include "graphrun/error.h"
#include "graphrun/run_folder.h"

namespace graphrun::cli {
namespace {

enum class Form { text, svg, png };

Form form_of(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (path.empty() || extension == ".txt") return Form::text;
  if (extension == ".svg") return Form::svg;
  if (extension == ".png") return Form::png;
  throw Error(ErrorKind::input, "plot.format", fmt::format("'{}' names no format that plot writes", path),
              "the name ends in .svg, .png or .txt");
}

// Settings in which stored runs differ; otherwise stems of the file names. If two are equal, the paths.
std::vector<std::string> names_of_runs(const std::vector<std::string>& files) {
  std::vector<std::string> names;
  std::vector<RunRecord> runs;
  for (const std::string& file : files) {
    names.push_back(std::filesystem::path(file).stem().string());
    const std::string folder = std::filesystem::path(file).parent_path().string();
    if (names.back() == "log" && is_run_folder(folder)) runs.push_back(read_run(folder));
  }
  std::erase_if(runs, [](const RunRecord& run) { return run.state == RunRecord::State::unfinished; });
  const std::vector<std::string> keys = compared_keys(runs, true);
  for (std::size_t i = 0; i < files.size() && runs.size() == files.size() && !keys.empty(); ++i) {
    std::vector<std::string> values;
    for (const std::string& key : keys) values.push_back(runs[i].find(key) ? runs[i].find(key)->text : "-");
    names[i] = distinct_name(keys, values);
  }
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end() ? names : files;
}

std::vector<Picture> pictures_of_logs(const Arguments& arguments) {
  const std::vector<std::string> names = names_of_runs(arguments.files);
  std::vector<NamedLog> logs;
  for (std::size_t i = 0; i < names.size(); ++i) logs.push_back({names[i], read_table(arguments.files[i])});
  std::vector<Picture> pictures;
  for (plot::Figure& figure : log_pictures(logs, arguments.x_column, arguments.columns)) {
    figure.x.log = arguments.log_axes.find('x') != std::string::npos;
    figure.y.log = arguments.log_axes.find('y') != std::string::npos;
    pictures.emplace_back(std::move(figure));
  }
  return pictures;
}

// Reports points that a logarithmic axis cannot show, and curves without points. Returns the number of drawn points.
std::size_t report_left_out(const plot::Figure& figure, Diagnostics& diagnostics) {
  std::size_t drawn = 0;
  for (const plot::Series& series : figure.series) {
    std::size_t low = 0, unbounded = 0;
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      const bool finite = std::isfinite(series.x[i]) && std::isfinite(series.y[i]);
      const bool outside = (figure.x.log && series.x[i] <= 0) || (figure.y.log && series.y[i] <= 0);
      if (!finite)
        ++unbounded;
      else if (outside)
        ++low;
      else
        ++drawn;
    }
    if (low > 0)
      diagnostics.note(fmt::format("{}: {} of {} points are omitted: a logarithmic axis shows only positive values",
                                   series.name, low, series.x.size()));
    if (unbounded > 0)
      diagnostics.note(fmt::format("{}: {} of {} points are not finite and break the line", series.name, unbounded,
                                   series.x.size()));
    if (series.x.empty()) diagnostics.note(fmt::format("{}: there is no value", series.name));
  }
  return drawn;
}

// Several pictures are stacked.
std::string rendered(const std::vector<Picture>& pictures, Form form, bool to_terminal) {
  if (form != Form::text) {
    std::vector<plot::Drawing> drawings;
    for (const Picture& picture : pictures)
      drawings.push_back(std::visit([](const auto& any) { return plot::draw(any); }, picture));
    const plot::Drawing page = plot::stacked(std::move(drawings));
    return form == Form::svg ? plot::as_svg(page) : plot::as_png(page);
  }
  plot::TextOptions options;
  if (pictures.size() > 1) options.rows /= 2;
  options.unicode = speaks_utf8();
  if (to_terminal) {
    options.columns = terminal_columns(stdout);
    options.colour = takes_colour(stdout);
  }
  std::string text;
  for (const Picture& picture : pictures) {
    if (!text.empty()) text += "\n";
    text += std::visit([&](const auto& any) { return plot::as_text(any, options); }, picture);
  }
  return text;
}

// A run's folder: its log, or its model with its weights.
Arguments with_files_of_runs(Arguments arguments) {
  const bool of_model = !arguments.picture.empty();
  for (std::string& file : arguments.files) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(file, ignored)) continue;
    const std::filesystem::path folder(file);
    if (!is_run_folder(file))
      throw Error(ErrorKind::input, "plot.folder", fmt::format("'{}' is a folder, and not that of a run", file),
                  "graphrun train --run-dir makes them");
    file = (folder / (of_model ? "model.json" : "log.csv")).string();
    if (!of_model) continue;
    if (arguments.load.weights.empty()) arguments.load.weights = (folder / "weights.npz").string();
    if (!is_given(arguments.load.data_dir))
      arguments.load.data_dir = stored_arguments(folder.string(), read_provenance(folder.string())).load.data_dir;
  }
  return arguments;
}

bool is_of_model(const Arguments& arguments) {
  const std::string extension = std::filesystem::path(arguments.files.front()).extension().string();
  if (extension == ".npz")
    throw Error(ErrorKind::input, "plot.model", fmt::format("'{}' is a file of weights", arguments.files.front()),
                fmt::format("graphrun plot MODEL.json --weights {}", arguments.files.front()));
  return extension == ".json" || extension == ".safetensors" || !arguments.picture.empty() ||
         !arguments.load.weights.empty();
}

Picture picture_of_model(Arguments arguments, Diagnostics& diagnostics) {
  arguments.model = arguments.files.front();
  if (arguments.files.size() > 1)
    throw Error(ErrorKind::input, "plot.model",
                fmt::format("one model at a time: '{}' was given, then '{}'", arguments.files[0], arguments.files[1]));
  if (!arguments.columns.empty() || !arguments.log_axes.empty())
    throw Error(ErrorKind::input, "usage.flags", "--columns and --log go with logs, not with a model");
  const std::vector<std::string> known = picture_names();
  if (!arguments.picture.empty() && std::find(known.begin(), known.end(), arguments.picture) == known.end()) {
    const std::string near = nearest_name(arguments.picture, known);
    throw Error(
        ErrorKind::input, "plot.what", fmt::format("there is no plot '{}'", arguments.picture),
        near.empty() ? fmt::format("there are {}", fmt::join(known, ", ")) : fmt::format("did you mean {}?", near));
  }
  if (arguments.load.weights.empty() && !is_weights(arguments.model, arguments.load))
    throw Error(ErrorKind::input, "usage.no_weights", "plots of a model need its weights: --weights=FILE.npz",
                fmt::format("graphrun train {} --save-weights FILE.npz writes them", arguments.model));
  Session session = open_session(arguments, diagnostics);
  const std::string what = arguments.picture.empty() ? pictures_of(session).front() : arguments.picture;
  const std::string split = arguments.split.empty() ? summary_split(session) : arguments.split;
  return model_picture(session, what, split, arguments.array);
}

Picture picture_of_runs(const Arguments& arguments, std::size_t max_lines) {
  const SettingComparison comparison = compare_settings(read_runs(arguments.files[0]), arguments.sort);
  Picture picture = sweep_picture(comparison, arguments.picture, arguments.columns, max_lines);
  if (auto* figure = std::get_if<plot::Figure>(&picture); figure != nullptr && figure->parallel.empty())
    figure->y.log = arguments.log_axes.find('y') != std::string::npos;
  return picture;
}

int run_plot(const Arguments& given, Diagnostics& diagnostics) {
  const bool is_of_runs = given.files.size() == 1 && has_runs(given.files[0]);
  const Arguments arguments = is_of_runs ? given : with_files_of_runs(given);
  const Form form = form_of(arguments.output);
  std::vector<std::string> reads = arguments.files;
  reads.push_back(arguments.load.weights);
  ResultFile file(arguments.output, "plot.write", reads);
  std::vector<Picture> drawn;
  if (is_of_runs)
    drawn.push_back(picture_of_runs(arguments, form == Form::text ? 8 : 1000));
  else if (is_of_model(arguments))
    drawn.push_back(picture_of_model(arguments, diagnostics));
  else
    drawn = pictures_of_logs(arguments);
  std::size_t points = 0;
  for (const Picture& one : drawn) {
    const auto* figure = std::get_if<plot::Figure>(&one);
    points += figure == nullptr ? 1 : report_left_out(*figure, diagnostics);
  }
  if (points == 0) throw Error(ErrorKind::input, "plot.nothing", "there is no point to draw");
  if (!arguments.title.empty()) std::visit([&](auto& any) { any.title = arguments.title; }, drawn.front());
  file.write(rendered(drawn, form, file.is_stdout()));
  return kDone;
}

}  // namespace

const Verb plot_verb = {
    "plot",
    "",
    Positionals::tables,
    "plot training logs or a model's evaluation, as text, SVG or PNG",
    R"(Draws the loss and each metric over the epochs in a plot of its own, from logs of train --log or from other
CSV files (with a header) or JSON Lines. With several files, each has its own colour and name. plot skips
empty cells. For the folder of a stored run, it draws the log, or with --what a plot of the model. Folders of
several runs are named by the settings in which they differ.

For a model with --weights, or a safetensors file, --what selects the plot. For classifiers: confusion, roc,
pr (precision-recall curve), calibration or misclassified (images). For regressions: predicted (vs. actual
values) or residuals. For two input columns: surface or surface3d. For any model: weights (one matrix) or
histogram. The default (confusion, surface, predicted) fits the model.

For a folder of runs, plot draws the metric of --sort, as mean over seeds: a heatmap over two settings (of
--columns), or parallel coordinates of all settings. --what curves draws the mean log of the best settings.

The suffix of --output selects the format: .svg, .png or .txt. Without --output, the plot is text on stdout.
It is as wide as the terminal (without one, 80 columns). If the locale is not UTF-8, it uses ASCII.)",
    R"(graphrun train model.json --log run.csv && graphrun plot run.csv
graphrun plot before.csv after.csv --columns validation_loss --log-scale y -o loss.svg
graphrun plot model.json --weights model.npz --what confusion -o confusion.svg
graphrun plot model.json --weights model.npz --what roc -o roc.png
graphrun plot model.json --weights model.npz -o surface.svg
graphrun plot model-sweep --what heatmap --columns lr,units)",
    run_plot};

}  // namespace graphrun::cli
