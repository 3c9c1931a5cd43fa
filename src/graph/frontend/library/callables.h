// callables.h: all that a text may call: functions, layers, and assign(), which is an effect and gives no value.
// Contract: names are unique among the three. Leaves to others: what each does (functions.h, layers.h, builder_impl.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/frontend/library/entry.h"

namespace graphrun {

const Callable* find_callable(std::string_view name);  // null: none
std::vector<std::string> callable_names();

// assign(state, value, after=false), an entry of a model's graph.
const Callable& assign_call();

}  // namespace graphrun
