// The source "random": columns of random numbers, each from the Philox stream (seed, column name). A new column does
// not change others, and more rows do not change the first ones.
#include <fmt/format.h>

#include <cmath>

#include "base/input_limit.h"
#include "base/philox.h"
#include "data/sources/sources.h"
#include "graphrun/error.h"

namespace graphrun::data {

std::span<const Doc> distribution_docs() {
  static constexpr Doc docs[] = {
      {"normal", "f32 numbers of the normal distribution", "the standard deviation, or [mean, standard deviation]"},
      {"uniform", "f32 numbers from low to high, high not reached", "[low, high]"},
      {"integers", "i32 numbers from low to high, high not reached", "[low, high]"},
      {"bernoulli", "1 with that probability, else 0", "a probability"},
  };
  return docs;
}

namespace {

enum class Kind { normal, uniform, integers, bernoulli };  // in table order

struct RandomColumn {
  Kind kind = Kind::normal;
  double a = 0, b = 1;  // mean and standard deviation; low and high; the probability
  Shape shape;          // rows first
};

Array draw(const RandomColumn& column, const Stream& stream) {
  const auto count = static_cast<std::size_t>(column.shape.elements());
  const std::uint64_t width = column.kind == Kind::bernoulli ? 1 : 4;
  require_within_input_limit(saturating_product(count, width), fmt::format("a column of {} random numbers", count));
  Array array;
  array.shape = column.shape;
  // Element i uses word i of the stream.
  const auto draw_words = [&]<class T>(std::vector<T> values, auto value_of) {
    for (std::size_t i = 0; i < count; i += 4) {
      const std::array<std::uint32_t, 4> words = stream.block(0, i / 4);
      for (std::size_t k = 0; k < 4 && i + k < count; ++k) values[i + k] = value_of(std::uint64_t{words[k]});
    }
    array.values = std::move(values);
  };
  switch (column.kind) {
    case Kind::normal:
    case Kind::uniform: {
      std::vector<float> values(count);
      (column.kind == Kind::normal ? fill_normal : fill_uniform)(stream, 0, column.a, column.b, values);
      array.values = std::move(values);
      break;
    }
    case Kind::integers: {
      const auto low = static_cast<std::int64_t>(column.a);
      const auto range = static_cast<std::uint64_t>(static_cast<std::int64_t>(column.b) - low);
      draw_words(std::vector<std::int32_t>(count), [=](std::uint64_t word) {
        return static_cast<std::int32_t>(low + static_cast<std::int64_t>(word * range >> 32));
      });
      break;
    }
    case Kind::bernoulli: {
      const auto threshold = static_cast<std::uint64_t>(std::llround(column.a * 0x1p32));
      draw_words(std::vector<std::uint8_t>(count),
                 [=](std::uint64_t word) { return static_cast<std::uint8_t>(word < threshold); });
      break;
    }
  }
  return array;
}

// Reads an ordered pair of numbers, or a single number as the second.
std::optional<std::pair<double, double>> read_pair(json::Reader& reader, const json::Ref& at, bool one_is_enough) {
  if (one_is_enough && at.value->is_number()) return std::pair(0.0, at.value->real);
  const std::optional<std::vector<double>> pair = reader.numbers(at);
  if (!pair) return std::nullopt;
  if (pair->size() == 2) return std::pair((*pair)[0], (*pair)[1]);
  reader.report(at, "data.random", fmt::format("expected two numbers, got {}", pair->size()));
  return std::nullopt;
}

// Reads the distribution's numbers from the value of its key.
void read_numbers(json::Reader& reader, const json::Ref& at, RandomColumn& column) {
  if (column.kind == Kind::bernoulli) {
    column.a = reader.number(at).value_or(0);
    if (!(column.a >= 0 && column.a <= 1))
      reader.report(at, "data.random", fmt::format("a probability is from 0 to 1, got {}", column.a));
    return;
  }
  const std::optional<std::pair<double, double>> pair = read_pair(reader, at, column.kind == Kind::normal);
  if (!pair) return;
  std::tie(column.a, column.b) = *pair;
  constexpr double kMax = 0x1p31;
  const auto is_int = [](double v) { return v == std::floor(v) && v >= -kMax && v <= kMax; };
  if (column.kind == Kind::normal && column.b < 0)
    reader.report(at, "data.random", fmt::format("a standard deviation must be >= 0, got {}", column.b));
  else if (column.kind != Kind::normal && !(column.a < column.b))
    reader.report(at, "data.random",
                  fmt::format("expected [low, high] with low < high, got [{}, {}]", column.a, column.b));
  else if (column.kind == Kind::integers && !(is_int(column.a) && is_int(column.b)))
    reader.report(at, "data.random", fmt::format("expected 32-bit integers, got [{}, {}]", column.a, column.b));
}

std::optional<RandomColumn> read_column(json::Reader& reader, const json::Ref& at, std::int64_t rows) {
  json::ObjectReader object(reader, at);
  if (!object.is_object()) return std::nullopt;
  const std::size_t before = reader.errors();
  RandomColumn column;
  column.shape.push_back(rows);
  if (const std::optional<json::Ref> shape = object.get("shape")) {
    if (shape->value->kind != json::Kind::array || shape->value->items.size() >= kMaxRank)
      reader.report(*shape, "data.random", "the shape of a row is a list of extents", "for instance [8]");
    else
      for (std::size_t i = 0; i < shape->value->items.size(); ++i)
        column.shape.push_back(reader.integer(shape->item(i), 1, kMaxRows).value_or(1));
  }
  std::int64_t elements = 1;
  for (const std::int64_t extent : column.shape.dims()) {
    if (elements > kMaxValues / extent) {
      reader.report(at, "data.random", fmt::format("more than {} numbers", kMaxValues));
      break;
    }
    elements *= extent;
  }
  int found = 0;
  for (std::size_t i = 0; i < distribution_docs().size(); ++i) {
    const std::optional<json::Ref> numbers = object.get(distribution_docs()[i].name);
    if (!numbers) continue;
    ++found;
    column.kind = static_cast<Kind>(i);
    read_numbers(reader, *numbers, column);
  }
  object.finish();
  if (found != 1 && reader.errors() == before)
    reader.report(at, "data.random",
                  fmt::format("expected one of \"{}\"", fmt::join(names_of(distribution_docs()), "\", \"")),
                  "for instance {\"normal\": 1}");
  if (reader.errors() != before) return std::nullopt;
  return column;
}

}  // namespace

Loaded read_random(SourceContext& context) {
  Loaded loaded;
  loaded.rows.keyed = false;
  json::ObjectReader object(context.reader, context.value);
  if (!object.is_object()) return loaded;
  const bool has_rows = object.require("rows").has_value();
  const std::optional<std::int64_t> rows = object.integer("rows", 1, kMaxRows);
  const std::optional<std::int64_t> seed = object.integer("seed", 0, std::numeric_limits<std::int64_t>::max());
  const std::optional<json::Ref> columns = object.require("columns");
  object.finish();
  if (!columns) return loaded;
  const json::ObjectReader named(context.reader, *columns);
  if (!named.is_object()) return loaded;
  if (columns->value->members.empty())
    context.reader.report(*columns, "data.random", "a table needs a column", "for instance {\"a\": {\"normal\": 1}}");
  for (const json::Member& member : columns->value->members) {
    const json::Ref place = columns->member(member);
    const std::optional<RandomColumn> column = read_column(context.reader, place, rows.value_or(1));
    if (!column || !has_rows || !rows) continue;
    const Stream stream = Stream::named(seed ? static_cast<std::uint64_t>(*seed) : context.seed, member.key);
    loaded.rows.arrays.push_back(
        {member.key, place, [column = *column, stream] { return std::make_shared<const Array>(draw(column, stream)); },
         column->shape});
  }
  return loaded;
}

}  // namespace graphrun::data
