// provenance.h: the source of a data set's rows, stored with weights. An evaluation sees the same splits by it, and a
// prediction finds its columns.
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
    std::vector<double> fractions;     // of train, validation and test; none where there are folds
    std::int64_t folds = 0, fold = 0;  // how many there are, and which of them is test
    std::string stratify;              // the input or column whose values all parts have in equal shares; may be empty
    std::uint64_t seed = 0;
    std::int64_t rows = 0;
    std::uint64_t hash = 0;  // of the values as they were read; says nothing of those that the model file makes
    bool operator==(const SplitRecord&) const = default;
  };
  std::uint64_t seed = 0;    // of random tables that have none of their own, and of the division
  std::int64_t samples = 0;  // of train: the batch "all"
  std::optional<SplitRecord> split;
  std::map<std::string, std::vector<std::string>> columns;     // of an input that takes what is left of a table
  std::map<std::string, std::vector<std::string>> categories;  // by the key of "transform": the words of its classes
  std::map<std::string, std::string> words;                    // by column: what stands for its missing words
};

std::string text(const Provenance& provenance);
Provenance read_provenance(const std::string& file, const std::string& text);  // `file` is for messages

// Why rows that were divided so are not divided as `other` says; empty when they are.
std::string difference(const Provenance& now, const Provenance& other);

}  // namespace graphrun::data
