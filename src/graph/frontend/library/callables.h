// callables.h: everything that an expression may call: functions, layers, and assign(), an effect without a value.
// Contract: names are unique among the three. Defined elsewhere: functions.h, layers.h, builder_impl.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/frontend/library/entry.h"

namespace graphrun {

const Callable* find_callable(std::string_view name);  // null if there is none
std::vector<std::string> callable_names();

// assign(state, value, after=false), an entry of a model's graph.
const Callable& assign_call();

}  // namespace graphrun
