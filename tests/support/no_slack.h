// no_slack.h: packing problems known to fit without a byte of slack: a time x bytes rectangle cut into pieces, in
// random order. Contract: deterministic; the peak at every moment is the capacity.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "packing/pack.h"

namespace graphrun::test {

struct NoSlack {
  std::uint32_t times = 1000;
  std::uint64_t capacity = 1 << 20;
  std::size_t pieces = 300;       // plus a few more with pinwheels
  unsigned pinwheels_of_100 = 0;  // percentage of cuts into five pieces around a center
  std::uint64_t unit = 1;         // all sizes are multiples of it
  bool evenly = false;            // cut the largest piece next, near its middle; otherwise any piece, anywhere
};

inline std::vector<plan::Interval> cut_to_pieces(const NoSlack& how, std::uint32_t seed) {
  struct Piece {
    std::uint32_t first, end;
    std::uint64_t low, high;
  };
  std::mt19937 random(seed);
  std::vector<Piece> pieces = {{0, how.times, 0, how.capacity / how.unit}};
  const auto between = [&](auto low, auto high) {
    const auto room = high - low - 1, margin = how.evenly ? room / 3 : 0 * room;
    return static_cast<decltype(low)>(low + 1 + margin + random() % (room - 2 * margin));
  };
  const auto area = [](const Piece& p) {
    return static_cast<double>(p.end - p.first) * static_cast<double>(p.high - p.low);
  };
  const auto next = [&]() -> std::size_t {
    if (!how.evenly) return random() % pieces.size();
    const auto largest = std::max_element(pieces.begin(), pieces.end(),
                                          [&](const Piece& a, const Piece& b) { return area(a) < area(b); });
    return static_cast<std::size_t>(largest - pieces.begin());
  };
  for (int failures = 0; pieces.size() < how.pieces && failures < 100'000;) {
    const std::size_t i = next();
    const Piece p = pieces[i];
    const bool pinwheel = random() % 100 < how.pinwheels_of_100, in_time = random() % 2 == 0;
    const std::uint64_t room = pinwheel ? 3 : 2;
    const bool wide = p.end - p.first >= room, tall = p.high - p.low >= room;
    if (pinwheel ? !wide || !tall : in_time ? !wide : !tall) {
      ++failures;
      continue;
    }
    if (pinwheel) {
      const std::uint32_t x = between(p.first, p.end - 1), to_x = between(x, p.end);
      const std::uint64_t y = between(p.low, p.high - 1), to_y = between(y, p.high);
      pieces[i] = {p.first, to_x, p.low, y};
      pieces.push_back({to_x, p.end, p.low, to_y});
      pieces.push_back({x, p.end, to_y, p.high});
      pieces.push_back({p.first, x, y, p.high});
      pieces.push_back({x, to_x, y, to_y});
    } else if (in_time) {
      const std::uint32_t x = between(p.first, p.end);
      pieces[i].end = x;
      pieces.push_back({x, p.end, p.low, p.high});
    } else {
      const std::uint64_t y = between(p.low, p.high);
      pieces[i].high = y;
      pieces.push_back({p.first, p.end, y, p.high});
    }
  }
  for (std::size_t i = pieces.size(); i > 1; --i) std::swap(pieces[i - 1], pieces[random() % i]);
  std::vector<plan::Interval> intervals;
  for (const Piece& p : pieces) intervals.push_back({(p.high - p.low) * how.unit, p.first, p.end - 1});
  return intervals;
}

}  // namespace graphrun::test
