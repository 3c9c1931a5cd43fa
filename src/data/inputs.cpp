#include "data/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "graphrun/error.h"

namespace graphrun::data {
namespace {

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  constexpr std::size_t kShown = 12;
  for (std::size_t i = 0; i < names.size() && i < kShown; ++i) text += (i > 0 ? ", " : "") + names[i];
  return names.size() > kShown ? text + fmt::format(" and {} more", names.size() - kShown) : text;
}

std::string did_you_mean(const std::string& name, const std::vector<std::string>& names) {
  const std::string near = nearest_name(name, names);
  return near.empty() ? "" : fmt::format("did you mean '{}'?", near);
}

ArrayPtr read_array(json::Reader& reader, const NamedArray& named) {
  try {
    const ArrayPtr array = named.read();
    if (array && array->shape.rank() == 0) {
      reader.report(named.place, "data.shape", fmt::format("array '{}' is one number; it has no rows", named.name));
      return nullptr;
    }
    return array;
  } catch (const Error& error) {
    reader.report(named.place, error);
    return nullptr;
  }
}

// Columns of (rows) or (rows, 1), side by side as (rows, k).
ArrayPtr side_by_side(json::Reader& reader, const json::Place& at, const std::vector<const NamedArray*>& columns) {
  std::vector<ArrayPtr> arrays;
  bool good = !columns.empty();
  for (const NamedArray* column : columns) {
    const ArrayPtr array = read_array(reader, *column);
    if (array && (array->rows() != array->shape.elements() ||
                  (good && !arrays.empty() && arrays.front()->rows() != array->rows()))) {
      reader.report(at, "data.shape",
                    fmt::format("'{}' is {}; only columns of equal length can stand side by side", column->name,
                                to_string(array->shape)));
      return nullptr;
    }
    good = good && array;
    arrays.push_back(array);
  }
  if (!good) return nullptr;
  const std::int64_t rows = arrays.front()->rows();
  const std::size_t width = arrays.size();
  std::vector<double> values(static_cast<std::size_t>(rows) * width);
  for (std::size_t c = 0; c < width; ++c) {
    std::visit(
        [&](const auto& from) {
          for (std::size_t r = 0; r < from.size(); ++r) values[r * width + c] = static_cast<double>(from[r]);
        },
        arrays[c]->values);
  }
  return std::make_shared<const Array>(Array{Shape{rows, static_cast<std::int64_t>(width)}, std::move(values)});
}

// What a split says about an input beside its source: "x": ["a", "b"] or "y": "price".
struct Choice {
  bool given = false;
  bool is_list = false;
  json::Place place;
  std::vector<const NamedArray*> arrays;
};

Choice read_choice(json::Reader& reader, const json::Place& at, const Table& table) {
  Choice choice{true, at.value->kind == json::Kind::array, at, {}};
  const auto add = [&](const json::Place& item) {
    const std::optional<std::string> name = reader.string(item);
    if (!name) return;
    if (const NamedArray* array = table.find(*name))
      choice.arrays.push_back(array);
    else
      reader.report(item, "data.column", fmt::format("no column '{}'; the source has {}", *name, listed(table.names())),
                    did_you_mean(*name, table.names()));
  };
  if (choice.is_list) {
    for (std::size_t i = 0; i < at.value->items.size(); ++i) add(at.item(i));
  } else {
    add(at);
  }
  return choice;
}

std::vector<ArrayPtr> arrays_of(json::Reader& reader, const json::Place& at, const Table& table,
                                std::span<const InputDecl> inputs,
                                const std::vector<std::optional<json::Place>>& said) {
  std::vector<Choice> choices(inputs.size());
  std::vector<const NamedArray*> free;
  std::size_t open = 0;  // inputs with neither formula nor list
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (said[i])
      choices[i] = read_choice(reader, *said[i], table);
    else
      ++open;
  }
  for (const NamedArray& array : table.arrays) {
    const bool is_taken = std::any_of(choices.begin(), choices.end(), [&](const Choice& choice) {
      return std::find(choice.arrays.begin(), choice.arrays.end(), &array) != choice.arrays.end();
    });
    if (!is_taken) free.push_back(&array);
  }
  std::vector<ArrayPtr> arrays(inputs.size());
  if (!table.keyed && open > 1) {
    reader.report(at, "data.column", "only one input can take the columns that are left; list those of the others");
    return arrays;
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Choice& choice = choices[i];
    if (choice.given) {
      if (choice.is_list)
        arrays[i] = side_by_side(reader, choice.place, choice.arrays);
      else if (!choice.arrays.empty())
        arrays[i] = read_array(reader, *choice.arrays.front());
    } else if (!table.keyed) {
      if (free.empty())
        reader.report(at, "data.column", fmt::format("no column is left for input '{}'", inputs[i].name));
      else
        arrays[i] = side_by_side(reader, at, free);
    } else if (const NamedArray* array = table.find(inputs[i].name)) {
      arrays[i] = read_array(reader, *array);
    } else {
      reader.report(at, "data.missing_input",
                    table.arrays.empty() ? fmt::format("no array for input '{}'", inputs[i].name)
                                         : fmt::format("no array for input '{}'; the source has {}", inputs[i].name,
                                                       listed(table.names())),
                    did_you_mean(inputs[i].name, table.names()));
    }
  }
  return arrays;
}

struct Cut {
  std::optional<std::int64_t> rows;
  std::optional<json::Place> rows_at, range_at;
  std::int64_t begin = 0, end = -1;  // -1: to the last row
};

Cut read_cut(json::Reader& reader, json::ObjectReader& split) {
  Cut cut;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  cut.rows_at = split.get("rows");
  if (cut.rows_at) cut.rows = reader.integer(*cut.rows_at, 1, kMost);
  cut.range_at = split.get("range");
  if (!cut.range_at) return cut;
  const json::Value& value = *cut.range_at->value;
  if (value.kind != json::Kind::array || value.items.size() != 2) {
    reader.report(*cut.range_at, "data.range", "must be [first, end): two integers");
    return cut;
  }
  const std::optional<std::int64_t> begin = reader.integer(cut.range_at->item(0), 0, kMost);
  const std::optional<std::int64_t> end = reader.integer(cut.range_at->item(1), 1, kMost);
  if (!begin || !end) return cut;
  if (*begin >= *end) {
    reader.report(*cut.range_at, "data.range", fmt::format("the range [{}, {}) is empty", *begin, *end));
    return cut;
  }
  cut.begin = *begin;
  cut.end = *end;
  return cut;
}

Part part_of(json::Reader& reader, const json::Place& at, std::string name, const Cut& cut,
             std::span<const InputDecl> inputs, const std::vector<ArrayPtr>& arrays) {
  Part part{std::move(name), at, {}, 0};
  part.columns.resize(inputs.size());
  const ArrayPtr* first = nullptr;
  std::string_view first_name;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!arrays[i]) continue;
    if (first && (*first)->rows() != arrays[i]->rows()) {
      reader.report(at, "data.rows",
                    fmt::format("'{}' has {} rows, but '{}' has {}", first_name, (*first)->rows(), inputs[i].name,
                                arrays[i]->rows()));
      return part;
    }
    if (!first) first = &arrays[i], first_name = inputs[i].name;
  }
  if (!first) return part;
  const std::int64_t total = (*first)->rows();
  const std::int64_t end = cut.end < 0 ? total : cut.end;
  if (end > total) {
    reader.report(*cut.range_at, "data.range",
                  fmt::format("the range [{}, {}) ends beyond the {} rows of the source", cut.begin, end, total));
    return part;
  }
  if (end == cut.begin) {
    reader.report(at, "data.rows", "the source has no rows");
    return part;
  }
  if (cut.rows && *cut.rows != end - cut.begin) {
    reader.report(*cut.rows_at, "data.rows",
                  fmt::format("{} rows are declared, but there are {}", *cut.rows, end - cut.begin));
  }
  part.rows = end - cut.begin;
  for (std::size_t i = 0; i < inputs.size(); ++i) part.columns[i] = {arrays[i], cut.begin, part.rows, nullptr};
  return part;
}

}  // namespace

Parts read_source(json::Reader& reader, const json::Place& at, const std::string& split_name,
                  std::span<const InputDecl> inputs, Files& files) {
  Parts parts;
  parts.rows = {split_name, at, {}, 0};
  json::ObjectReader split(reader, at);
  if (!split.is_object()) return parts;

  const SourceFormat* format = nullptr;
  json::Place value;
  for (const SourceFormat& candidate : source_formats()) {
    const json::Member* member = at.value->find(candidate.name);
    if (!member) continue;
    split.get(candidate.name);
    if (format) {
      reader.report_key(at, *member, "data.source",
                        fmt::format("one source is enough: '{}' and '{}'", format->name, candidate.name));
      continue;
    }
    format = &candidate;
    value = at.member(*member);
  }
  if (!format) {
    const std::string expected = "expected one of " + listed(source_names());
    for (const json::Member& member : at.value->members) {
      const std::string hint = did_you_mean(member.key, source_names());
      if (hint.empty()) continue;
      reader.report_key(at, member, "data.source", fmt::format("unknown source '{}'; {}", member.key, expected), hint);
      return parts;
    }
    reader.report(at, "data.source", "no source is named; " + expected);
    return parts;
  }

  const Cut cut = read_cut(reader, split);
  const auto is_option = [&](const std::string& name) {
    const auto has = [&](std::span<const SourceOption> options) {
      return std::any_of(options.begin(), options.end(), [&](const SourceOption& o) { return o.name == name; });
    };
    return has(common_options()) || has(format->options) || name == format->name;
  };
  std::vector<std::optional<json::Place>> said(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!is_option(inputs[i].name)) said[i] = split.get(inputs[i].name);
  }
  for (const SourceFormat& other : source_formats()) {
    for (const SourceOption& option : other.options) split.also_known({std::string(option.name)});
  }

  const std::size_t before = reader.errors();
  Loaded loaded;
  SourceContext context{reader, split, value, files};
  try {
    loaded = format->read(context);
  } catch (const Error& error) {
    reader.report(value, error);
  }
  for (const SourceOption& option : format->options) split.get(option.name);
  split.finish();
  if (loaded.rows.arrays.empty()) {  // then there is nothing to choose from, and somebody has said so
    if (reader.errors() == before) reader.report(value, "data.source", "the source has no arrays");
    return parts;
  }
  if (split_name == "test" && loaded.test) std::swap(loaded.rows, *loaded.test);
  parts.rows = part_of(reader, at, split_name, cut, inputs, arrays_of(reader, value, loaded.rows, inputs, said));
  if (split_name.empty() && loaded.test)
    parts.test = part_of(reader, at, "test", Cut{}, inputs, arrays_of(reader, value, *loaded.test, inputs, said));
  return parts;
}

}  // namespace graphrun::data
