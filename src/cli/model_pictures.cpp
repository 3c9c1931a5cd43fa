#include "model_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "graphrun/class_outputs.h"
#include "graphrun/error.h"
#include "graphrun/program.h"
#include "split_rows.h"

namespace graphrun::cli {
namespace {

std::vector<std::string> parameters_of(const Session& session) {
  std::vector<std::string> names;
  for (const Buffer& buffer : session.program().buffers) {
    if (buffer.kind == BufferKind::parameter) names.push_back(buffer.name);
  }
  return names;
}

// The numbers of a row that are predicted from.
std::int64_t numbers_a_row(const Model& model) {
  std::int64_t count = 0;
  for (const Split& split : model.data.splits) {
    if (split.columns.empty() || split.samples() == 0) continue;
    for (const auto& [name, tensor] : split.columns) {
      const auto answers = [&, known = name](const OutputSpec& output) { return output.target == known; };
      if (std::none_of(model.outputs.begin(), model.outputs.end(), answers))
        count += tensor.shape().elements() / tensor.shape()[0];
    }
    break;
  }
  return count;
}

// A row of so many numbers is hardly anything else, from 8 by 8 on.
bool is_image(std::int64_t numbers) {
  std::int64_t side = 8;
  while (side * side < numbers) ++side;
  return side * side == numbers;
}

}  // namespace

std::vector<std::string> picture_names() {
  return {"confusion", "misclassified", "predicted", "residuals", "surface", "weights"};
}

std::vector<std::string> pictures_of(const Session& session) {
  const Model& model = session.model();
  bool classes = false, numbers = false;
  const std::vector<ClassOutput> how = class_outputs(model);
  for (std::size_t i = 0; i < how.size(); ++i) {
    if (model.outputs[i].target.empty()) continue;
    (how[i].is_class ? classes : numbers) = true;
  }
  std::vector<std::string> names;
  if (classes) names.emplace_back("confusion");
  if (classes && is_image(numbers_a_row(model))) names.emplace_back("misclassified");
  if (numbers_a_row(model) == 2 && !model.outputs.empty()) names.emplace_back("surface");
  if (numbers) names.insert(names.end(), {"predicted", "residuals"});
  names.emplace_back("weights");
  return names;
}

std::string telling_split(const Session& session) {
  for (const char* name : {"test", "validation", "train"}) {
    if (session.has_split(name)) return name;
  }
  return "train";
}

Picture model_picture(Session& session, std::string_view what, const std::string& split, const std::string& array) {
  if (what == "weights") return weights_picture(session, array);
  if (!session.has_split(split)) predicted_rows(session, split);  // tells of the splits there are
  if (what == "confusion") return confusion_picture(session, split);
  if (what == "misclassified") return misclassified_picture(session, split);
  if (what == "predicted") return predicted_picture(session, split);
  if (what == "residuals") return residuals_picture(session, split);
  if (what == "surface") return surface_picture(session, split);
  const std::string near = nearest_name(what, picture_names());
  throw Error(ErrorKind::input, "plot.what", fmt::format("there is no picture '{}'", what),
              near.empty() ? fmt::format("there are {}", fmt::join(picture_names(), ", "))
                           : fmt::format("did you mean {}?", near));
}

plot::Panels weights_picture(Session& session, const std::string& array) {
  const std::vector<std::string> names = parameters_of(session);
  std::string chosen = array;
  for (const std::string& name : names) {
    if (chosen.empty() && session.read(name).shape().rank() >= 2) chosen = name;
  }
  if (chosen.empty() && !names.empty()) chosen = names.front();
  if (std::find(names.begin(), names.end(), chosen) == names.end()) {
    const std::string near = nearest_name(chosen, names);
    throw Error(
        ErrorKind::input, "plot.array", fmt::format("the model has no parameter '{}'", chosen),
        near.empty() ? fmt::format("it has {}", fmt::join(names, ", ")) : fmt::format("did you mean {}?", near));
  }
  const HostTensor tensor = session.read(chosen);
  const Shape& shape = tensor.shape();
  plot::HeatMap map;
  map.width = shape.rank() == 0 ? 1 : static_cast<std::size_t>(shape[shape.rank() - 1]);
  map.height = static_cast<std::size_t>(shape.elements()) / std::max<std::size_t>(map.width, 1);
  map.cells = doubles_of(tensor);
  plot::Panels panels;
  panels.title = fmt::format("{} {}", chosen, to_string(shape));
  panels.maps.push_back(std::move(map));
  panels.numbers = true;
  return panels;
}

}  // namespace graphrun::cli
