// provenance.h: the source of a data set's rows, stored with weights. Evaluation uses it to restore the splits, and
// prediction to find the columns.
// Contract: text() is one JSON object, which read_provenance() reads back; anything else throws Error.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace graphrun::data {

struct Provenance {
  // A source that "split" or "folds" divides.
  struct SplitRecord {
    std::vector<double> fractions;     // for train, validation and test; empty with folds
    std::int64_t folds = 0, fold = 0;  // number of folds, and index of the test fold
    std::string stratify;              // input or column with the same value shares in each split; may be empty
    std::string by;                    // column in whose order the rows are split; empty: at random
    std::uint64_t seed = 0;
    std::int64_t rows = 0;
    std::uint64_t hash = 0;  // over the values as read; does not cover values that the model file generates
    bool operator==(const SplitRecord&) const = default;
  };
  std::uint64_t seed = 0;    // for splits, and for random tables without a seed of their own
  std::int64_t samples = 0;  // train samples, for the batch "all"
  std::optional<SplitRecord> split;
  std::map<std::string, std::vector<std::string>> columns;     // columns of inputs that take the rest of a table
  std::map<std::string, std::vector<std::string>> categories;  // class names per key of "transform"
  std::map<std::string, std::string> words;                    // imputed value per categorical column
};

std::string text(const Provenance& provenance);
Provenance read_provenance(const std::string& file, const std::string& text);  // `file` is for messages

// Explains why the split `now` differs from `other`; empty if they are equal.
std::string difference(const Provenance& now, const Provenance& other);

}  // namespace graphrun::data
