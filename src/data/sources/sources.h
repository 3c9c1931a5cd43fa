// sources.h: table of data sources: name, description, options and read function.
// Contract: messages, hints and the reference page are generated from the table. To add a source, write one file with a
// read function, declare the function here, and add an entry to sources.cpp.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/json_reader.h"
#include "base/names_of.h"
#include "data/array.h"
#include "data/sources/files.h"

namespace graphrun::data {

inline constexpr std::int64_t kMaxRows = (std::int64_t{1} << 31) - 1;  // per table that the model file describes
inline constexpr std::int64_t kMaxValues = std::int64_t{1} << 33;      // per column of such a table

// Documentation entry, used by messages, the schema and the reference page.
struct Doc {
  std::string_view name, doc;
  std::string_view argument = {};  // description of the argument; empty if it takes none
};

// State for reading one split object ({"idx": ..., "range": ...}). Options are read from `split`.
struct SourceContext {
  json::Reader& reader;
  json::ObjectReader& split;
  json::Ref value;  // value of the source's own key
  Files& files;
  std::uint64_t seed = 0;  // seed of the model
  bool is_other = false;   // true for a file other than the model's (DataOptions)
  bool opens = true;       // false: parses the model file only and opens no data file
};

struct SourceFormat {
  std::string_view name, doc;
  std::vector<Doc> options;
  Loaded (*read)(SourceContext& context);  // reports to the reader, or throws Error about `value`
  bool is_file = true;                     // false: the model file defines all data, so shapes are known
  bool has_test = false;                   // may contain test rows of its own
  bool may_have_bytes = false;             // its numbers may be bytes (Split::codes)
};

std::span<const Doc> missing_docs();       // values of "missing" for a CSV file
std::span<const Doc> distribution_docs();  // distributions of a random table: {"normal": [0, 1]}

std::span<const SourceFormat> source_formats();
std::span<const Doc> common_options();  // "rows", "range": accepted by every source

Loaded read_flat_json(SourceContext& context);  // json_arrays.cpp
Loaded read_inline(SourceContext& context);
Loaded read_grid(SourceContext& context);    // grid.cpp
Loaded read_random(SourceContext& context);  // random_table.cpp
Loaded read_idx(SourceContext& context);     // idx.cpp
Loaded read_images(SourceContext& context);  // images.cpp
Loaded read_npy(SourceContext& context);     // npy.cpp
Loaded read_npz(SourceContext& context);
Loaded read_csv(SourceContext& context);  // csv_source.cpp
Loaded read_records(SourceContext& context);

// Reads {"x": "a.gz", "y": "b.gz"}: one file per array, read with `read` on request.
Loaded read_files_by_key(SourceContext& context, Array (*read)(const std::string& path));

}  // namespace graphrun::data
