#include "cli/studio/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "cli/command_line/verbs.h"
#include "cli/pictures/graph_picture.h"
#include "cli/plans/buffer_uses.h"
#include "cli/plans/plan_picture.h"
#include "cli/plans/plan_summary.h"
#include "cli/results/array_text.h"
#include "cli/stored_runs/run_table.h"
#include "cli/studio/model.h"
#include "graphrun/elements.h"
#include "graphrun/error.h"
#include "graphrun/run_folder.h"
#include "graphrun/show.h"
#include "graphrun/verify.h"
#include "plot/graph_figure.h"
#include "plot/histogram.h"
#include "plot/panels.h"
#include "plot/render.h"

namespace graphrun::cli {
namespace {

// Boxes of the picture: the page places a button over each one.
void write_boxes(JsonWriter& json, const plot::Drawing& drawing, const GraphOutline& outline) {
  json.member("width", drawing.width).member("height", drawing.height).key("boxes").begin_array();
  std::size_t value = 0;
  for (const plot::Area& area : drawing.areas) {
    if (area.radius <= 0 || value == outline.values.size()) continue;
    const OutlineValue& box = outline.values[value++];
    json.begin_object().member("name", box.name).member("formula", box.formula);
    json.member("type", to_string(box.type)).member("x", area.corner.x).member("y", area.corner.y);
    json.member("width", area.size.x).member("height", area.size.y).key("parameters").begin_array();
    for (const auto& [name, shape] : box.parameters) json.value(name);
    json.end_array().end_object();
  }
  json.end_array();
}

void write_settings(JsonWriter& json, const std::vector<Setting>& settings) {
  json.objects("settings", settings, [&](const Setting& setting) {
    json.member("path", setting.path).member("value", setting.value).member("choices", setting.choices);
  });
}

plot::Panels heat_of(const std::string& name, const std::vector<double>& values, const Shape& shape) {
  plot::Panels panels;
  plot::HeatMap map;
  map.width = shape.rank() == 0 ? 1 : static_cast<std::size_t>(shape[shape.rank() - 1]);
  map.height = map.width == 0 ? 0 : values.size() / map.width;
  map.cells = values;
  map.title = fmt::format("{} {}", name, to_string(shape));
  panels.maps.push_back(std::move(map));
  return panels;
}

// Largest absolute difference from the reference, also in f32 ulps of the reference's largest element.
struct Distance {
  double largest = 0, in_ulp = 0;
};
Distance distance_of_arrays(const HostTensor& own, const HostTensor& reference) {
  const std::vector<double> a = as_doubles(own), b = as_doubles(reference);
  Distance off;
  double size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    off.largest = std::max(off.largest, std::isfinite(a[i] - b[i]) ? std::fabs(a[i] - b[i]) : HUGE_VAL);
  }
  for (const double x : b) size = std::isfinite(x) ? std::max(size, std::fabs(x)) : size;
  const auto at = static_cast<float>(size);
  off.in_ulp = off.largest / static_cast<double>(std::nextafter(at, HUGE_VALF) - at);
  return off;
}

bool is_gradient_of_input(const std::vector<Inspection::NamedValue>& entries, const Inspection::NamedValue& one) {
  return one.kind == Inspection::Kind::gradient &&
         std::any_of(entries.begin(), entries.end(), [&](const Inspection::NamedValue& entry) {
           return entry.kind == Inspection::Kind::input && one.name == entry.name + ":gradient";
         });
}

// Whether the plan of a training step stores the value in memory. Values without a buffer of this name are not stored.
bool is_in_arena(const Program& program, const std::string& name) {
  for (const Buffer& buffer : program.buffers) {
    if (buffer.name != name && buffer.name != "train/" + name) continue;
    return buffer.kind != BufferKind::tile && buffer.layout != Layout::registers;
  }
  return false;
}

}  // namespace

std::string StudioViews::check(const Arguments& arguments) {
  graph_svg.clear();
  const ModelSummary summary = check_model(arguments.model, arguments.load, arguments.session);
  JsonWriter json;
  json.begin_object().member("ok", true).member("name", summary.name).member("description", summary.description);
  json.member("parameters", summary.parameter_elements);
  LoadOptions load = arguments.load;
  load.data = DataUse::none;
  const Model model = load_model(arguments.model, load);
  json.key("graph").begin_object();
  try {
    const GraphOutline outline = graph_outline(model);
    const plot::Drawing drawing = plot::draw(graph_picture(outline));
    graph_svg = plot::as_svg(drawing);
    write_boxes(json, drawing, outline);
  } catch (const Error& error) {  // too large for a drawing
    json.member("error", std::string_view(error.what()));
  }
  json.end_object();
  write_settings(json, model_settings(arguments.model, arguments.load));
  return json.end_object().text();
}

std::string StudioViews::plan(const Arguments& arguments) {
  LoadOptions load = arguments.load;
  load.data = DataUse::sizes;
  const Model model = load_model(arguments.model, load);
  FusionSummary fusion;
  const Program program = plan_program(model, arguments.session, &fusion);
  plan_svg = plot::as_svg(plan_picture(program, arguments.session.executor));
  JsonWriter json;
  json.begin_object().member("arena_bytes", program.arena_bytes).member("lower_bound", program.lower_bound);
  json.member("target", program.target);
  json.objects("phases", program.phases, [&](const Phase& phase) {
    json.member("name", phase.name).member("rows", phase.capacity).key("steps").begin_array();
    for (const Step& step : phase.steps) json.value(step.name);
    json.end_array();
  });
  json.objects("blocks", taken_bytes(program), [&](const Taken& taken) {
    const Buffer& buffer = program.buffers[taken.buffer];
    json.member("name", buffer.name).member("kind", name_of(buffer.kind)).member("type", stored_type(buffer));
    json.member("offset", buffer.offset).member("bytes", buffer.bytes);
    json.member("from", taken.lower).member("to", taken.upper);
  });
  json.objects("regions", fusion.regions, [&](const RegionSummary& region) {
    json.member("phase", region.phase).member("steps", region.steps).member("stages", region.stages);
    json.member("chains", region.chains).member("row_steps", region.row_steps);
    json.member("tiling", to_string(region.tiling)).member("bytes_in_tiles", region.bytes_in_tiles);
  });
  return json.member("notes", fusion.notes).member("fallbacks", fusion.fallbacks).end_object().text();
}

std::string StudioViews::values(const Arguments& arguments) {
  inspection.reset();
  InspectionOptions options{arguments.session};
  options.gradients = true;
  Model model = load_model(arguments.model, arguments.load);
  if (!model.train.minimize.valid()) options.gradients = false;
  inspection.emplace(std::move(model), options);
  JsonWriter json;
  json.begin_object().member("split", inspection->split()).member("rows", inspection->rows());
  json.member("of", inspection->of()).member("trained", !arguments.load.weights.empty());
  json.objects("arrays", inspection->entries(), [&](const Inspection::NamedValue& entry) {
    static constexpr std::string_view kKinds[] = {"input", "parameter", "value", "gradient"};
    json.member("kind", kKinds[static_cast<std::size_t>(entry.kind)]);
    write_array(json,
                {entry.name, std::string(name_of(entry.type.dtype)), entry.type.shape,
                 [&] { return inspection->read(entry.name); }},
                false);
  });
  return json.end_object().text();
}

std::string StudioViews::costs(const Arguments& arguments) {
  constexpr double kMeasuring = 0.5;  // seconds
  InspectionOptions options{arguments.session};
  const auto inspected = [&] {
    Model model = load_model(arguments.model, arguments.load);
    options.gradients = model.train.minimize.valid();
    return Inspection(std::move(model), options);
  };
  Inspection own = inspected();
  options.executor = "ref";
  const Inspection reference = inspected();
  const std::vector<double> times = own.times(kMeasuring);
  const Program program = plan_program(load_model(arguments.model, arguments.load), arguments.session);
  JsonWriter json;
  json.begin_object().member("executor", arguments.session.executor).member("split", own.split());
  json.member("rows", own.rows()).member("trained", !arguments.load.weights.empty()).key("nodes").begin_array();
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Inspection::NamedValue& entry = own.entries()[i];
    if (is_gradient_of_input(own.entries(), entry)) continue;  // training does not compute it
    const Distance off = distance_of_arrays(own.read(entry.name), reference.read(entry.name));
    json.begin_object().member("name", entry.name).member("seconds", times[i]).member("bytes", entry.type.bytes());
    json.member("in_arena", is_in_arena(program, entry.name)).member("difference", off.largest);
    json.member("ulp", off.in_ulp).end_object();
  }
  return json.end_array().end_object().text();
}

std::string StudioViews::value_svg(const std::string& name, bool as_histogram) const {
  if (!inspection) throw Error(ErrorKind::input, "studio.values", "no batch has been run yet");
  const HostTensor tensor = inspection->read(name);
  const std::vector<double> values = as_doubles(tensor);
  if (!as_histogram) return plot::as_svg(plot::draw(heat_of(name, values, tensor.shape())));
  std::vector<double> finite;
  std::copy_if(values.begin(), values.end(), std::back_inserter(finite), [](double x) { return std::isfinite(x); });
  plot::Figure figure;
  figure.title = name;
  figure.x.label = "value";
  figure.y.label = "elements";
  if (finite.empty()) throw Error(ErrorKind::input, "studio.values", fmt::format("no element of '{}' is finite", name));
  const auto [low, high] = std::minmax_element(finite.begin(), finite.end());
  figure.series.push_back(plot::histogram(finite, *low, *high));
  figure.series.back().name = name;
  return plot::as_svg(figure);
}

std::string StudioViews::verified(const Arguments& arguments) {
  const Model model = load_model(arguments.model, arguments.load);
  const VerifyReport report = verify(model, VerifyOptions{arguments.session});
  JsonWriter json;
  json.begin_object().member("passed", report.passed()).member("executor", report.executor);
  json.member("against", report.against).member("values", report.values).member("steps", report.training_steps);
  json.member("evaluation_steps", report.evaluation_steps).member("predictions", report.predictions);
  json.member("regions", report.regions).member("fused_values", report.fused_values);
  json.objects("ops", report.ops, [&](const OpAgreement& op) {
    json.member("op", op.op).member("steps", op.steps).member("values", op.values).member("worst", op.worst);
    json.member("node", op.node);
  });
  return json.member("difference", report.difference ? to_string(*report.difference) : "").end_object().text();
}

std::string StudioViews::written(const Arguments& arguments) {
  Diagnostics quiet(Diagnostics::Format::text, true);
  find_verb(arguments.verb)->run(arguments, quiet);
  return read_small_file(arguments.output);
}

void StudioViews::read_runs(const std::string& folder) {
  constexpr double kRefreshSeconds = 0.02;  // per call; the page requests the rest later
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    stored_runs = {};
    runs_json = R"({"keys":[],"rows":[]})";
  } else if (stored_runs.refresh(folder, kRefreshSeconds)) {
    runs_json.clear();
  }
}

std::string StudioViews::runs(const std::string& folder) {
  read_runs(folder);
  if (!runs_json.empty()) return runs_json;
  const std::vector<RunRecord> runs = stored_runs.runs();
  std::vector<std::string> keys = listed_keys(runs);
  if (!runs.empty()) keys.emplace_back("weights_hash");
  JsonWriter json;
  json.begin_object().member("folder", folder).member("unread", stored_runs.unread()).member("keys", keys);
  json.objects("rows", runs, [&](const RunRecord& run) {
    json.member("run", run.name).member("state", name_of(run.state));
    if (run.state == RunRecord::State::unreadable) json.member("error", run.find("error")->text);
    json.key("cells").begin_array();
    for (const std::string& key : keys) {
      const RunRecord::Field* const entry = run.find(key);
      json.value(entry == nullptr ? std::string_view() : std::string_view(entry->text));
    }
    json.end_array();
  });
  return runs_json = json.end_object().text();
}

}  // namespace graphrun::cli
