#include "session/image_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <filesystem>

#include "base/json_text.h"
#include "data/formats/images.h"
#include "graphrun/error.h"

namespace graphrun {

ModelTemplate image_template(const std::string& folder, const std::string& source) {
  const data::ImageFolder images = data::list_images(folder, true);
  std::vector<std::string> classes = images.classes;
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  if (classes.size() < 2)
    throw Error(ErrorKind::input, "init.target",
                fmt::format("'{}' has one class, '{}': there is nothing to predict", folder, classes.front()));
  ModelTemplate result;
  const std::int64_t rows = images.shape[0];
  const bool splits = rows >= 20;
  if (!splits)
    result.notes.push_back(fmt::format("{} images are too few for a split, so the model has no early stopping", rows));
  const bool stratifies = splits && rows >= 10 * std::ssize(classes);
  // Each stage halves the image.
  std::string layers, last = "x";
  std::int64_t side = std::min(images.shape[1], images.shape[2]);
  for (int stage = 1; stage <= 3 && side >= 4; ++stage, side /= 2) {
    layers += fmt::format(R"js("c{0} = conv2d({1}, filters={2}, size=3, padding=same, activation=relu)",
                               "p{0} = max_pool(c{0}, size=2)",)js",
                          stage, last, 8 << stage);
    last = fmt::format("p{}", stage);
  }
  const std::int64_t wanted = std::clamp<std::int64_t>(rows / 20, std::min<std::int64_t>(rows, 8), 128);
  const auto batch = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(wanted)));
  const std::int64_t epochs = std::clamp<std::int64_t>(2000 * batch / rows, 5, 100);
  const auto quoted = [](std::string_view name) { return json::line(json::make(name)); };
  const std::filesystem::path path = (std::filesystem::path(folder) / "").parent_path();
  std::string text = fmt::format(
      R"js({{"format": 1, "name": {}, "data": {{"source": {{"images": {}, "x": "image", "y": "class"}}, {} {}
      "transform": {{"x": [{{"scale": 0.00392156862745098}}], "y": [{{"one_hot": {}}}]}}}},
      "inputs": {{"x": ["batch", {}, {}, {}], "y": ["batch", {}]}},)js",
      quoted(path.filename().string()), quoted(source), splits ? R"("split": [0.7, 0.15, 0.15],)" : "",
      stratifies ? R"("stratify": "y",)" : "", json::line(json::make_list(classes)), images.shape[1], images.shape[2],
      images.shape[3], classes.size());
  text += fmt::format(
      R"js("graph": [{} "logits = dense(flatten({}), units={})", "loss = mean(softmax_cross_entropy(logits, y))"],
      "outputs": {{"logits": "y"}},
      "train": {{"minimize": "loss", "metrics": ["accuracy"], "optimizer": {{"adam": {{"lr": 0.002}}}}, "batch": {},
                 "shuffle": true, {} "epochs": {}, "seed": 1}}}})js",
      layers, last, classes.size(), batch, splits ? R"("early_stopping": {"patience": 5},)" : "", epochs);
  result.text = json::text(json::parse("model", text).root);
  return result;
}

}  // namespace graphrun
