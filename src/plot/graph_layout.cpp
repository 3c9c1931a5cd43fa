// graph_layout.cpp: layered layout of Sugiyama, Tagawa and Toda (1981): layers by longest path, order in each layer by
// barycentres, coordinates by least squares. A long edge has a dummy node in each layer that it crosses.
#include "plot/graph_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>
#include <utility>

#include "graphrun/error.h"

namespace graphrun::plot {
namespace {

constexpr double kBoxGap = 26, kLineGap = 14, kMinRowGap = 34, kMaxRowGap = 84, kPortGap = 16;
constexpr int kOrderSweeps = 12, kPlaceSweeps = 24;

// A box or, from index count_ on, a dummy node shared by the edges of one box.
struct Item {
  std::size_t row = 0;
  double width = 0, height = 0, x = 0;    // x: centre
  std::vector<std::size_t> above, below;  // neighbours in the adjacent rows
};

class Layered {
 public:
  Layered(const std::vector<BoxSize>& boxes, const std::vector<GraphEdge>& edges)
      : edges_(edges), count_(boxes.size()), items_(boxes.size()) {
    for (std::size_t i = 0; i < count_; ++i) {
      items_[i].width = boxes[i].width;
      items_[i].height = boxes[i].height;
    }
  }

  GraphLayout run() {
    choose_rows();
    add_passages();
    fill_rows();
    reduce_crossings();
    choose_places();
    return layout();
  }

 private:
  bool is_box(std::size_t item) const { return item < count_; }

  // Longest path to each box; a box without incoming edges is placed one row above its nearest successor.
  void choose_rows() {
    std::vector<std::size_t> nearest(count_, std::numeric_limits<std::size_t>::max());
    std::vector<bool> is_led_to(count_, false);
    std::vector<std::vector<std::size_t>> from(count_);
    for (const GraphEdge& edge : edges_) {
      if (edge.from >= edge.to || edge.to >= count_) throw std::logic_error("lay_out: an edge leads to no later box");
      from[edge.to].push_back(edge.from);
    }
    for (std::size_t i = 0; i < count_; ++i) {
      for (const std::size_t source : from[i]) items_[i].row = std::max(items_[i].row, items_[source].row + 1);
      is_led_to[i] = !from[i].empty();
    }
    for (const GraphEdge& edge : edges_) nearest[edge.from] = std::min(nearest[edge.from], items_[edge.to].row);
    for (std::size_t i = 0; i < count_; ++i)
      if (!is_led_to[i] && nearest[i] <= count_) items_[i].row = nearest[i] - 1;
  }

  // Bundles the edges of a box: they share dummy nodes as far as they can.
  void add_passages() {
    std::vector<std::size_t> last(count_);
    for (std::size_t i = 0; i < count_; ++i) last[i] = items_[i].row;
    for (const GraphEdge& edge : edges_) last[edge.from] = std::max(last[edge.from], items_[edge.to].row - 1);
    std::size_t places = count_;
    for (std::size_t i = 0; i < count_; ++i) places += last[i] - items_[i].row;
    if (places > kMaxPlaces)
      throw Error(ErrorKind::input, "plot.graph",
                  fmt::format("a graph of {} boxes whose edges pass {} rows is too large for a drawing", count_,
                              places - count_),
                  fmt::format("both together may be {}", kMaxPlaces));
    items_.reserve(places);
    passages_.resize(count_);
    for (std::size_t i = 0; i < count_; ++i) {
      std::size_t above = i;
      for (std::size_t row = items_[i].row + 1; row <= last[i]; ++row) {
        items_.push_back({row, 2, 0, 0, {}, {}});
        join(above, items_.size() - 1);
        above = items_.size() - 1;
        passages_[i].push_back(above);
      }
    }
    std::set<std::pair<std::size_t, std::size_t>> joined;
    for (const GraphEdge& edge : edges_)
      if (joined.emplace(edge.from, edge.to).second) join(above_end(edge), edge.to);
  }
  void join(std::size_t above, std::size_t below) {
    items_[above].below.push_back(below);
    items_[below].above.push_back(above);
  }
  // Upper end of the edge's last segment.
  std::size_t above_end(const GraphEdge& edge) const {
    const std::size_t passed = items_[edge.to].row - items_[edge.from].row - 1;
    return passed == 0 ? edge.from : passages_[edge.from][passed - 1];
  }

  // Initial order: by box index, each dummy node next to its box. Boxes with incoming edges come first, so that a chain
  // stays in its column and other inputs join from the right.
  void fill_rows() {
    for (const bool is_led_to : {true, false}) {
      for (std::size_t i = 0; i < count_; ++i) {
        if (items_[i].above.empty() == is_led_to) continue;
        put(i);
        for (const std::size_t passage : passages_[i]) put(passage);
      }
    }
    place_.resize(items_.size());
    note_places();
  }
  void put(std::size_t item) {
    if (rows_.size() <= items_[item].row) rows_.resize(items_[item].row + 1);
    rows_[items_[item].row].push_back(item);
  }
  void note_places() {
    for (const auto& row : rows_)
      for (std::size_t i = 0; i < row.size(); ++i) place_[row[i]] = i;
  }

  void reduce_crossings() {
    auto best = rows_;
    std::uint64_t fewest = crossings();
    for (int sweep = 0; sweep < kOrderSweeps && fewest > 0; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (std::size_t i = 1; i < rows_.size(); ++i) order(rows_[down ? i : rows_.size() - 1 - i], down);
      const std::uint64_t now = crossings();
      if (now >= fewest) continue;
      fewest = now;
      best = rows_;
    }
    rows_ = std::move(best);
    note_places();
  }

  // Sorts by the mean position of the neighbours in the fixed row; items without neighbours keep their position.
  void order(std::vector<std::size_t>& row, bool by_above) {
    std::vector<std::pair<double, std::size_t>> moved;
    const auto neighbours = [&](std::size_t item) -> const std::vector<std::size_t>& {
      return by_above ? items_[item].above : items_[item].below;
    };
    for (const std::size_t item : row) {
      if (neighbours(item).empty()) continue;
      double sum = 0;
      for (const std::size_t other : neighbours(item)) sum += static_cast<double>(place_[other]);
      moved.emplace_back(sum / static_cast<double>(neighbours(item).size()), item);
    }
    std::ranges::stable_sort(moved, {}, &std::pair<double, std::size_t>::first);
    auto next = moved.begin();
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (!neighbours(row[i]).empty()) row[i] = (next++)->second;
      place_[row[i]] = i;
    }
  }

  // Number of edge crossings: inversions among the lower ends for each pair of adjacent rows, sorted by upper ends.
  std::uint64_t crossings() const {
    std::uint64_t count = 0;
    for (std::size_t r = 0; r + 1 < rows_.size(); ++r) {
      std::vector<std::uint64_t> tree(rows_[r + 1].size() + 1);  // Fenwick tree: prefix counts of lower ends
      std::uint64_t ends = 0;
      for (const std::size_t item : rows_[r]) {
        std::vector<std::size_t> lower;
        for (const std::size_t below : items_[item].below) lower.push_back(place_[below]);
        std::ranges::sort(lower);
        for (const std::size_t at : lower) {
          std::uint64_t before = 0;
          for (std::size_t k = at + 1; k > 0; k &= k - 1) before += tree[k];
          count += ends - before;
        }
        for (const std::size_t at : lower)
          for (std::size_t k = at + 1; k < tree.size(); k += k & (~k + 1)) ++tree[k];
        ends += lower.size();
      }
    }
    return count;
  }

  double distance(std::size_t left, std::size_t right) const {
    return (items_[left].width + items_[right].width) / 2 + (is_box(left) && is_box(right) ? kBoxGap : kLineGap);
  }

  void choose_places() {
    for (const auto& row : rows_) {
      for (std::size_t i = 1; i < row.size(); ++i)
        items_[row[i]].x = items_[row[i - 1]].x + distance(row[i - 1], row[i]);
    }
    for (int sweep = 0; sweep < kPlaceSweeps; ++sweep) {
      const bool down = sweep % 2 == 0, both = sweep >= kPlaceSweeps / 2;
      for (std::size_t i = 0; i < rows_.size(); ++i) place(rows_[down ? i : rows_.size() - 1 - i], down, both);
    }
  }

  // Moves items as close to the mean of their neighbours as order and minimum distances allow: isotonic regression
  // (least squares) with the pool-adjacent-violators algorithm.
  void place(const std::vector<std::size_t>& row, bool by_above, bool by_both) {
    struct Pool {
      double sum, weight;
      std::size_t items;
      double mean() const { return sum / weight; }
    };
    std::vector<Pool> pools;
    std::vector<double> offsets;
    for (std::size_t i = 0; i < row.size(); ++i) {
      offsets.push_back(i == 0 ? 0 : offsets.back() + distance(row[i - 1], row[i]));
      double sum = 0, weight = 0;
      const auto add = [&](const std::vector<std::size_t>& others) {
        for (const std::size_t other : others) {
          const double pull = is_box(row[i]) && is_box(other) ? 1 : is_box(row[i]) || is_box(other) ? 2 : 8;
          sum += pull * items_[other].x;
          weight += pull;
        }
      };
      if (by_above || by_both) add(items_[row[i]].above);
      if (!by_above || by_both) add(items_[row[i]].below);
      if (weight == 0) sum = 0.01 * items_[row[i]].x, weight = 0.01;
      pools.push_back({sum - weight * offsets.back(), weight, 1});
      while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
        const Pool last = pools.back();
        pools.pop_back();
        pools.back() = {pools.back().sum + last.sum, pools.back().weight + last.weight,
                        pools.back().items + last.items};
      }
    }
    std::size_t i = 0;
    for (const Pool& pool : pools)
      for (std::size_t k = 0; k < pool.items; ++k, ++i) items_[row[i]].x = pool.mean() + offsets[i];
  }

  GraphLayout layout() {
    GraphLayout made;
    double left = std::numeric_limits<double>::max(), right = 0;
    for (const Item& item : items_) left = std::min(left, item.x - item.width / 2);
    for (Item& item : items_) {
      item.x -= left;
      right = std::max(right, item.x + item.width / 2);
    }
    made.width = right;
    std::vector<double> tops, bottoms;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      double height = 0, farthest = 0;
      for (const std::size_t item : rows_[r]) {
        height = std::max(height, items_[item].height);
        for (const std::size_t above : items_[item].above)
          farthest = std::max(farthest, std::abs(items_[above].x - items_[item].x));
      }
      tops.push_back(r == 0 ? 0 : bottoms.back() + std::min(kMaxRowGap, kMinRowGap + 0.08 * farthest));
      bottoms.push_back(tops.back() + height);
    }
    made.height = bottoms.empty() ? 0 : bottoms.back();
    for (std::size_t i = 0; i < count_; ++i) {
      const Item& box = items_[i];
      made.corners.push_back({box.x - box.width / 2, (tops[box.row] + bottoms[box.row] - box.height) / 2});
    }
    for (const GraphEdge& edge : edges_) made.lines.push_back(line(edge, made, tops, bottoms));
    return made;
  }

  std::vector<Point> line(const GraphEdge& edge, const GraphLayout& made, const std::vector<double>& tops,
                          const std::vector<double>& bottoms) const {
    const Item &from = items_[edge.from], &to = items_[edge.to];
    const std::size_t passed = to.row - from.row - 1;
    const double start = port(edge.from, from.below, passed == 0 ? edge.to : passages_[edge.from][0]),
                 end = port(edge.to, to.above, above_end(edge));
    std::vector<Point> points = {{start, made.corners[edge.from].y + from.height}, {start, bottoms[from.row]}};
    for (std::size_t i = 0; i < passed; ++i) {
      const Item& passage = items_[passages_[edge.from][i]];
      points.push_back({passage.x, tops[passage.row]});
      points.push_back({passage.x, bottoms[passage.row]});
    }
    points.push_back({end, tops[to.row]});
    points.push_back({end, made.corners[edge.to].y});
    return points;
  }

  // Horizontal position where an edge meets the box: ports are spread in the order of the neighbours.
  double port(std::size_t box, const std::vector<std::size_t>& neighbours, std::size_t neighbour) const {
    const auto before =
        std::ranges::count_if(neighbours, [&](std::size_t other) { return place_[other] < place_[neighbour]; });
    const auto count = static_cast<double>(neighbours.size());
    const double gap = std::min(kPortGap, 0.8 * items_[box].width / count);
    return items_[box].x + (static_cast<double>(before) - (count - 1) / 2) * gap;
  }

  const std::vector<GraphEdge>& edges_;
  std::size_t count_;  // number of boxes
  std::vector<Item> items_;
  std::vector<std::vector<std::size_t>> passages_;  // dummy nodes of each box, one per crossed row
  std::vector<std::vector<std::size_t>> rows_;
  std::vector<std::size_t> place_;  // position of each item within its row
};

}  // namespace

GraphLayout lay_out(const std::vector<BoxSize>& boxes, const std::vector<GraphEdge>& edges) {
  return Layered(boxes, edges).run();
}

}  // namespace graphrun::plot
