#include "cli/pictures/graph_picture.h"

#include <fmt/format.h>

#include "cli/terminal/terminal.h"
#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

using Role = OutlineValue::Role;

// Indexed by Role.
const std::vector<plot::GraphKind>& kinds() {
  static const std::vector<plot::GraphKind> all = {{"input", 0},  {"target", 3}, {"parameter", 4}, {"value", 6},
                                                   {"output", 2}, {"metric", 5}, {"loss", 1}};
  return all;
}

std::string type_text(const TensorType& type) {
  if (type.shape.rank() == 0) return type.dtype == DType::f32 ? "scalar" : std::string(name_of(type.dtype));
  const std::string text = to_string(type);
  return type.dtype == DType::f32 ? text.substr(name_of(type.dtype).size()) : text;
}

std::string counted_parameters(std::int64_t elements) {
  return fmt::format("{} {}", grouped(static_cast<std::uint64_t>(elements)),
                     elements == 1 ? "parameter" : "parameters");
}

std::vector<std::string> notes_of(const OutlineValue& value) {
  if (value.role == Role::parameter) return {counted_parameters(value.type.shape.elements())};
  std::string names;
  std::int64_t elements = 0;
  for (const auto& [name, shape] : value.parameters) {
    const bool is_own = name.starts_with(value.name + ".");  // parameter of a layer
    names +=
        (names.empty() ? "" : ", ") + (is_own ? name.substr(value.name.size() + 1) : name) + " " + to_string(shape);
    elements += shape.elements();
  }
  if (names.empty()) return {};
  return {names, counted_parameters(elements)};
}

}  // namespace

plot::GraphFigure graph_picture(const GraphOutline& outline) {
  if (outline.values.size() > kMaxValues)
    throw Error(ErrorKind::input, "show.picture",
                fmt::format("a graph of {} values is too large for a drawing: at most {}",
                            grouped(outline.values.size()), grouped(kMaxValues)),
                "show without --svg lists it, and --dot writes it for Graphviz");
  plot::GraphFigure figure;
  figure.title = outline.name;
  figure.subtitles = {counted_parameters(outline.parameter_elements)};
  if (!outline.description.empty()) figure.subtitles.push_back(outline.description);
  figure.kinds = kinds();
  for (std::size_t i = 0; i < outline.values.size(); ++i) {
    const OutlineValue& value = outline.values[i];
    figure.boxes.push_back(
        {value.name, type_text(value.type), value.formula, notes_of(value), static_cast<std::size_t>(value.role)});
    for (const std::size_t from : value.from) figure.edges.push_back({from, i});
  }
  return figure;
}

}  // namespace graphrun::cli
