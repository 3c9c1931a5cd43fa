// split_rows.h: rows of a split in original units, and their predictions.
// Contract: values in original units, in double precision; the session predicts. Throws Error for an unknown split.
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

}  // namespace graphrun::cli
