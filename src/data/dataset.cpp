#include "data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "base/input_limit.h"
#include "base/philox.h"
#include "data/inputs.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

using data::Part;

// Of rows [first, first + rows): Fisher-Yates from the last row on. A word times the number of choices, over 2^32, is
// the choice: its bias is below rows / 2^32.
std::shared_ptr<const std::vector<std::int64_t>> permutation(std::int64_t first, std::int64_t rows,
                                                             std::uint64_t seed) {
  require_within_input_limit(static_cast<std::uint64_t>(rows) * sizeof(std::int64_t),
                             fmt::format("the order of {} rows", rows));
  auto order = std::make_shared<std::vector<std::int64_t>>(static_cast<std::size_t>(rows));
  std::iota(order->begin(), order->end(), first);
  const Stream stream = Stream::named(seed, "data.split");
  for (std::size_t i = order->size(); i > 1; --i) {
    const std::uint64_t word = stream.block(0, i / 4)[i % 4];
    std::swap((*order)[i - 1], (*order)[static_cast<std::size_t>(word * i >> 32)]);
  }
  return order;
}

constexpr const char* kSplits[] = {"train", "validation", "test"};

// [0.7, 0.15, 0.15] of train, validation, test; the sizes are floor, floor, rest.
class Division {
 public:
  Division(std::vector<double> fractions, const DataOptions& options)
      : fractions_(std::move(fractions)), seed_(options.seed), reads_(options.use == DataUse::values) {}

  static std::optional<Division> read(json::Reader& reader, const json::Place& at, const DataOptions& options) {
    const std::optional<std::vector<double>> fractions = reader.numbers(at);
    if (!fractions) return std::nullopt;
    const bool is_whole =
        fractions->size() == 3 &&
        std::all_of(fractions->begin(), fractions->end(), [](double f) { return f >= 0 && f <= 1; }) &&
        std::abs(std::accumulate(fractions->begin(), fractions->end(), 0.0) - 1) < 1e-9;
    if (is_whole) return Division(*fractions, options);
    reader.report(at, "data.split", "must be three fractions that add up to 1: of train, validation and test");
    return std::nullopt;
  }

  const std::vector<double>& fractions() const { return fractions_; }

  std::int64_t size(std::int64_t rows, std::size_t part) const {
    // 0.29 * 100 is a little below 29 in doubles: the floor is taken of what was meant.
    const auto share = [&](double fraction) {
      return static_cast<std::int64_t>(std::floor(fraction * static_cast<double>(rows) + 1e-6));
    };
    if (part < 2) return share(fractions_[part]);
    return std::max<std::int64_t>(0, rows - share(fractions_[0]) - share(fractions_[1]));
  }

  data::Rows rows(const data::Rows& all, std::size_t part) {
    if (reads_ && (!order_ || order_->size() != static_cast<std::size_t>(all.count) || first_ != all.begin)) {
      order_ = permutation(all.begin, all.count, seed_);
      first_ = all.begin;
    }
    data::Rows rows{reads_ ? 0 : all.begin, size(all.count, part), order_};
    for (std::size_t i = 0; i < part; ++i) rows.begin += size(all.count, i);
    return rows;
  }

  std::vector<Part> parts(json::Reader& reader, const json::Place& at, const Part& all) {
    std::vector<Part> parts;
    for (std::size_t i = 0; i < std::size(kSplits) && all.rows > 0; ++i) {
      const std::int64_t rows = size(all.rows, i);
      if (rows == 0 && (i == 0 || fractions_[i] > 1e-9))
        reader.report(at, "data.split", fmt::format("{} would get none of the {} rows", kSplits[i], all.rows));
      if (rows == 0) continue;
      Part part{kSplits[i], all.place, all.columns, rows};
      for (data::Column& column : part.columns) column.rows = this->rows(column.rows, i);
      parts.push_back(std::move(part));
    }
    return parts;
  }

 private:
  std::vector<double> fractions_;
  std::uint64_t seed_;
  bool reads_;  // otherwise rows are counted only, and have no order
  std::shared_ptr<const std::vector<std::int64_t>> order_;
  std::int64_t first_ = 0;  // that `order_` permutes
};

std::vector<Part> read_parts(json::Reader& reader, json::ObjectReader& block, std::span<const InputDecl> inputs,
                             data::Files& files, const DataOptions& options, data::Fit& fit) {
  std::vector<Part> parts;
  const auto all = [](const data::Rows& rows) { return rows; };
  const std::optional<json::Place> source = block.get("source"), split = block.get("split");
  for (const std::string name : kSplits) {
    const std::optional<json::Place> at = block.get(name);
    if (!at) continue;
    if (source) {
      reader.report(*at, "data.split", fmt::format("'{}' cannot stand beside 'source', which gives all splits", name));
      continue;
    }
    data::Fitting fitting{fit};
    if (name == "train") fitting.train = all;
    parts.push_back(data::read_source(reader, *at, name, inputs, files, options, fitting).rows);
  }
  if (!source) {
    if (split) reader.report(*split, "data.split", "'split' divides a 'source', and there is none");
    if (block.is_object() && !block.get("train"))
      reader.report(block.place(), "data.split", "missing key 'train' or 'source': there is nothing to train on");
    return parts;
  }
  std::optional<Division> division = split ? Division::read(reader, *split, options) : std::nullopt;
  data::Fitting fitting{fit, all};
  if (division) {
    fitting.train = [&](const data::Rows& rows) { return division->rows(rows, 0); };
    fitting.hashes = true;
  }
  data::Parts read = data::read_source(reader, *source, "", inputs, files, options, fitting);
  if (split) {
    if (read.test)
      reader.report(*split, "data.split", "the source has test rows of its own, so that it cannot be divided");
    if (!division) return {};
    if (options.use == DataUse::values)
      fit.origin.split = data::Origin::Division{division->fractions(), read.rows.rows, read.hash};
    return division->parts(reader, *split, read.rows);
  }
  read.rows.name = "train";
  parts.push_back(std::move(read.rows));
  if (read.test) parts.push_back(std::move(*read.test));
  return parts;
}

std::vector<data::Pipeline> read_pipelines(json::Reader& reader, const std::optional<json::Place>& at,
                                           std::span<const InputDecl> inputs) {
  std::vector<data::Pipeline> pipelines(inputs.size());
  if (!at) return pipelines;
  json::ObjectReader object(reader, *at);
  if (!object.is_object()) return pipelines;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::optional<json::Place> list = object.get(inputs[i].name);
    if (list) pipelines[i].read(reader, *list, inputs[i]);
  }
  object.finish();
  return pipelines;
}

// Numbers that come with weights, in place of fitted ones.
void adopt_fitted(json::Reader& reader, const json::Place& at, const std::vector<Standardization>& fitted,
                  std::vector<data::Pipeline>& pipelines, std::span<const InputDecl> inputs, DataSet& set) {
  std::unordered_map<std::string_view, const Standardization*> left;
  for (const Standardization& given : fitted) left.emplace(given.input, &given);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto given = left.extract(inputs[i].name);
    try {
      std::optional<Standardization> adopted = pipelines[i].adopt(given ? given.mapped() : nullptr, inputs[i]);
      if (adopted) set.standardizations.push_back(std::move(*adopted));
    } catch (const Error& error) {
      reader.report(at, error);
    }
  }
  for (const Standardization& given : fitted) {
    if (left.contains(given.input))
      reader.report(at, "weights.fitted",
                    fmt::format("the weights come with numbers for '{}', which is no input", given.input));
  }
}

// The splits as tensors or, where `has_values` is false, their sizes: then arrays may have a shape only, or not be
// there at all. A wrong shape is the same mistake in every split: an input is reported once.
void read_splits(json::Reader& reader, const std::vector<Part>& parts, std::vector<data::Pipeline>& pipelines,
                 std::span<const InputDecl> inputs, bool has_values, bool is_fitted, DataSet& set) {
  std::vector<char> is_good(inputs.size(), 1);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const data::Column* train = parts.front().rows > 0 && has_values ? &parts.front().columns[i] : nullptr;
    is_good[i] = !has_values || (train && train->array);
    if (is_fitted || !is_good[i]) continue;
    std::optional<Standardization> fitted;
    if (has_values)
      fitted = pipelines[i].fit(*train, inputs[i].name, set.warnings);
    else if (inputs[i].is_target)  // a plan sees the numbers of targets only: of metrics in original units
      fitted = pipelines[i].unfitted(inputs[i]);
    if (fitted) set.standardizations.push_back(std::move(*fitted));
  }
  for (const Part& part : parts) {
    Split split{part.name, {}, has_values ? 0 : part.rows};
    for (std::size_t i = 0; i < part.columns.size(); ++i) {
      if (!is_good[i] || !part.columns[i].array || (has_values && part.rows == 0)) continue;
      try {
        if (has_values)
          split.columns.emplace_back(inputs[i].name, pipelines[i].apply(part.columns[i], part.name, inputs[i]));
        else
          pipelines[i].check(part.columns[i], part.name, inputs[i]);
      } catch (const Error& error) {
        reader.report(part.place, error);
        is_good[i] = 0;
      }
    }
    if (has_values || part.rows > 0) set.splits.push_back(std::move(split));
  }
}

}  // namespace

DataSet read_data(json::Reader& reader, const json::Place& at, std::span<const InputDecl> inputs,
                  const DataOptions& options) {
  DataSet set;
  data::Fit fit = options.weights ? data::Fit(*options.weights) : data::Fit(options.seed);
  const std::optional<data::Origin> trained = fit.has_origin() ? std::optional(fit.origin) : std::nullopt;
  fit.origin.split.reset();  // of these data: as they are read
  if (!trained) fit.origin.seed = options.seed;
  DataOptions own = options;
  own.seed = fit.origin.seed;
  const std::size_t before = reader.errors();
  json::ObjectReader block(reader, at);
  const std::optional<json::Place> transform = block.get("transform");
  std::vector<data::Pipeline> pipelines = read_pipelines(reader, transform, inputs);
  const bool transforms_good = reader.errors() == before;
  data::Files files(options);
  const std::vector<Part> parts = read_parts(reader, block, inputs, files, own, fit);
  set.warnings = files.warnings();
  if (block.is_object()) block.finish();
  if (!transforms_good) return set;
  const bool is_fitted = fit.is_given();
  if (is_fitted)
    adopt_fitted(reader, transform.value_or(at), options.weights->standardizations, pipelines, inputs, set);
  if (options.use == DataUse::values && reader.errors() == before) {
    for (const std::string& name : fit.unused())
      reader.report(at, "weights.fitted", fmt::format("the weights come with '{}', which is not used here", name));
  }
  set.fitted = fit.numbers();
  if (options.use == DataUse::values && !parts.empty()) fit.origin.samples = parts.front().rows;
  set.origin = text(fit.origin);
  if (trained)
    set.stray = difference(fit.origin, *trained);
  else if (is_fitted && fit.origin.split)
    set.stray = "the weights do not say how the rows of their training were split";
  if (parts.empty() || parts.front().name != "train") return set;

  read_splits(reader, parts, pipelines, inputs, options.use == DataUse::values, is_fitted, set);
  set.files = files.found();
  return set;
}

}  // namespace graphrun
