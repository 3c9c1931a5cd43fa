// The source "grid": all combinations of points on axes.
#include <fmt/format.h>

#include "base/input_limit.h"
#include "data/sources/sources.h"

namespace graphrun::data {
namespace {

struct Axis {
  double first = 0, last = 0;
  std::int64_t points = 1;

  // The last point is exactly `last`, without rounding errors.
  double point(std::int64_t i) const {
    return i + 1 == points ? last : first + (last - first) * (static_cast<double>(i) / static_cast<double>(points - 1));
  }
};

std::optional<Axis> read_axis(json::Reader& reader, const json::Ref& at) {
  if (at.value->kind != json::Kind::array || at.value->items.size() != 3) {
    reader.report(at, "data.grid", "an axis is [first, last, points]", "for instance [-3, 3, 200]");
    return std::nullopt;
  }
  const std::optional<double> first = reader.number(at.item(0)), last = reader.number(at.item(1));
  const std::optional<std::int64_t> points = reader.integer(at.item(2), 1, kMaxRows);
  if (!first || !last || !points) return std::nullopt;
  if (*points == 1 && *first != *last) {
    reader.report(at, "data.grid", fmt::format("one point cannot be both {} and {}", *first, *last));
    return std::nullopt;
  }
  return Axis{*first, *last, *points};
}

}  // namespace

Loaded read_grid(SourceContext& context) {
  Loaded loaded;
  loaded.rows.keyed = false;
  json::ObjectReader object(context.reader, context.value);
  if (!object.is_object()) return loaded;
  if (context.value.value->members.empty()) {
    context.reader.report(context.value, "data.grid", "a grid needs an axis", "for instance {\"u\": [-3, 3, 200]}");
    return loaded;
  }
  std::vector<Axis> axes;
  std::int64_t rows = 1;
  for (const json::Member& member : context.value.value->members) {
    const std::optional<Axis> axis = read_axis(context.reader, context.value.member(member));
    if (!axis) continue;
    if (rows > kMaxRows / axis->points) {
      context.reader.report(context.value, "data.grid", fmt::format("the grid has more than {} points", kMaxRows));
      return loaded;
    }
    rows *= axis->points;
    axes.push_back(*axis);
  }
  if (axes.size() != context.value.value->members.size()) return loaded;
  std::int64_t repeats = rows;  // consecutive rows with the same point of the axis
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Axis axis = axes[i];
    repeats /= axis.points;
    const auto read = [axis, rows, repeats] {
      require_within_input_limit(static_cast<std::uint64_t>(rows) * sizeof(double),
                                 fmt::format("a column of {} points", rows));
      std::vector<double> values(static_cast<std::size_t>(rows));
      for (std::int64_t r = 0; r < rows; ++r)
        values[static_cast<std::size_t>(r)] = axis.point(r / repeats % axis.points);
      return std::make_shared<const Array>(Array{Shape{rows}, std::move(values)});
    };
    const json::Member& member = context.value.value->members[i];
    loaded.rows.arrays.push_back({member.key, context.value.member(member), read, Shape{rows}});
  }
  return loaded;
}

}  // namespace graphrun::data
