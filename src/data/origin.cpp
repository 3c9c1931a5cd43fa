#include "data/origin.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <limits>

#include "base/json_reader.h"
#include "base/json_text.h"

namespace graphrun::data {
namespace {

constexpr std::int64_t kMostCount = std::numeric_limits<std::int64_t>::max();

json::Value as_json(const Origin::Division& split) {
  json::Value fractions = json::make_array();
  for (const double fraction : split.fractions) fractions.items.push_back(json::make(fraction));
  return json::make_object({{"fractions", std::move(fractions)},
                            {"rows", json::make(split.rows)},
                            {"hash", json::make(fmt::format("{:016x}", split.hash))}});
}

Origin::Division read_division(json::Reader& reader, const json::Place& at) {
  Origin::Division split;
  json::ObjectReader object(reader, at);
  if (const auto fractions = object.require("fractions")) {
    split.fractions = reader.numbers(*fractions).value_or(std::vector<double>());
  }
  split.rows = object.integer("rows", 0, kMostCount).value_or(0);
  const std::string hash = object.string("hash").value_or("");
  std::from_chars(hash.data(), hash.data() + hash.size(), split.hash, 16);
  object.finish();
  return split;
}

}  // namespace

std::string text(const Origin& origin) {
  json::Value columns = json::make_object();
  for (const auto& [input, names] : origin.columns) json::add(columns, input, json::make_list(names));
  return json::line(json::make_object({{"seed", json::make(static_cast<std::int64_t>(origin.seed))},
                                       {"samples", json::make(origin.samples)},
                                       {"split", origin.split ? as_json(*origin.split) : json::make_null()},
                                       {"columns", std::move(columns)}}));
}

Origin read_origin(const std::string& file, const std::string& text) {
  const json::Document document = json::parse(file, text);
  json::Reader reader(document);
  json::ObjectReader object(reader, reader.root());
  Origin origin;
  origin.seed = static_cast<std::uint64_t>(object.integer("seed", 0, kMostCount).value_or(0));
  origin.samples = object.integer("samples", 0, kMostCount).value_or(0);
  if (const auto split = object.get("split"); split && split->value->kind != json::Kind::null) {
    origin.split = read_division(reader, *split);
  }
  if (const auto columns = object.get("columns"); columns && json::ObjectReader(reader, *columns).is_object()) {
    for (const json::Member& member : columns->value->members) {
      const json::Place list = columns->member(member);
      std::vector<std::string>& names = origin.columns[member.key];
      for (std::size_t i = 0; i < list.value->items.size(); ++i)
        names.push_back(reader.string(list.item(i)).value_or(""));
    }
  }
  object.finish();
  reader.throw_if_failed();
  return origin;
}

std::string difference(const Origin& now, const Origin& other) {
  if (!now.split || (other.split == now.split && other.seed == now.seed)) return {};
  if (!other.split) return "the weights were trained without a split";
  const Origin::Division &mine = *now.split, &theirs = *other.split;
  if (mine.fractions != theirs.fractions) {
    return fmt::format("the weights were trained with the split [{}], here it is [{}]",
                       fmt::join(theirs.fractions, ", "), fmt::join(mine.fractions, ", "));
  }
  if (now.seed != other.seed) {
    return fmt::format("the weights were trained with the split of seed {}, here it is that of seed {}", other.seed,
                       now.seed);
  }
  if (mine.rows != theirs.rows) {
    return fmt::format("the source had {} rows when the weights were trained, now it has {}", theirs.rows, mine.rows);
  }
  return "the rows of the source are not those that the weights were trained with, or are in another order";
}

}  // namespace graphrun::data
