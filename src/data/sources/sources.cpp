#include "data/sources/sources.h"

#include "graphrun/error.h"

namespace graphrun::data {

std::span<const SourceFormat> source_formats() {
  static constexpr Doc kMissing = {
      "missing", "policy for missing values (NaN in arrays), of all columns or by column (\"error\")"};
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
      {"idx",
       "one IDX file for each input, plain or gzip: {\"x\": \"images.gz\", \"y\": \"labels.gz\"}",
       {},
       read_idx,
       true,
       false,
       true},
      {"images",
       "a folder of PNG files, in one folder for each class; the arrays are image, class and file",
       {},
       read_images,
       true,
       false,
       true},
      {"npy",
       "one NPY file for each input: {\"x\": \"x.npy\", \"y\": \"y.npy\"}",
       {kMissing},
       read_npy,
       true,
       false,
       true},
      {"npz", "an NPZ file; its arrays are named like the inputs", {kMissing}, read_npz, true, false, true},
      {"csv",
       "a CSV file, plain or gzip; every column is an array",
       {{"header", "whether the first line names the columns (true); otherwise they are named 0, 1, 2, ..."},
        {"names", "names of the columns, of a file without a header or instead of its header: [\"age\", \"price\"]"},
        {"delimiter", "the character between values (\",\"; of a .tsv file the tab); \" \" for any number of blanks"},
        {"libsvm", "features of a file of lines such as 1 1:0.5 3:1.2; its columns are c0 (the label), c1, c2, ..."},
        {"decimal", "the decimal sign (\".\")"},
        {"thousands", "the sign between groups of three digits (none); \" \" for no-break spaces, too"},
        {"currency", "a sign before or after a number, which is negative in parentheses (none)"},
        {"percent", "whether a number may end in %, and is a share of 1 then (false)"},
        {"comment", "lines that begin with it are skipped (none)"},
        {"na", "further texts that stand for a missing value: [\"-999\"]"},
        kDates,
        kMissing},
       read_csv},
      {"records",
       "a JSON file of rows: an array of objects, or one object a line; every key is an array",
       {{"na", "further texts that stand for a missing value"}, kDates, kMissing},
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
      {"window", "samples of consecutive rows: {\"length\": 12, \"hop\": 1, \"target\": 1}"},
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
