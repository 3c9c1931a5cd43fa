#include "session/model_text.h"

#include <fmt/format.h>

#include <memory>

#include "base/file.h"
#include "graphrun/error.h"
#include "session/weights/archive.h"

namespace graphrun {
namespace {

const std::string& bytes_of(const std::string& path, const LoadOptions& options) {
  if (!*options.text) *options.text = read_file(path);
  return **options.text;
}

}  // namespace

LoadOptions reading_once(const std::string& path, LoadOptions options) {
  if (!options.text) options.text = std::make_shared<std::optional<std::string>>();
  if (options.weights.empty() && is_safetensors(path, bytes_of(path, options))) {
    options.weights = path;
    options.piped_weights = options.text;
  }
  return options;
}

json::Document read_document(const std::string& path, const LoadOptions& options) {
  const std::string& bytes = bytes_of(path, options);
  if (!is_safetensors(path, bytes)) return json::parse(path, bytes);
  const std::string text = open_archive(path, {options.text, &bytes})->notes().model;
  if (!text.empty()) return json::parse(path, text);
  throw Error(ErrorKind::input, "weights.no_model", fmt::format("'{}' has weights and no model inside", path),
              "give the model file, and these as --weights");
}

bool is_weights(const std::string& model, const LoadOptions& options) {
  return is_safetensors(model, bytes_of(model, reading_once(model, options)));
}

}  // namespace graphrun
