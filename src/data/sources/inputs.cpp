#include "data/sources/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "data/sources/columns.h"
#include "graphrun/error.h"

namespace graphrun::data {
namespace {

struct Cut {
  std::optional<std::int64_t> rows;
  std::optional<json::Ref> rows_at, range_at;
  std::int64_t begin = 0, end = -1;  // -1: to the last row

  std::int64_t declared() const { return end >= 0 ? end - begin : rows.value_or(0); }  // 0: unknown

  // Selects from `total` rows; nothing if the range exceeds them, which part_of() reports.
  std::optional<Rows> of(std::int64_t total) const {
    const std::int64_t last = end < 0 ? total : end;
    if (last > total || last <= begin) return std::nullopt;
    return Rows{begin, last - begin};
  }
};

Cut read_cut(json::Reader& reader, json::ObjectReader& split) {
  Cut cut;
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  cut.rows_at = split.get("rows");
  if (cut.rows_at) cut.rows = reader.integer(*cut.rows_at, 1, kMax);
  cut.range_at = split.get("range");
  if (!cut.range_at) return cut;
  const json::Value& value = *cut.range_at->value;
  if (value.kind != json::Kind::array || value.items.size() != 2) {
    reader.report(*cut.range_at, "data.range", "must be [first, end): two integers");
    return cut;
  }
  const std::optional<std::int64_t> begin = reader.integer(cut.range_at->item(0), 0, kMax);
  const std::optional<std::int64_t> end = reader.integer(cut.range_at->item(1), 1, kMax);
  if (!begin || !end) return cut;
  if (*begin >= *end) {
    reader.report(*cut.range_at, "data.range", fmt::format("the range [{}, {}) is empty", *begin, *end));
    return cut;
  }
  cut.begin = *begin;
  cut.end = *end;
  if (cut.rows && *cut.rows != cut.declared()) {
    reader.report(*cut.rows_at, "data.rows",
                  fmt::format("{} rows are declared, but the range has {}", *cut.rows, cut.declared()));
    cut.rows.reset();
  }
  return cut;
}

Window read_window(json::Reader& reader, json::ObjectReader& split, const json::Ref& source,
                   std::span<const InputDecl> inputs) {
  Window window;
  const std::optional<json::Ref> at = split.get("window");
  if (!at) return window;
  window.place = *at;
  json::ObjectReader object(reader, *at);
  if (!object.is_object()) return window;
  if (const auto length = object.require("length", "the number of consecutive rows in a sample"))
    window.length = reader.integer(*length, 1, kMaxRows).value_or(0);
  window.hop = object.integer("hop", 1, kMaxRows).value_or(1);
  window.target = object.integer("target", 0, kMaxRows).value_or(1);
  object.finish();
  if (std::all_of(inputs.begin(), inputs.end(), [](const InputDecl& input) { return input.is_target; }))
    reader.report(*at, "data.window", "no output depends on an input, so no input has windows",
                  "\"outputs\" lists the values that the model predicts");
  const json::Member* missing = source.value->find("missing");
  const auto drops = [](const json::Value& policy) { return policy.string == "drop"; };
  if (missing && (drops(missing->value) || std::any_of(missing->value.members.begin(), missing->value.members.end(),
                                                       [&](const auto& one) { return drops(one.value); })))
    reader.report(source.member(*missing), "data.window",
                  "\"drop\" would put rows into one window that are not consecutive",
                  "fill the gaps, for instance with \"median\"");
  return window;
}

SplitData part_of(json::Reader& reader, const json::Ref& at, std::string name, const Cut& cut,
                  std::span<const InputDecl> inputs, const std::vector<ArrayPtr>& arrays) {
  SplitData part{std::move(name), at, {}, 0};
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
  for (std::size_t i = 0; i < inputs.size(); ++i) part.columns[i] = {arrays[i], {cut.begin, part.rows}};
  return part;
}

bool is_read(const SourceFormat& format) {
  return format.is_file || format.read == read_inline;
}

bool may_have_codes(const SourceFormat& format, std::span<const InputDecl> inputs, std::span<const Pipeline> lists) {
  if (!format.may_have_bytes) return false;
  for (std::size_t i = 0; i < lists.size(); ++i)
    if (lists[i].divisor(inputs[i])) return true;
  return false;
}

// Whether all files of a source exist.
bool are_here(const json::Ref& source, Files& files) {
  std::vector<std::string> names = {source.value->string};
  if (source.value->kind == json::Kind::object) {
    names.clear();
    for (const json::Member& member : source.value->members) names.push_back(member.value.string);
  }
  try {
    for (const std::string& name : names) files.find(name, Files::Find::folder_too);
  } catch (const Error&) {  // reading reports the file
    return false;
  }
  return true;
}

// FNV-1a over the bits of the values as doubles, one value at a time.
std::uint64_t hash(const Array& array, const Cut& cut, std::uint64_t hash) {
  const std::optional<Rows> rows = cut.of(array.rows());
  if (!rows) return hash;
  const auto width = static_cast<std::size_t>(array.shape.elements() / std::max<std::int64_t>(array.rows(), 1));
  const auto begin = static_cast<std::size_t>(rows->begin) * width;
  const std::size_t end = begin + static_cast<std::size_t>(rows->count) * width;
  std::visit(
      [&](const auto& values) {
        for (std::size_t i = begin; i < end; ++i)
          hash = (hash ^ std::bit_cast<std::uint64_t>(static_cast<double>(values[i]))) * 0x100000001b3u;
      },
      array.values);
  return hash;
}

}  // namespace

SourceData read_source(json::Reader& reader, const json::Ref& at, const std::string& split_name,
                       std::span<const InputDecl> inputs, Files& files, const DataOptions& options,
                       const ReadContext& fitting) {
  SourceData parts;
  parts.rows = {split_name, at, {}, 0};
  json::ObjectReader split(reader, at);
  if (!split.is_object()) return parts;

  const SourceFormat* format = nullptr;
  json::Ref value;
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
    const std::string expected = "expected one of " + listed(names_of(source_formats()));
    for (const json::Member& member : at.value->members) {
      const std::string hint = did_you_mean(member.key, names_of(source_formats()));
      if (hint.empty()) continue;
      reader.report_key(at, member, "data.source", fmt::format("unknown source '{}'; {}", member.key, expected), hint);
      return parts;
    }
    reader.report(at, "data.source", "no source is named; " + expected);
    return parts;
  }

  const Cut cut = read_cut(reader, split);
  parts.rows.window = read_window(reader, split, at, inputs);
  const auto is_option = [&](const std::string& name) {
    const auto has = [&](std::span<const Doc> known) {
      return std::any_of(known.begin(), known.end(), [&](const Doc& option) { return option.name == name; });
    };
    return has(common_options()) || has(format->options) || name == format->name;
  };
  std::vector<std::optional<json::Ref>> said(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!is_option(inputs[i].name)) said[i] = split.get(inputs[i].name);
  }
  for (const SourceFormat& other : source_formats()) split.also_known(names_of(other.options));

  const auto finish = [&] {
    for (const Doc& option : format->options) split.get(option.name);
    split.finish();
  };
  bool is_declared = cut.declared() > 0 && (split_name != "" || !format->has_test);
  if (is_declared && options.use == DataUse::sizes && may_have_codes(*format, inputs, fitting.pipelines)) {
    is_declared = !are_here(value, files);
    if (is_declared)
      files.warn("planned without the data: images count 4 bytes per element, of which those of 8 bits may take 1");
  }
  if (format->is_file && (options.use == DataUse::none || (options.use == DataUse::sizes && is_declared))) {
    const std::size_t before = reader.errors();
    SourceContext context{reader, split, value, files, options.seed, options.is_other, false};
    const Table named = format->read(context).rows;
    if (value.value->kind == json::Kind::object && named.arrays.empty() && reader.errors() == before)
      reader.report(value, "data.source", "the source has no arrays");
    check_choices(reader, value, named, inputs, said, fitting.pipelines);
    finish();
    parts.rows.rows = cut.declared();
    return parts;
  }
  const std::size_t before = reader.errors();
  Loaded loaded;
  SourceContext context{reader, split, value, files, options.seed, options.is_other};
  try {
    loaded = format->read(context);
  } catch (const Error& error) {
    reader.report(value, error);
  }
  finish();
  if (loaded.rows.arrays.empty()) {  // an error may already be reported
    if (reader.errors() == before) reader.report(value, "data.source", "the source has no arrays");
    return parts;
  }
  if (split_name == "test" && loaded.test) std::swap(loaded.rows, *loaded.test);
  const auto arrays = [&](Table& table, const FitContext& fit) {
    if (fitting.prepare) fitting.prepare(table);
    return arrays_of(reader, value, table, inputs, said, options, fit, fitting.pipelines);
  };
  FitContext fit{fitting.fit, files, fitting.columns};
  if (fitting.train) {
    fit.train = [&](std::int64_t total) {
      const std::optional<Rows> all = cut.of(total);
      return all ? fitting.train(*all) : all;
    };
  }
  // Hash only data from files, which may have changed; the model file defines all other data.
  if (fitting.hashes && is_read(*format))
    fit.see = [&](const Array& array) { parts.hash = hash(array, cut, parts.hash); };
  const Window window = parts.rows.window;
  parts.rows = part_of(reader, at, split_name, cut, inputs, arrays(loaded.rows, fit));
  parts.rows.window = window;
  if (split_name.empty() && loaded.test) {
    parts.test =
        part_of(reader, at, "test", Cut{}, inputs, arrays(*loaded.test, {fitting.fit, files, fitting.columns}));
    parts.test->window = window;
  }
  return parts;
}

void form_windows(json::Reader& reader, SplitData& part, std::span<const InputDecl> inputs, bool predicts) {
  const Window& window = part.window;
  if (window.length == 0 || part.rows == 0) return;
  const std::int64_t needed = window.length + (predicts ? 0 : window.target), hop = predicts ? 1 : window.hop;
  if (part.rows > kMaxWindowedRows)
    reader.report(
        window.place, "data.window",
        fmt::format("'{}' has {} rows; windows reach over at most {}", part.name, part.rows, kMaxWindowedRows),
        "\"range\" takes some of them");
  if (part.rows < needed) {
    reader.report(
        window.place, "data.window",
        predicts
            ? fmt::format("there are {} rows, and a prediction needs the {} rows before it", part.rows, window.length)
            : fmt::format("'{}' has {} rows, and a window with its target takes {}", part.name, part.rows, needed));
    part.rows = 0;
    return;
  }
  part.rows = (part.rows - needed) / hop + 1;
  for (std::size_t i = 0; i < part.columns.size(); ++i) {
    Column& column = part.columns[i];
    column.hop = hop;
    column.samples = part.rows;
    if (inputs[i].is_target)
      column.first = window.length - 1 + window.target;
    else
      column.length = window.length;
  }
}

}  // namespace graphrun::data
