#include "data/splits/gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "data/sources/columns.h"
#include "graphrun/error.h"

namespace graphrun::data {
namespace {

// Combines columns of one number per row; each row has the shape of `sample`.
ArrayPtr side_by_side(const std::vector<NamedArray>& columns, const Shape& sample) {
  auto together = std::make_shared<Array>();
  for (const NamedArray& column : columns) together->columns.push_back(column.name);
  std::vector<double> values =
      values_side_by_side(columns.size(), [at = columns.begin()]() mutable { return (at++)->read(); });
  together->shape = Shape{static_cast<std::int64_t>(values.size() / columns.size())};
  for (const std::int64_t extent : sample.dims()) together->shape.push_back(extent);
  together->values = std::move(values);
  return together;
}

NamedArray gathered(std::string name, const json::Ref& at, std::vector<NamedArray> columns, const Shape& sample) {
  const Missing missing = columns.front().missing;  // all columns have the policy of the array
  const auto read = [columns = std::move(columns), sample] { return side_by_side(columns, sample); };
  return {std::move(name), at, read, {}, {}, missing};
}

std::string column_name(const std::string& array, std::int64_t i) {
  return array + std::to_string(i);
}

}  // namespace

void gather(json::Reader& reader, const json::Ref& at, Table& table, const std::vector<Taken>& taken) {
  std::unordered_set<std::string> whole;
  for (const Taken& one : taken) whole.insert(one.array);
  for (const Taken& one : taken) {
    const std::int64_t width = one.sample.elements();
    if (one.array.empty() || width == 1 || table.find(one.array)) continue;
    std::vector<NamedArray> columns;
    for (std::int64_t i = 0; i < width; ++i) {
      const std::string name = column_name(one.array, i);
      if (const NamedArray* column = table.find(name)) {
        columns.push_back(*column);
        continue;
      }
      reader.report(at, "data.column",
                    fmt::format("no column '{}'; '{}' is the columns {} to {}, and the file has {}", name, one.array,
                                column_name(one.array, 0), column_name(one.array, width - 1), listed(table.names())),
                    did_you_mean(name, table.names()));
      break;
    }
    // A column with a reported error keeps its name, so it is not parsed as a formula.
    const bool is_complete = static_cast<std::int64_t>(columns.size()) == width;
    table.gathered.emplace(one.array, is_complete ? gathered(one.array, at, std::move(columns), one.sample)
                                                  : NamedArray{one.array, at, [] { return ArrayPtr(); }});
  }
  for (const NamedArray& first : table.arrays) {
    const std::string array = first.name.substr(0, std::max<std::size_t>(first.name.size(), 1) - 1);
    if (array.empty() || first.name.back() != '0' || table.find(array) || whole.contains(array)) continue;
    std::vector<NamedArray> columns;
    while (const NamedArray* column = table.find(column_name(array, static_cast<std::int64_t>(columns.size()))))
      columns.push_back(*column);
    const Shape sample{static_cast<std::int64_t>(columns.size())};
    table.gathered.emplace(array, gathered(array, at, std::move(columns), sample));
  }
}

}  // namespace graphrun::data
