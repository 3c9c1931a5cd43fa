// splitter.h: how the rows of one source are divided into train, validation and test: by "split" or by "folds".
// Contract: deterministic for a seed, whatever machine. Sizes follow from the number of rows alone; with "stratify"
// every part has each value of an input or a column as often, give or take one row, as its share of the rows says.
// Leaves to others: reading the source (inputs.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.h"
#include "data/array.h"
#include "data/dataset.h"
#include "data/inputs.h"
#include "data/provenance.h"

namespace graphrun::data {

class Splitter {
 public:
  // "split", "folds", "stratify" and "split_seed" of the section; nothing when there is nothing to divide by, or it was
  // reported. `trained`: what weights say of theirs, whose seed is taken where the file has none.
  static std::optional<Splitter> read(json::Reader& reader, json::ObjectReader& section,
                                      std::span<const InputDecl> inputs, const DataOptions& options,
                                      const std::optional<Provenance>& trained);

  // The table before anything is chosen from it, and the object that names its source: where "stratify" is looked for.
  void see(json::Reader& reader, const Table& table, const json::Ref& source);

  // The rows of `all` that are in one of the parts: train, validation, test.
  Rows rows(const Rows& all, std::size_t part);

  std::vector<SplitData> parts(json::Reader& reader, const SplitData& all);

  Provenance::SplitRecord provenance(std::int64_t rows, std::uint64_t hash) const;

 private:
  std::int64_t size(std::int64_t rows, std::size_t part) const;
  void make_order(const Rows& all);
  std::vector<std::size_t> strata(const Rows& all) const;

  json::Ref place_;                 // "split" or "folds"
  Provenance::SplitRecord record_;  // but for the rows and their hash
  std::optional<json::Ref> stratify_;
  std::vector<std::string> inputs_;                         // their names
  std::optional<NamedArray> values_;                        // of stratify_
  bool reads_ = true;                                       // otherwise rows are counted only, and have no order
  std::shared_ptr<const std::vector<std::int64_t>> order_;  // train, then validation, then test
  std::int64_t first_ = 0;                                  // that `order_` permutes
};

}  // namespace graphrun::data
