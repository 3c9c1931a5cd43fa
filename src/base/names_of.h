// names_of.h: the names of a table's rows.
// Contract: a row has a `name`. Leaves to others: the nearest of them (graphrun/error.h).
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
