#include "data/sources.h"

#include "graphrun/error.h"

namespace graphrun::data {

std::span<const SourceFormat> source_formats() {
  static constexpr Doc kGaps = {"missing", "policy for NaN, of all arrays or by array (\"error\")"};
  static constexpr Doc kDates = {
      "dates", "order of day and month in dates with slashes: \"dd/mm/yyyy\" or \"mm/dd/yyyy\" (shown by the column)"};
  static const std::vector<SourceFormat> formats = {
      {"json",
       "a JSON file with the sizes m, n, m_test and the flat row-major arrays x, y, x_test, y_test",
       {},
       read_flat_json,
       true,
       true},
      {"inline", "arrays in the model file: {\"x\": [[0, 0], [0, 1]], \"y\": [0, 1]}", {}, read_inline, false},
      {"idx", "one IDX file for each input, plain or gzip: {\"x\": \"images.gz\", \"y\": \"labels.gz\"}", {}, read_idx},
      {"npy", "one NPY file for each input: {\"x\": \"x.npy\", \"y\": \"y.npy\"}", {kGaps}, read_npy},
      {"npz", "an NPZ file; its arrays are named like the inputs", {kGaps}, read_npz},
      {"csv",
       "a CSV file, plain or gzip; every column is an array",
       {{"header", "whether the first line names the columns (true); otherwise they are named 0, 1, 2, ..."},
        {"delimiter", "the character between values (\",\"; of a .tsv file the tab)"},
        {"decimal", "the decimal sign (\".\")"},
        {"thousands", "the sign between groups of three digits (none); \" \" for no-break spaces, too"},
        {"currency", "a sign before or after a number, which is negative in parentheses (none)"},
        {"percent", "whether a number may end in %, and is a share of 1 then (false)"},
        {"comment", "lines that begin with it are skipped (none)"},
        {"na", "further texts that stand for a missing value: [\"-999\"]"},
        kDates,
        {"missing", "policy for missing values, of all columns or by column (\"error\")"}},
       read_csv},
      {"records",
       "a JSON file of rows: an array of objects, or one object a line; every key is an array",
       {{"na", "further texts that stand for a missing value"},
        kDates,
        {"missing", "policy for missing values, of all columns or by column (\"error\")"}},
       read_records},
      {"grid",
       "every combination of points on axes, the last axis fastest; an axis is [first, last, points], both ends "
       "included: {\"u\": [-3, 3, 200], \"v\": [-3, 3, 200]}",
       {},
       read_grid,
       false},
      {"random",
       "columns of random numbers: {\"rows\": 1000, \"seed\": 7, \"columns\": {\"a\": {\"normal\": 1}}}",
       {},
       read_random,
       false},
  };
  return formats;
}

std::span<const Doc> common_options() {
  static const std::vector<Doc> options = {
      {"rows", "how many rows there must be, after \"range\""},
      {"range", "the rows to take, [first, end), the end not included"},
  };
  return options;
}

Loaded read_files_by_key(SourceContext& context, Array (*read)(const std::string& path)) {
  Loaded loaded;
  json::ObjectReader object(context.reader, context.value);
  if (!object.is_object()) return loaded;
  for (const json::Member& member : context.value.value->members) {
    const json::Ref place = context.value.member(member);
    const std::optional<std::string> name = context.reader.string(place);
    if (!name) continue;
    Files* files = &context.files;
    loaded.rows.arrays.push_back(
        {member.key, place, [files, read, name = *name] { return files->array(files->find(name), read); }});
  }
  return loaded;
}

}  // namespace graphrun::data
