// split_rows.h: the rows of a split as they were before anything was done to them, and what is predicted of them.
// Contract: original units, in double; predictions are the session's. Throws Error where there is no such split.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graphrun/session.h"

namespace graphrun::cli {

struct SplitRows {
  std::vector<std::pair<std::string, HostTensor>> inputs;       // every input, for Session::predict_all()
  std::vector<std::pair<std::string, HostTensor>> predictions;  // in the order of Model::outputs
  const HostTensor* find(std::string_view input) const;
};

SplitRows predicted_rows(Session& session, const std::string& name);

// Any elements as numbers.
std::vector<double> doubles_of(const HostTensor& tensor);

}  // namespace graphrun::cli
