#include "graph/frontend/library/callables.h"

#include "graph/frontend/library/functions.h"
#include "graph/frontend/library/layers.h"

namespace graphrun {

const Callable& assign_call() {
  static const ir::AttrSchema attributes = {
      {"after", false, "true: read parameters after their update; false: before it"}};
  static const Callable row{
      {"assign", "sets the state for the next training step; evaluation and prediction do not change it", attributes},
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
