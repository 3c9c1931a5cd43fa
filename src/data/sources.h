// sources.h: the sources of data as a table: name, what it is, its options, the function that reads it.
// Contract: messages, hints and the reference page follow from the table. To add a source: one file with a read
// function, declared here, and one row in sources.cpp.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/json_reader.h"
#include "base/names_of.h"
#include "data/array.h"
#include "data/files.h"

namespace graphrun::data {

inline constexpr std::int64_t kMaxRows = (std::int64_t{1} << 31) - 1;  // of a table that the model file describes
inline constexpr std::int64_t kMaxValues = std::int64_t{1} << 33;      // of one column of it

// A row of a table from which messages, the schema and the reference page are made.
struct Doc {
  std::string_view name, doc;
  std::string_view argument = {};  // what its value is; empty: it has none
};

// A split's object ({"idx": ..., "range": ...}) while it is read. Options are asked from `split`.
struct SourceContext {
  json::Reader& reader;
  json::ObjectReader& split;
  json::Ref value;  // of the source's own key
  Files& files;
  std::uint64_t seed = 0;  // the model's
  bool is_other = false;   // of a file that is not the model's (DataOptions)
  bool opens = true;       // false: what the model file says is read, but no data file
};

struct SourceFormat {
  std::string_view name, doc;
  std::vector<Doc> options;
  Loaded (*read)(SourceContext& context);  // reports to the reader, or throws Error about `value`
  bool is_file = true;                     // otherwise the model file has it all, and its arrays know their shapes
  bool has_test = false;                   // it may hold test rows of its own
};

std::span<const Doc> missing_docs();       // what "missing" may say of a CSV file
std::span<const Doc> distribution_docs();  // what the columns of a random table may hold: {"normal": [0, 1]}

std::span<const SourceFormat> source_formats();
std::span<const Doc> common_options();  // "rows", "range": every source has them

Loaded read_flat_json(SourceContext& context);  // json_arrays.cpp
Loaded read_inline(SourceContext& context);
Loaded read_grid(SourceContext& context);    // grid.cpp
Loaded read_random(SourceContext& context);  // random_table.cpp
Loaded read_idx(SourceContext& context);     // idx.cpp
Loaded read_npy(SourceContext& context);     // npy.cpp
Loaded read_npz(SourceContext& context);
Loaded read_csv(SourceContext& context);  // csv_source.cpp
Loaded read_records(SourceContext& context);

// {"x": "a.gz", "y": "b.gz"}: one file an array, read with `read` when asked for.
Loaded read_files_by_key(SourceContext& context, Array (*read)(const std::string& path));

}  // namespace graphrun::data
