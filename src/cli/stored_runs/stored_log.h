// stored_log.h: reads the log rows of a stored run, for comparison with a replay.
// Contract: reads the output of CsvLog (text_logs.h): the text of loss and weights_hash by step, complete lines only.
// Throws Error (kind input) for any other file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace graphrun::cli {

struct StoredRow {
  std::uint64_t step = 0;
  std::string epoch, loss, weights;  // weights: empty if the log has no hashes
};

std::vector<StoredRow> stored_log(const std::string& path, bool may_be_empty);

}  // namespace graphrun::cli
