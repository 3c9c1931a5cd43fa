#include "cli/pictures/model_pictures.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/results/split_rows.h"
#include "graphrun/class_outputs.h"
#include "graphrun/error.h"
#include "graphrun/show.h"

namespace graphrun::cli {
namespace {

// Number of input elements per row.
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

// Perfect squares from 8 by 8 on: a row with such a size is most likely an image.
bool is_image(std::int64_t numbers) {
  std::int64_t side = 8;
  while (side * side < numbers) ++side;
  return side * side == numbers;
}

}  // namespace

std::vector<std::string> picture_names() {
  return {"confusion", "roc",     "pr",        "calibration", "misclassified", "predicted",
          "residuals", "surface", "surface3d", "weights",     "histogram"};
}

std::vector<std::string> pictures_of(const Session& session) {
  const Model& model = session.model();
  bool classes = false, numbers = false, has_threshold = false;
  const std::vector<ClassOutput> how = class_outputs(model);
  for (std::size_t i = 0; i < how.size(); ++i) {
    if (model.outputs[i].target.empty()) continue;
    (how[i].is_class ? classes : numbers) = true;
    has_threshold = has_threshold || how[i].has_threshold;  // the curves of more classes are drawn only on request
  }
  std::vector<std::string> names;
  if (classes) names.emplace_back("confusion");
  if (has_threshold) names.insert(names.end(), {"roc", "pr", "calibration"});
  if (classes && is_image(numbers_a_row(model))) names.emplace_back("misclassified");
  if (numbers_a_row(model) == 2 && !model.outputs.empty()) names.insert(names.end(), {"surface", "surface3d"});
  if (numbers) names.insert(names.end(), {"predicted", "residuals"});
  names.insert(names.end(), {"weights", "histogram"});
  return names;
}

std::string summary_split(const Session& session) {
  for (const char* name : {"test", "validation", "train"}) {
    if (session.has_split(name)) return name;
  }
  return "train";
}

std::string column_of(const Model& model, const std::string& target) {
  const std::vector<std::string> names = element_names(model.data, target);
  return names.size() == 1 ? names[0] : target;
}

Picture model_picture(Session& session, std::string_view what, const std::string& split, const std::string& array) {
  if (what == "weights") return weights_picture(session, array);
  if (what == "histogram") return histogram_picture(session, array);
  if (!session.has_split(split)) predicted_rows(session, split);  // throws Error with the names of the splits
  if (what == "confusion") return confusion_picture(session, split);
  if (what == "roc" || what == "pr" || what == "calibration") return curve_picture(session, what, split);
  if (what == "misclassified") return misclassified_picture(session, split);
  if (what == "predicted") return predicted_picture(session, split);
  if (what == "residuals") return residuals_picture(session, split);
  if (what == "surface" || what == "surface3d") return surface_picture(session, split, what == "surface3d");
  const std::string near = nearest_name(what, picture_names());
  throw Error(ErrorKind::input, "plot.what", fmt::format("there is no plot '{}'", what),
              near.empty() ? fmt::format("there are {}", fmt::join(picture_names(), ", "))
                           : fmt::format("did you mean {}?", near));
}

}  // namespace graphrun::cli
