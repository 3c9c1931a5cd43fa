// model_pictures.h: pictures of a trained model: its quality on a split, and its parameters; and of compared settings.
// Contract: metrics and predictions (in original units) come from the session and are not recomputed. Throws Error
// (kind input) if the model does not support the picture, or the split or the name does not exist.
// Not handled here: drawing (plot/), files and terminals (plot.cpp).
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/stored_runs/comparison.h"
#include "graphrun/session.h"
#include "plot/figure.h"
#include "plot/panels.h"

namespace graphrun::cli {

using Picture = std::variant<plot::Figure, plot::Panels>;

// "confusion", "roc", "pr", "calibration", "misclassified", "predicted", "residuals", "surface", "surface3d",
// "weights", "histogram".
std::vector<std::string> picture_names();
// Pictures that this model supports, the most informative first.
std::vector<std::string> pictures_of(const Session& session);

// Split for the summary: test, else validation, else train.
std::string summary_split(const Session& session);

// `array`: parameter for "weights" and "histogram"; empty: the first matrix, or all matrices for "histogram".
Picture model_picture(Session& session, std::string_view what, const std::string& split, const std::string& array = {});

// "heatmap" (mean metric over two settings), "parallel" (over all), "curves" (mean log by setting); empty: the one that
// fits. `columns`: settings of the first two, column of the curves; empty: automatic. Lines show the `max_lines` best.
Picture sweep_picture(const SettingComparison& comparison, std::string_view what, std::vector<std::string> columns,
                      std::size_t max_lines);

// Called by model_picture().
std::string column_of(const Model& model, const std::string& target);  // column of the table; else the target itself
plot::Panels confusion_picture(Session& session, const std::string& split);
plot::Figure curve_picture(Session& session, std::string_view what, const std::string& split);
plot::Panels misclassified_picture(Session& session, const std::string& split);
plot::Figure predicted_picture(Session& session, const std::string& split);
plot::Figure residuals_picture(Session& session, const std::string& split);
plot::Panels surface_picture(Session& session, const std::string& split, bool is_3d);
plot::Panels weights_picture(Session& session, const std::string& array);
plot::Figure histogram_picture(Session& session, const std::string& array);

}  // namespace graphrun::cli
