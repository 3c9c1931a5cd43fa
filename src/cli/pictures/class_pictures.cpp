// class_pictures.cpp: pictures of classifiers: confusion matrix and misclassified rows.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "cli/pictures/model_pictures.h"
#include "cli/results/split_rows.h"
#include "graphrun/class_outputs.h"
#include "graphrun/elements.h"
#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

constexpr std::size_t kMaxImages = 24;

// Class of a target row: its class index, or the position of the 1 in a one-hot row.
std::size_t true_class(std::span<const double> row, std::size_t scores) {
  if (row.size() == 1) return row[0] < 0 ? 0 : static_cast<std::size_t>(row[0] + (scores == 1 ? 0.5 : 0));
  return static_cast<std::size_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

struct ImageSize {
  std::size_t height, width, channels = 1;
};

// Nothing if the rows of an input are not images.
std::optional<ImageSize> image_size(const HostTensor& rows) {
  const Shape& shape = rows.shape();
  const auto extent = [&](int axis) { return static_cast<std::size_t>(shape[axis]); };
  if (shape.rank() == 3) return ImageSize{extent(1), extent(2)};
  if (shape.rank() == 4 && (shape[3] == 1 || shape[3] == 3)) return ImageSize{extent(1), extent(2), extent(3)};
  if (shape.rank() == 4 && shape[1] == 1) return ImageSize{extent(2), extent(3)};
  if (shape.rank() != 2) return std::nullopt;
  const auto side = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(shape[1]))));
  if (side * side != extent(1) || side < 4) return std::nullopt;
  return ImageSize{side, side};
}

}  // namespace

plot::Panels confusion_picture(Session& session, const std::string& split) {
  for (const OutputScores& scores : session.scores(split)) {
    if (!scores.classes || scores.classes->confusion.empty()) continue;
    const ClassScores& classes = *scores.classes;
    plot::Panels panels;
    panels.title = fmt::format("{} on {}: {:.4g} % of {} correct", column_of(session.model(), scores.target), split,
                               100 * classes.accuracy, scores.rows);
    panels.numbers = true;
    panels.scale_label = "% of row";
    plot::HeatMap map;
    map.x_label = "predicted";
    map.y_label = "actual";
    map.width = map.height = classes.classes.size();
    map.written.assign(classes.confusion.begin(), classes.confusion.end());
    // Colours are percentages per class, so that rare classes are visible too.
    for (std::size_t i = 0; i < classes.confusion.size(); ++i) {
      const std::uint64_t rows = classes.classes[i / map.width].rows;
      map.cells.push_back(rows == 0 ? 0 : 100 * static_cast<double>(classes.confusion[i]) / static_cast<double>(rows));
    }
    for (const PerClassScores& one : classes.classes) map.columns.push_back(one.name);
    map.rows = map.columns;
    panels.maps.push_back(std::move(map));
    return panels;
  }
  throw Error(ErrorKind::input, "plot.confusion", fmt::format("the split '{}' has no confusion matrix", split),
              "a confusion matrix needs rows, finite predictions, and an output whose target has at most 1000 classes");
}

plot::Panels misclassified_picture(Session& session, const std::string& split) {
  const std::vector<ClassOutput> classes = class_outputs(session.model());
  const SplitRows rows = predicted_rows(session, split);
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const OutputSpec& output = session.model().outputs[i];
    const HostTensor* target = rows.find(output.target);
    if (!classes[i].is_class || target == nullptr) continue;
    for (const auto& [name, images] : rows.inputs) {
      const auto size = image_size(images);
      if (name == output.target || !size) continue;
      const auto samples = static_cast<std::size_t>(images.shape()[0]);
      const std::vector<double> pixels = as_doubles(images), truth = as_doubles(*target);
      const std::vector<double> predicted = as_doubles(rows.predictions[i].second);
      const std::vector<float> numbers(predicted.begin(), predicted.end());
      const std::span<const float> scores = numbers;
      if (!std::all_of(scores.begin(), scores.end(), [](float score) { return std::isfinite(score); }))
        throw Error(ErrorKind::input, "plot.nothing",
                    fmt::format("not all predictions of the split '{}' are finite", split));
      const std::size_t each = scores.size() / samples, wide = truth.size() / samples,
                        numbers_an_image = size->height * size->width * size->channels;
      plot::Panels panels;
      panels.scale = false;
      panels.per_row = 8;
      std::size_t wrong = 0;
      for (std::size_t row = 0; row < samples; ++row) {
        const std::size_t right = true_class(std::span(truth).subspan(row * wide, wide), each),
                          said = classes[i].class_of(scores.subspan(row * each, each));
        if (right == said || ++wrong > kMaxImages) continue;
        plot::HeatMap map;
        map.title = fmt::format("{} as {}", classes[i].label(right), classes[i].label(said));
        map.height = size->height;
        map.width = size->width;
        map.cells.assign(size->height * size->width, 0);
        for (std::size_t k = 0; k < numbers_an_image; ++k)
          map.cells[k / size->channels] += pixels[row * numbers_an_image + k] / static_cast<double>(size->channels);
        panels.maps.push_back(std::move(map));
      }
      panels.title = fmt::format("{}: {} of {} misclassified{}", split, wrong, samples,
                                 wrong > kMaxImages ? fmt::format(", the first {}", kMaxImages) : "");
      return panels;
    }
  }
  throw Error(ErrorKind::input, "plot.images", "the model has no image input with a class output",
              "an image is an input with two axes, or with n * n numbers, n >= 4");
}

}  // namespace graphrun::cli
