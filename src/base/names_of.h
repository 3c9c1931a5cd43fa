// names_of.h: names of the rows of a table.
// Contract: each row has a `name`. Not here: search for the closest name (graphrun/error.h).
#pragma once

#include <string>
#include <vector>

namespace graphrun {

template <class Rows>
std::vector<std::string> names_of(const Rows& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.emplace_back(row.name);
  return names;
}

}  // namespace graphrun
