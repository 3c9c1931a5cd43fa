#include "graph/frontend/library/callables.h"

#include "graph/frontend/library/functions.h"
#include "graph/frontend/library/layers.h"

namespace graphrun {

const Callable& assign_call() {
  static const ir::AttrSchema attributes = {
      {"after", false, "true: of the parameters as the step leaves them; false: as it finds them"}};
  static const Callable row{
      {"assign", "what the state is from the next step of training on; evaluation and prediction leave it", attributes},
      {"state", "value"}};
  return row;
}

const Callable* find_callable(std::string_view name) {
  if (const Function* function = find_function(name)) return function;
  if (const Layer* layer = find_layer(name)) return &layer_in_text(*layer);
  return name == assign_call().name ? &assign_call() : nullptr;
}

std::vector<std::string> callable_names() {
  std::vector<std::string> names = names_of(functions());
  for (const Layer& layer : layers()) names.emplace_back(layer.name);
  return names;
}

}  // namespace graphrun
