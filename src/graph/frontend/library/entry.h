// entry.h: the base of the rows in the library's tables, and look-up by name.
// Contract: functions, layers, optimizers, schedules and metrics are entries. Parsing, messages, the schema and the
// reference page use these tables only. Defined elsewhere: attributes (ir/attributes.h).
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/names_of.h"
#include "graph/ir/attributes.h"
#include "graphrun/error.h"

namespace graphrun {

struct Entry {
  std::string_view name, doc;
  ir::AttrSchema attributes = {};
};

// An entry that is called with operands, which are nodes.
struct Callable : Entry {
  std::vector<std::string_view> operands;
  bool variadic = false;  // the last operand may be repeated
};
// "" or a sentence: "sub takes 2 operands (a, b), got 1".
std::string wrong_count(const Callable& callable, std::size_t got);

// Returns null if there is none.
template <class Row>
const Row* find_row(const std::vector<Row>& table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const Row& row) { return row.name == name; });
  return found == table.end() ? nullptr : &*found;
}

// "there is no optimizer named sdg" (optimizer.unknown). The hint has the nearest name, or all if they are few.
Error unknown(std::string_view what, std::string_view name, const std::vector<std::string>& names);

template <class Row>
const Row& row_named(std::string_view what, const std::vector<Row>& table, std::string_view name) {
  if (const Row* row = find_row(table, name)) return *row;
  throw unknown(what, name, names_of(table));
}

}  // namespace graphrun
