// sources.h: the sources of data as a table: name, what it is, its options, the function that reads it.
// Contract: messages, hints and the reference page follow from the table. To add a source: one file with a read
// function, declared here, and one row in sources.cpp.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/json_reader.h"
#include "data/array.h"
#include "data/files.h"

namespace graphrun::data {

struct SourceOption {
  std::string_view name, doc;
};

// A split's object ({"idx": ..., "range": ...}) while it is read. Options are asked from `split`.
struct SourceContext {
  json::Reader& reader;
  json::ObjectReader& split;
  json::Place value;  // of the source's own key
  Files& files;
};

struct SourceFormat {
  std::string_view name, doc;
  std::vector<SourceOption> options;
  Loaded (*read)(SourceContext& context);  // reports to the reader, or throws Error about `value`
};

std::span<const SourceFormat> source_formats();
std::span<const SourceOption> common_options();  // "rows", "range": every source has them
std::vector<std::string> source_names();

Loaded read_flat_json(SourceContext& context);  // json_arrays.cpp
Loaded read_inline(SourceContext& context);
Loaded read_idx(SourceContext& context);  // idx.cpp
Loaded read_npy(SourceContext& context);  // npy.cpp
Loaded read_npz(SourceContext& context);
Loaded read_csv(SourceContext& context);  // csv.cpp

// {"x": "a.gz", "y": "b.gz"}: one file an array, read with `read` when asked for.
Loaded read_files_by_key(SourceContext& context, Array (*read)(const std::string& path));

}  // namespace graphrun::data
