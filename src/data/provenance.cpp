#include "data/provenance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <limits>

#include "base/json_reader.h"
#include "base/json_text.h"

namespace graphrun::data {
namespace {

constexpr std::int64_t kMaxCount = std::numeric_limits<std::int64_t>::max();

json::Value as_json(const Provenance::SplitRecord& split) {
  json::Value fractions = json::make_array();
  for (const double fraction : split.fractions) fractions.items.push_back(json::make(fraction));
  json::Value object = json::make_object();
  if (split.folds == 0) json::add(object, "fractions", std::move(fractions));
  if (split.folds > 0) json::add(object, "folds", json::make(split.folds));
  if (split.folds > 0) json::add(object, "fold", json::make(split.fold));
  if (!split.stratify.empty()) json::add(object, "stratify", json::make(split.stratify));
  if (!split.by.empty()) json::add(object, "by", json::make(split.by));
  json::add(object, "seed", json::make(static_cast<std::int64_t>(split.seed)));
  json::add(object, "rows", json::make(split.rows));
  json::add(object, "hash", json::make(fmt::format("{:016x}", split.hash)));
  return object;
}

// `seed`: seed of the weights, used if the split records none.
Provenance::SplitRecord read_split_record(json::Reader& reader, const json::Ref& at, std::uint64_t seed) {
  Provenance::SplitRecord split;
  json::ObjectReader object(reader, at);
  split.folds = object.integer("folds", 0, kMaxCount).value_or(0);
  split.fold = object.integer("fold", 0, kMaxCount).value_or(0);
  if (const auto fractions = split.folds > 0 ? object.get("fractions") : object.require("fractions")) {
    split.fractions = reader.numbers(*fractions).value_or(std::vector<double>());
  }
  split.stratify = object.string("stratify").value_or("");
  split.by = object.string("by").value_or("");
  split.seed =
      static_cast<std::uint64_t>(object.integer("seed", 0, kMaxCount).value_or(static_cast<std::int64_t>(seed)));
  split.rows = object.integer("rows", 0, kMaxCount).value_or(0);
  const std::string hash = object.string("hash").value_or("");
  std::from_chars(hash.data(), hash.data() + hash.size(), split.hash, 16);
  object.finish();
  return split;
}

using Lists = std::map<std::string, std::vector<std::string>>;

json::Value as_json(const Lists& lists) {
  json::Value object = json::make_object();
  for (const auto& [key, names] : lists) json::add(object, key, json::make_list(names));
  return object;
}

Lists read_lists(json::Reader& reader, const json::Ref& at) {
  Lists lists;
  if (!json::ObjectReader(reader, at).is_object()) return lists;
  for (const json::Member& member : at.value->members) {
    const json::Ref list = at.member(member);
    std::vector<std::string>& names = lists[member.key];
    for (std::size_t i = 0; i < list.value->items.size(); ++i)
      names.push_back(reader.string(list.item(i)).value_or(""));
  }
  return lists;
}

}  // namespace

std::string text(const Provenance& provenance) {
  json::Value object = json::make_object({{"seed", json::make(static_cast<std::int64_t>(provenance.seed))},
                                          {"samples", json::make(provenance.samples)},
                                          {"split", provenance.split ? as_json(*provenance.split) : json::make_null()},
                                          {"columns", as_json(provenance.columns)}});
  if (!provenance.categories.empty()) json::add(object, "categories", as_json(provenance.categories));
  json::Value words = json::make_object();
  for (const auto& [column, word] : provenance.words) json::add(words, column, json::make(word));
  if (!provenance.words.empty()) json::add(object, "words", std::move(words));
  return json::line(object);
}

Provenance read_provenance(const std::string& file, const std::string& text) {
  const json::Document document = json::parse(file, text);
  json::Reader reader(document);
  json::ObjectReader object(reader, reader.root());
  Provenance provenance;
  provenance.seed = static_cast<std::uint64_t>(object.integer("seed", 0, kMaxCount).value_or(0));
  provenance.samples = object.integer("samples", 0, kMaxCount).value_or(0);
  if (const auto split = object.get("split"); split && split->value->kind != json::Kind::null) {
    provenance.split = read_split_record(reader, *split, provenance.seed);
  }
  if (const auto columns = object.get("columns")) provenance.columns = read_lists(reader, *columns);
  if (const auto lists = object.get("categories")) provenance.categories = read_lists(reader, *lists);
  if (const auto words = object.get("words"); words && json::ObjectReader(reader, *words).is_object()) {
    for (const json::Member& member : words->value->members)
      provenance.words[member.key] = reader.string(words->member(member)).value_or("");
  }
  object.finish();
  reader.throw_if_failed();
  return provenance;
}

namespace {

std::string described(const Provenance::SplitRecord& record) {
  std::string text = record.folds > 0 ? fmt::format("fold {} of {}", record.fold, record.folds)
                                      : fmt::format("the split [{}]", fmt::join(record.fractions, ", "));
  if (!record.by.empty()) text += fmt::format(" by '{}'", record.by);
  return record.stratify.empty() ? text : text + fmt::format(" stratified by '{}'", record.stratify);
}

}  // namespace

std::string difference(const Provenance& now, const Provenance& other) {
  if (!now.split || other.split == now.split) return {};
  if (!other.split) return "the weights were trained without a split";
  const Provenance::SplitRecord &mine = *now.split, &theirs = *other.split;
  if (described(mine) != described(theirs))
    return fmt::format("the weights were trained with {}, here it is {}", described(theirs), described(mine));
  if (mine.seed != theirs.seed) {
    return fmt::format("the weights were trained with the split of seed {}, here it is that of seed {}", theirs.seed,
                       mine.seed);
  }
  if (mine.rows != theirs.rows) {
    return fmt::format("the source had {} rows when the weights were trained, now it has {}", theirs.rows, mine.rows);
  }
  return "the rows of the source are not those that the weights were trained with, or are in another order";
}

}  // namespace graphrun::data
