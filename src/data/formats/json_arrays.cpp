// The sources "json" (flat arrays in a file) and "inline" (nested arrays in the model file).
#include <fmt/format.h>

#include "data/sources/sources.h"
#include "data/transforms/encoding.h"
#include "graphrun/error.h"

namespace graphrun::data {
namespace {

NamedArray ready(std::string name, const json::Ref& place, Array array) {
  auto shared = std::make_shared<const Array>(std::move(array));
  return {std::move(name), place, [shared] { return shared; }, shared->shape};
}

// x is (rows, n); y is (rows), or (rows, k) with k values per row.
void read_flat_table(json::Reader& reader, json::ObjectReader& file, const std::string& suffix, std::int64_t rows,
                     std::optional<std::int64_t> n, const json::Ref& place, Table& table) {
  for (const std::string name : {"x", "y"}) {
    const std::optional<json::Ref> at = file.require(name + suffix);
    if (!at) continue;
    std::optional<std::vector<double>> values = reader.numbers(*at);
    if (!values || (name == "x" && !n)) continue;
    const auto size = static_cast<std::int64_t>(values->size());
    Shape shape{rows};
    if (name == "x") {
      shape.push_back(*n);
      if (size != rows * *n) {
        reader.report(*at, "data.size",
                      fmt::format("expected {} x {} = {} numbers, got {}", rows, *n, rows * *n, size));
        continue;
      }
    } else if (size != rows) {
      if (size == 0 || size % rows != 0) {
        reader.report(*at, "data.size", fmt::format("expected {} numbers or a multiple of it, got {}", rows, size));
        continue;
      }
      shape.push_back(size / rows);
    }
    table.arrays.push_back(ready(name, place, {shape, std::move(*values)}));
  }
}

// Infers the shape of nested arrays from their first items; other items are compared with it later.
bool append_nested(json::Reader& reader, const json::Ref& at, const Shape& shape, int axis,
                   std::vector<double>& values) {
  if (axis == shape.rank()) {
    const std::optional<double> number = reader.number(at);
    if (number) values.push_back(*number);
    return number.has_value();
  }
  if (at.value->kind != json::Kind::array) {
    reader.report(at, "data.shape",
                  fmt::format("expected an array of {} items, got {}", shape[axis], json::name_of(at.value->kind)));
    return false;
  }
  if (static_cast<std::int64_t>(at.value->items.size()) != shape[axis]) {
    reader.report(at, "data.shape",
                  fmt::format("expected {} items as in the first row, got {}", shape[axis], at.value->items.size()));
    return false;
  }
  bool good = true;
  for (std::size_t i = 0; i < at.value->items.size(); ++i)
    good = append_nested(reader, at.item(i), shape, axis + 1, values) && good;
  return good;
}

}  // namespace

Loaded read_flat_json(SourceContext& context) {
  Loaded loaded;
  const std::optional<std::string> name = context.reader.string(context.value);
  if (!name || !context.opens) return loaded;
  const std::string path = context.files.find(*name);
  std::string text = context.files.read(path);
  require_utf8(path, text, 0);
  const json::Document document = json::parse(path, std::move(text));
  json::Reader reader(document);
  json::ObjectReader file(reader, reader.root());
  constexpr std::int64_t kMax = 1'000'000'000;  // keeps products far from 64-bit overflow
  const auto size = [&](std::string_view key, std::int64_t low) -> std::optional<std::int64_t> {
    const std::optional<json::Ref> at = file.require(key);
    return at ? reader.integer(*at, low, kMax) : std::nullopt;
  };
  const std::optional<std::int64_t> m = size("m", 1), n = size("n", 1);
  for (const char* key : {"x", "y", "m_test", "x_test", "y_test"}) file.get(key);
  if (m) read_flat_table(reader, file, "", *m, n, context.value, loaded.rows);
  if (file.get("m_test") || file.get("x_test") || file.get("y_test")) {
    const std::optional<std::int64_t> m_test = size("m_test", 0);
    if (m_test && *m_test > 0) {
      loaded.test.emplace();
      read_flat_table(reader, file, "_test", *m_test, n, context.value, *loaded.test);
    }
  }
  file.finish();
  reader.throw_if_failed();
  return loaded;
}

Loaded read_inline(SourceContext& context) {
  Loaded loaded;
  json::ObjectReader object(context.reader, context.value);
  if (!object.is_object()) return loaded;
  for (const json::Member& member : context.value.value->members) {
    const json::Ref place = context.value.member(member);
    const bool has_rows = place.value->kind == json::Kind::array && !place.value->items.empty();
    if (!has_rows) context.reader.report(place, "data.shape", "expected an array with one item a row");
    Array array;
    std::vector<double> values;
    const json::Value* value = place.value;
    while (value->kind == json::Kind::array && array.shape.rank() < kMaxRank && !value->items.empty()) {
      array.shape.push_back(static_cast<std::int64_t>(value->items.size()));
      value = &value->items.front();
    }
    const bool good = has_rows && append_nested(context.reader, place, array.shape, 0, values);
    array.values = std::move(values);
    // A column with a reported error keeps its name, so it is not also reported as missing.
    if (good)
      loaded.rows.arrays.push_back(ready(member.key, place, std::move(array)));
    else
      loaded.rows.arrays.push_back({member.key, place, [] { return ArrayPtr(); }});
  }
  return loaded;
}

}  // namespace graphrun::data
