// splitter.h: splits the rows of one source into train, validation and test, by "split" or "folds".
// Contract: deterministic for a seed on every machine. Sizes depend only on the number of rows. With "stratify", each
// value of an input or column is spread over the splits in proportion to their sizes, within one row. With "split_by",
// rows are in ascending order of a column, so no row of train is later than one of validation or test.
// Not here: reading the source (inputs.h).
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
#include "data/provenance.h"
#include "data/sources/inputs.h"

namespace graphrun::data {

class Splitter {
 public:
  // Reads "split", "split_by", "folds", "stratify" and "split_seed". Returns nothing if there is no split, or it was
  // reported. `trained`: split stored with weights; its seed applies if the file sets none. `in_order`: rows keep the
  // order of the file, for windows.
  static std::optional<Splitter> read(json::Reader& reader, json::ObjectReader& section,
                                      std::span<const InputDecl> inputs, const DataOptions& options,
                                      const std::optional<Provenance>& trained, bool in_order);

  // Puts rows in the order of `by` without splitting them, for windows.
  static Splitter in_order_of(json::Reader& reader, const json::Ref& by);

  // Call before inputs select from the table. `source` is the object that names it. Resolves "stratify", "split_by".
  void see(json::Reader& reader, const Table& table, const json::Ref& source);

  // Rows of `all` in one split. `part`: 0 train, 1 validation, 2 test.
  Rows rows(const Rows& all, std::size_t part);

  std::vector<SplitData> parts(json::Reader& reader, const SplitData& all);

  Provenance::SplitRecord provenance(std::int64_t rows, std::uint64_t hash) const;

 private:
  std::int64_t size(std::int64_t rows, std::size_t part) const;
  void make_order(const Rows& all);
  std::vector<std::size_t> strata(const Rows& all) const;
  std::vector<std::int64_t> in_order_of_time(const Rows& all);

  json::Ref place_;                 // "split" or "folds"
  Provenance::SplitRecord record_;  // without row count and hash
  std::optional<json::Ref> stratify_, by_;
  std::vector<std::string> inputs_;             // input names
  std::optional<NamedArray> values_, seconds_;  // values of stratify_ or by_; those of dates in seconds
  bool in_order_ = false;
  bool reads_ = true;                                       // false: rows are only counted, without an order
  std::shared_ptr<const std::vector<std::int64_t>> order_;  // train, then validation, then test
  std::function<std::string(std::int64_t row)> time_;       // text of "split_by"
  std::int64_t first_ = 0;                                  // first row that `order_` permutes
};

}  // namespace graphrun::data
