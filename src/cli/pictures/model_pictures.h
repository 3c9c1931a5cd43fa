// model_pictures.h: pictures of a model with its weights: how it does on a split, and what is in it.
// Contract: numbers come from the session (scores, predictions in original units), never from arithmetic of their own.
// Throws Error (kind input) for a picture that the model, the split or the name does not have.
// Leaves to others: drawing (plot/), files and terminals (plot.cpp).
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "graphrun/session.h"
#include "plot/figure.h"
#include "plot/panels.h"

namespace graphrun::cli {

using Picture = std::variant<plot::Figure, plot::Panels>;

// "confusion", "misclassified", "predicted", "residuals", "surface", "weights",
// "histogram".
std::vector<std::string> picture_names();
// Those that this model has, the one that says most first.
std::vector<std::string> pictures_of(const Session& session);

// The split that speaks for the model: test, or validation, or train.
std::string summary_split(const Session& session);

// `array`: the parameter that "weights" and "histogram" show; empty: the first matrix, all matrices.
Picture model_picture(Session& session, std::string_view what, const std::string& split, const std::string& array = {});

// One each; model_picture() finds them by name.
plot::Panels confusion_picture(Session& session, const std::string& split);
plot::Panels misclassified_picture(Session& session, const std::string& split);
plot::Figure predicted_picture(Session& session, const std::string& split);
plot::Figure residuals_picture(Session& session, const std::string& split);
plot::Panels surface_picture(Session& session, const std::string& split);
plot::Panels weights_picture(Session& session, const std::string& array);
plot::Figure histogram_picture(Session& session, const std::string& array);

}  // namespace graphrun::cli
