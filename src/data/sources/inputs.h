// inputs.h: turns one source of the model file into a column per input, selected by name or list and cut to its range.
// Contract: reports to the reader; a column without an array has been reported. If only sizes are requested, a split
// may have rows but no columns.
#pragma once

#include <span>
#include <vector>

#include "data/sources/sources.h"
#include "data/transforms/fitted_statistics.h"
#include "data/transforms/transforms.h"

namespace graphrun::data {

// Rows of a part with windows, so that f32 holds the number of each of them.
inline constexpr std::int64_t kMaxWindowedRows = std::int64_t{1} << 24;

// Option "window": a sample is `length` consecutive rows, and its target the row `target` rows after the last of them.
struct Window {
  std::int64_t length = 0, hop = 1, target = 1;  // length 0: no windows
  json::Ref place = {};
};

// Rows of one split, with one column per input, in input order.
struct SplitData {
  std::string name;
  json::Ref place;
  std::vector<Column> columns;
  std::int64_t rows = 0;              // rows of every column; 0: reported, or unknown
  std::string first = {}, last = {};  // as in Split
  Window window = {};                 // applied by form_windows()
};

struct SourceData {
  SplitData rows;
  std::optional<SplitData> test;             // set if the file contains test rows
  std::uint64_t hash = 0xcbf29ce484222325u;  // over the untransformed values, if requested
};

// Fitted statistics and options of one read.
struct ReadContext {
  FittedStatistics& fit;
  std::function<Rows(const Rows& all)> train = {};  // selects the training rows; unset: another split
  std::function<void(Table& table)> prepare = {};   // if set: called with the table before inputs select from it
  bool hashes = false;                              // whether to compute the hash of the values
  std::span<Pipeline> pipelines = {};               // per input; categorical values become classes on reading
  const ColumnTransforms* columns = nullptr;        // null: no column transforms
};

// `at` is the object that names the source; `split` is the split name ("train", ...).
SourceData read_source(json::Reader& reader, const json::Ref& at, const std::string& split,
                       std::span<const InputDecl> inputs, Files& files, const DataOptions& options,
                       const ReadContext& fitting);

// Makes samples of the rows of a part by its window: an input that outputs read has windows, another one their target
// rows. `predicts`: one sample for every window of the rows, whose target may be beyond the last row. Reports too few
// rows, and too many.
void form_windows(json::Reader& reader, SplitData& part, std::span<const InputDecl> inputs, bool predicts = false);

}  // namespace graphrun::data
