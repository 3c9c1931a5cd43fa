#include "session/model_text.h"

#include <memory>
#include <utility>

#include "base/file.h"

namespace graphrun {

LoadOptions reading_once(LoadOptions options) {
  if (!options.text) options.text = std::make_shared<std::optional<std::string>>();
  return options;
}

json::Document read_document(const std::string& path, const LoadOptions& options) {
  if (!options.text) return json::parse(path, read_file(path));
  if (!*options.text) *options.text = read_file(path);
  return json::parse(path, **options.text);
}

}  // namespace graphrun
