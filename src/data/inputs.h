// inputs.h: one source of the model file as a column for each input: read, chosen by name or list, cut to its range.
// Contract: reports to the reader; a column without an array was reported. Where only sizes are asked for, a part may
// have rows and no columns.
#pragma once

#include <span>
#include <vector>

#include "data/fitted_statistics.h"
#include "data/sources.h"
#include "data/transforms.h"

namespace graphrun::data {

// The rows of one split, a column for each input in their order.
struct SplitData {
  std::string name;
  json::Ref place;
  std::vector<Column> columns;
  std::int64_t rows = 0;  // of every column; 0: reported, or not known
};

struct SourceData {
  SplitData rows;
  std::optional<SplitData> test;             // of a file that holds both
  std::uint64_t hash = 0xcbf29ce484222325u;  // when asked for: of the values before anything is done to them
};

// Where what is fitted comes from and goes to.
struct ReadContext {
  FittedStatistics& fit;
  std::function<Rows(const Rows& all)> train = {};  // those of a part's rows that train; none: another split
  std::function<void(Table& table)> prepare = {};   // when set: gets the table before inputs choose from it
  bool hashes = false;                              // whether the parts' hash is asked for
  std::span<Pipeline> pipelines = {};               // of the inputs: words become classes as they are read
  const ColumnTransforms* columns = nullptr;        // null: there are none
};

// `at` is the object that names the source; `split` is what its rows are for ("train", ...).
SourceData read_source(json::Reader& reader, const json::Ref& at, const std::string& split,
                       std::span<const InputDecl> inputs, Files& files, const DataOptions& options,
                       const ReadContext& fitting);

}  // namespace graphrun::data
