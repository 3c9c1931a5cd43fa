#include "data/splits/splitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "base/input_limit.h"
#include "base/names_of.h"
#include "base/philox.h"
#include "data/csv/categories.h"
#include "data/csv/dates.h"
#include "data/sources/columns.h"
#include "graphrun/error.h"

namespace graphrun::data {
namespace {

constexpr const char* kParts[] = {"train", "validation", "test"};

// Shuffles rows [first, first + rows): Fisher-Yates from the last row. An index is word * choices / 2^32; its bias is
// below rows / 2^32.
std::vector<std::int64_t> permutation(std::int64_t first, std::int64_t rows, std::uint64_t seed) {
  require_within_input_limit(static_cast<std::uint64_t>(rows) * sizeof(std::int64_t),
                             fmt::format("the order of {} rows", rows));
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), first);
  const Stream stream = Stream::named(seed, "data.split");
  for (std::size_t i = order.size(); i > 1; --i) {
    const std::uint64_t word = stream.block(0, i / 4)[i % 4];
    std::swap(order[i - 1], order[static_cast<std::size_t>(word * i >> 32)]);
  }
  return order;
}

bool are_fractions(const std::vector<double>& fractions) {
  return (fractions.size() == 2 || fractions.size() == 3) &&
         std::all_of(fractions.begin(), fractions.end(), [](double f) { return f >= 0 && f <= 1; }) &&
         std::abs(std::accumulate(fractions.begin(), fractions.end(), 0.0) - 1) < 1e-9;
}

// Orders positions so that any slice has its share of every stratum: the row of rank r among n of its stratum sorts by
// (r + 1/2) / n.
std::vector<std::size_t> interleaved(const std::vector<std::size_t>& strata) {
  std::vector<std::size_t> sizes, ranks(strata.size());
  for (std::size_t i = 0; i < strata.size(); ++i) {
    if (strata[i] >= sizes.size()) sizes.resize(strata[i] + 1, 0);
    ranks[i] = sizes[strata[i]]++;
  }
  std::vector<std::size_t> positions(strata.size());
  std::iota(positions.begin(), positions.end(), std::size_t{0});
  const auto key = [&](std::size_t i) {
    return (static_cast<double>(ranks[i]) + 0.5) / static_cast<double>(sizes[strata[i]]);
  };
  std::stable_sort(positions.begin(), positions.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  return positions;
}

}  // namespace

std::optional<Splitter> Splitter::read(json::Reader& reader, json::ObjectReader& section,
                                       std::span<const InputDecl> inputs, const DataOptions& options,
                                       const std::optional<Provenance>& trained, bool in_order) {
  Splitter splitter;
  splitter.in_order_ = in_order;
  const std::size_t before = reader.errors();
  const std::optional<json::Ref> split = section.get("split"), folds = section.get("folds");
  splitter.stratify_ = section.get("stratify");
  splitter.by_ = section.get("split_by");
  const std::optional<json::Ref> seed = section.get("split_seed");
  splitter.inputs_ = names_of(inputs);
  splitter.reads_ = options.use == DataUse::values;
  splitter.record_.seed = options.seed;
  if (trained && trained->split) splitter.record_.seed = trained->split->seed;
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  if (seed) splitter.record_.seed = static_cast<std::uint64_t>(reader.integer(*seed, 0, kMax).value_or(0));
  if (split && folds) reader.report(*folds, "data.split", "'folds' cannot be combined with 'split'");
  if (!split && !folds) {
    for (const auto& [key, place] : {std::pair{"stratify", splitter.stratify_}, std::pair{"split_seed", seed},
                                     std::pair{"split_by", splitter.by_}}) {
      if (place) reader.report(*place, "data.split", fmt::format("'{}' needs 'split' or 'folds'", key));
    }
    return std::nullopt;
  }
  splitter.place_ = split ? *split : *folds;
  if (split) {
    const std::optional<std::vector<double>> fractions = reader.numbers(*split);
    if (fractions && !are_fractions(*fractions))
      reader.report(*split, "data.split", "must be three fractions that add up to 1: of train, validation and test",
                    "or two, of train and validation, if the source has its own test rows");
    splitter.record_.fractions = fractions.value_or(std::vector<double>());
  } else {
    json::ObjectReader object(reader, *folds);
    if (const auto k = object.require("k", "how many folds there are"))
      splitter.record_.folds = reader.integer(*k, 2, kMax).value_or(0);
    const auto fold = object.require("fold", "which of them is the test split, from 0 on");
    if (fold && splitter.record_.folds > 0)
      splitter.record_.fold = reader.integer(*fold, 0, splitter.record_.folds - 1).value_or(0);
    if (const auto own = object.get("stratify")) splitter.stratify_ = own;
    object.finish();
  }
  if (splitter.by_) splitter.record_.by = reader.string(*splitter.by_).value_or("");
  for (const auto& [key, place] :
       {std::pair{"folds", folds}, std::pair{"stratify", splitter.stratify_}, std::pair{"split_seed", seed}}) {
    if ((splitter.by_ || in_order) && place)
      reader.report(*place, "data.split",
                    fmt::format("'{}' cannot be combined with '{}', the order of time", key,
                                splitter.by_ ? "split_by" : "window"));
  }
  if (splitter.stratify_) splitter.record_.stratify = reader.string(*splitter.stratify_).value_or("");
  if (reader.errors() != before) return std::nullopt;
  return splitter;
}

Splitter Splitter::in_order_of(json::Reader& reader, const json::Ref& by) {
  Splitter splitter;
  splitter.in_order_ = true;
  splitter.by_ = splitter.place_ = by;
  splitter.record_.by = reader.string(by).value_or("");
  splitter.record_.fractions = {1, 0, 0};
  return splitter;
}

void Splitter::see(json::Reader& reader, const Table& table, const json::Ref& source) {
  if (by_) {
    const NamedArray* const column = table.find(record_.by);
    if (column == nullptr)
      return reader.report(*by_, "data.split",
                           fmt::format("there is no column '{}'; the source has {}", record_.by, listed(table.names())),
                           did_you_mean(record_.by, table.names()));
    values_ = *column;
    if (const NamedArray* seconds = table.find(fmt::format("seconds({})", record_.by))) seconds_ = *seconds;
  }
  if (!stratify_) return;
  const std::string& name = record_.stratify;
  const bool is_input = std::find(inputs_.begin(), inputs_.end(), name) != inputs_.end();
  const json::Member* said = is_input ? source.value->find(name) : nullptr;
  const json::Value* choice = said ? &said->value : nullptr;
  if (choice && choice->kind == json::Kind::array && choice->items.size() == 1) choice = &choice->items.front();
  const NamedArray* array = table.find(choice ? choice->string : name);
  if (array) {
    values_ = *array;
  } else if (choice && choice->kind == json::Kind::string &&
             choice->string.find_first_of("+-*/^(<>=") == std::string::npos) {
    return;  // the choice names a column that does not exist, which is reported there
  } else if (is_input) {
    reader.report(*stratify_, "data.split",
                  fmt::format("the input '{}' is not a single column: name the column to stratify by", name));
  } else {
    std::vector<std::string> names = table.names();
    names.insert(names.end(), inputs_.begin(), inputs_.end());
    reader.report(*stratify_, "data.split", fmt::format("there is no input and no column '{}'", name),
                  did_you_mean(name, names));
  }
}

std::int64_t Splitter::size(std::int64_t rows, std::size_t part) const {
  if (record_.folds > 0) {
    // Folds of n / k rows, with the remainder spread evenly: fold f starts at n * f / k, computed without overflow.
    const auto begin = [rows, k = record_.folds](std::int64_t f) { return rows / k * f + rows % k * f / k; };
    const std::int64_t test = begin(record_.fold + 1) - begin(record_.fold);
    return part == 0 ? rows - test : part == 1 ? 0 : test;
  }
  // 0.29 * 100 is slightly below 29 in double precision: correct it before taking the floor.
  const auto share = [&](double fraction) {
    return static_cast<std::int64_t>(std::floor(fraction * static_cast<double>(rows) + 1e-6));
  };
  if (record_.fractions.size() == 2)
    return part > 1 ? 0 : part == 1 ? rows - size(rows, 0) : share(record_.fractions[0]);
  if (part < 2) return share(record_.fractions[part]);
  return std::max<std::int64_t>(0, rows - share(record_.fractions[0]) - share(record_.fractions[1]));
}

// Stratum of each row of `all`, numbered by first appearance.
std::vector<std::size_t> Splitter::strata(const Rows& all) const {
  std::unordered_map<std::string, std::size_t> numbers;
  std::vector<std::size_t> result;
  const auto add = [&](std::string value) {
    const std::size_t next = numbers.size();
    result.push_back(numbers.try_emplace(std::move(value), next).first->second);
  };
  const ArrayPtr array = values_->cells ? nullptr : values_->read();
  const std::int64_t width = array ? array->shape.elements() / std::max<std::int64_t>(array->rows(), 1) : 0;
  for (std::int64_t i = 0; i < all.count; ++i) {
    const std::int64_t row = all.row(i);
    if (!array) {
      add(category_of(values_->cells->text(row)));
      continue;
    }
    std::string value;
    std::visit(
        [&](const auto& values) {
          for (std::int64_t c = 0; c < width; ++c)
            value += category_of(static_cast<double>(values[static_cast<std::size_t>(row * width + c)])) + ' ';
        },
        array->values);
    add(std::move(value));
  }
  if (2 * numbers.size() > result.size())
    throw Error(ErrorKind::input, "data.split",
                fmt::format("'{}' has {} values in {} rows: parts cannot share them", record_.stratify, numbers.size(),
                            result.size()),
                "\"stratify\" is for classes");
  return result;
}

// Rows in ascending order of "split_by", equal ones in their order in the file.
std::vector<std::int64_t> Splitter::in_order_of_time(const Rows& all) {
  if (all.count == 0) return {};
  const bool are_dates = seconds_ && is_date(values_->cells->text(all.begin));
  const ArrayPtr array = (are_dates ? *seconds_ : *values_).read();
  const auto fail = [&](std::string what) {
    throw Error(ErrorKind::input, "data.split", fmt::format("\"split_by\": '{}' {}", record_.by, what),
                "it names a column of dates or numbers, such as a year");
  };
  if (!array || array->shape.rank() == 0 || array->shape.elements() != array->rows())
    fail("has several numbers in a row");
  if (array->rows() < all.begin + all.count)
    fail(fmt::format("has {} rows, and the data {}", array->rows(), all.begin + all.count));
  std::vector<double> times;
  std::visit([&](const auto& values) { times.assign(values.begin(), values.end()); }, array->values);
  std::vector<std::int64_t> order(static_cast<std::size_t>(all.count));
  std::iota(order.begin(), order.end(), all.begin);
  const auto time = [&](std::int64_t row) { return times[static_cast<std::size_t>(row)]; };
  for (const std::int64_t row : order) {
    if (std::isnan(time(row))) fail(fmt::format("is missing in row {}", row));
  }
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return time(a) < time(b); });
  for (std::size_t i = 1; in_order_ && i < order.size(); ++i) {
    if (time(order[i]) == time(order[i - 1]))
      fail(fmt::format("is the same in the rows {} and {}, which cannot both be the next row of a window", order[i - 1],
                       order[i]));
  }
  time_ = [time = std::move(times), cells = are_dates ? values_->cells : nullptr](std::int64_t row) {
    if (!cells) return fmt::format("{}", time[static_cast<std::size_t>(row)]);
    const std::string_view text = cells->text(row);
    return std::string(text.substr(0, text.find_first_of(" Tt")));  // the date without the time of day
  };
  return order;
}

void Splitter::make_order(const Rows& all) {
  first_ = all.begin;
  if (by_ && values_) {
    order_ = std::make_shared<std::vector<std::int64_t>>(in_order_of_time(all));
    return;
  }
  if (in_order_) {
    std::vector<std::int64_t> rows(static_cast<std::size_t>(all.count));
    std::iota(rows.begin(), rows.end(), all.begin);
    order_ = std::make_shared<std::vector<std::int64_t>>(std::move(rows));
    return;
  }
  const std::vector<std::int64_t> shuffled = permutation(all.begin, all.count, record_.seed);
  std::vector<std::size_t> positions(shuffled.size());
  std::iota(positions.begin(), positions.end(), std::size_t{0});
  if (values_) {
    std::vector<std::size_t> of_rows = strata(all), by_position(shuffled.size());
    for (std::size_t i = 0; i < shuffled.size(); ++i)
      by_position[i] = of_rows[static_cast<std::size_t>(shuffled[i] - all.begin)];
    positions = interleaved(by_position);
  }
  if (record_.folds > 0) {  // moves the fold to the end, where the test rows are
    const std::int64_t test = size(all.count, 2);
    const std::int64_t begin =
        all.count / record_.folds * record_.fold + all.count % record_.folds * record_.fold / record_.folds;
    std::rotate(positions.begin() + begin, positions.begin() + begin + test, positions.end());
  }
  auto order = std::make_shared<std::vector<std::int64_t>>();
  order->reserve(shuffled.size());
  auto next = positions.begin();
  for (std::size_t part = 0; part < std::size(kParts); ++part) {
    const auto end = part + 1 < std::size(kParts) ? next + size(all.count, part) : positions.end();
    std::sort(next, end);  // rows of a split keep their shuffled order
    for (; next != end; ++next) order->push_back(shuffled[*next]);
  }
  order_ = std::move(order);
}

Rows Splitter::rows(const Rows& all, std::size_t part) {
  if (reads_ && (!order_ || order_->size() != static_cast<std::size_t>(all.count) || first_ != all.begin))
    make_order(all);
  Rows rows{reads_ ? 0 : all.begin, size(all.count, part), order_};
  for (std::size_t i = 0; i < part; ++i) rows.begin += size(all.count, i);
  return rows;
}

std::vector<SplitData> Splitter::parts(json::Reader& reader, const SplitData& all) {
  std::vector<SplitData> parts;
  for (std::size_t i = 0; i < std::size(kParts) && all.rows > 0; ++i) {
    const std::int64_t rows = size(all.rows, i);
    const bool is_wanted =
        record_.folds > 0 ? i != 1 : i == 0 || (i < record_.fractions.size() && record_.fractions[i] > 1e-9);
    if (rows == 0 && is_wanted)
      reader.report(place_, "data.split", fmt::format("{} would get none of the {} rows", kParts[i], all.rows));
    if (rows == 0) continue;
    SplitData part{kParts[i], all.place, all.columns, rows, {}, {}, all.window};
    try {
      for (Column& column : part.columns) column.rows = this->rows(column.rows, i);
      const Rows* const own = part.columns.empty() || !time_ ? nullptr : &part.columns.front().rows;
      if (own) part.first = time_(own->row(0)), part.last = time_(own->row(rows - 1));
    } catch (const Error& error) {
      reader.report(by_ ? *by_ : stratify_.value_or(place_), error);
      return {};
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

Provenance::SplitRecord Splitter::provenance(std::int64_t rows, std::uint64_t hash) const {
  Provenance::SplitRecord record = record_;
  record.rows = rows;
  record.hash = hash;
  return record;
}

}  // namespace graphrun::data
