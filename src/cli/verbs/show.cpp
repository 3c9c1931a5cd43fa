// show.cpp: the verbs `show` and `check`: content of a model file, without reading its data.
#include "graphrun/show.h"

#include <fmt/format.h>

#include "cli/command_line/verbs.h"
#include "cli/pictures/graph_picture.h"
#include "cli/pictures/picture_file.h"
#include "cli/results/show_arrays.h"
#include "cli/terminal/terminal.h"
#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

using Types = std::vector<std::pair<std::string, TensorType>>;

void write_types(JsonWriter& json, std::string_view key, const Types& values) {
  json.objects(key, values, [&](const auto& value) {
    const auto& [name, type] = value;
    json.member("name", name).member("dtype", name_of(type.dtype));
    json.key("shape").begin_array();
    for (const std::int64_t extent : type.shape.dims())
      batch_rows(extent) > 0 ? json.value(extent_text(extent)) : json.value(extent);
    json.end_array().member("rows", type.rows);
  });
}

std::string as_json(const ModelSummary& summary) {
  JsonWriter json;
  json.begin_object().member("model", summary.name).member("description", summary.description).key("batch");
  summary.batch ? json.value(*summary.batch) : json.value("all");
  write_types(json, "inputs", summary.inputs);
  write_types(json, "parameters", summary.parameters);
  write_types(json, "outputs", summary.outputs);
  json.member("parameter_elements", summary.parameter_elements).member("entries", summary.entries);
  return json.end_object().text() + "\n";
}

std::string counted(std::size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string as_text(const std::string& path, const ModelSummary& summary) {
  return fmt::format("{}: ok: {} with {}, {} ({} numbers), {}\n", printable(path), printable(summary.name),
                     counted(summary.inputs.size(), "input", "inputs"),
                     counted(summary.parameters.size(), "parameter", "parameters"),
                     grouped(static_cast<std::uint64_t>(summary.parameter_elements)),
                     counted(summary.entries, "graph entry", "graph entries"));
}

// Returns exit code 3 if no training region has a generated kernel. The reasons are printed with the other kernels, for
// example those of evaluation.
int show_source(const Arguments& arguments, Diagnostics& diagnostics) {
  const GeneratedSource source = generated_source(load_model(arguments.model, arguments.load), arguments.session);
  if (!source.text.empty()) {
    write_results(source.text);
    if (source.trains) return kDone;
    diagnostics.warn("no step of the training runs in a generated kernel:");
    for (const std::string& reason : source.reasons)
      if (reason.starts_with("train: ")) diagnostics.warn(reason);
    return kCheckFailed;
  }
  std::string text = "no step of this model runs in a generated kernel:\n";
  for (const std::string& reason : source.reasons) text += "  " + reason + "\n";
  if (source.reasons.empty()) text += "  " + arguments.session.executor + " generates none; --executor=cuda does\n";
  write_results(text);
  return kCheckFailed;
}

int draw_graph(const Arguments& arguments, PictureFile& file) {
  LoadOptions load = arguments.load;
  if (!arguments.show.whole_step) load.data = DataUse::none;
  const Model model = load_model(arguments.model, load);
  file.write(plot::draw(graph_picture(arguments.show.whole_step ? step_outline(model) : graph_outline(model))));
  return kDone;
}

// One setting per line, in the format of --set for copying, followed by the allowed values.
int show_settings(const Arguments& arguments) {
  const std::vector<Setting> settings = model_settings(arguments.model, arguments.load);
  JsonWriter json;
  std::string text;
  json.begin_array();
  for (const auto& [path, value, choices] : settings) {
    json.begin_object().member("path", path).member("value", value).member("choices", choices).end_object();
    text += printable(fmt::format("{}={}", path, value));
    text += choices.empty() ? "\n" : fmt::format("  ({})\n", fmt::join(choices, " "));
  }
  write_results(arguments.json ? json.end_array().text() + "\n" : text);
  return kDone;
}

int run_show(const Arguments& arguments, Diagnostics& diagnostics) {
  PictureFile file(arguments, "show.write");
  if (arguments.show.arrays) return show_arrays(arguments);
  if (arguments.svg) return draw_graph(arguments, file);
  if (arguments.show.settings) return show_settings(arguments);
  if (arguments.show.values) return show_values(arguments, diagnostics);
  if (arguments.show.source) return show_source(arguments, diagnostics);
  const ShowOptions options{arguments.show.gradients, arguments.show.dot};
  if (arguments.json) {
    write_results(canonical_model(arguments.model, arguments.load));
  } else if (arguments.show.rows) {
    write_results(rows_text(load_model(arguments.model, arguments.load), arguments.session));
  } else if (arguments.show.whole_step) {
    write_results(show_step(load_model(arguments.model, arguments.load), options));
  } else {
    write_results(show_model(arguments.model, arguments.load, options));
  }
  return kDone;
}

int run_check(const Arguments& arguments, Diagnostics& diagnostics) {
  const ModelSummary summary = check_model(arguments.model, arguments.load, arguments.session);
  for (const std::string& warning : summary.warnings) diagnostics.warn(warning);
  write_results(arguments.json ? as_json(summary) : as_text(arguments.model, summary));
  return kDone;
}

}  // namespace

const Verb show_verb = {
    "show",
    "",
    Positionals::model,
    "print the model's graph with all shapes",
    R"(Prints the inputs, parameters, graph, outputs and training settings, with the shape of every value. show needs
data only for --values, --whole-step, --rows and --source.

--json prints the canonical model file with all defaults. --svg draws the graph, with a box for each named
value, its shape and its parameters. With --whole-step, it draws a box for each node of a training step.

show MODEL.json --values [NAME...] prints statistics of every named value over one batch: minimum, maximum,
mean, standard deviation, norm and fraction of zeros. Values that you name, such as h or h.W:gradient, also
get a histogram, a heat map and their first elements. --gradients adds the gradients of the loss, or of
--of EXPRESSION (summed if not scalar), for parameters, inputs and values (default: at the initial weights).

show --weights FILE [NAME...], without a model, prints the same for the arrays of an NPZ or safetensors file.
--save-array writes the named array as NPY or CSV.)",
    R"(graphrun show model.json --gradients
graphrun show model.json --svg -o model.svg
graphrun show model.json --json > canonical.json
graphrun show model.json --values --gradients --weights model.npz --split validation
graphrun show model.json --values x:gradient --of y_hat --weights model.npz --save-array sensitivity.csv
graphrun show --weights model.npz h1.W)",
    run_show};

const Verb check_verb = {
    "check",
    "",
    Positionals::model,
    "report up to 50 errors in a model file; needs no data",
    R"(Reads the file, infers all shapes, checks the gradients and plans for --executor. It does not read the data:
if the number of rows depends on them, it uses a placeholder. check reports up to 50 errors with positions
(exit code 2).)",
    R"(graphrun check model.json
graphrun check model.json --diagnostics=json)",
    run_check};

}  // namespace graphrun::cli
