// stored_log.h: the rows of a log that a run has left, to be compared with those of its repetition.
// Contract: reads what CsvLog wrote (text_logs.h): the texts of loss and weights_hash by step, whole lines only. Throws
// Error (kind input) for a file that is no such log.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace graphrun::cli {

struct StoredRow {
  std::uint64_t step = 0;
  std::string epoch, loss, weights;  // weights: empty where the log has no hashes
};

std::vector<StoredRow> stored_log(const std::string& path, bool may_be_empty);

}  // namespace graphrun::cli
