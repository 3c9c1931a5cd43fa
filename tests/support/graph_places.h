// graph_places.h: checks the invariants of a graph layout, and that an image is well-formed XML.
// Contract: each function returns the first violation, or "".
#pragma once

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "plot/graph_layout.h"

namespace graphrun::test {

// No two boxes overlap; lines begin and end at their boxes, go down, and pass through no box.
inline std::string misplaced(const std::vector<plot::BoxSize>& boxes, const std::vector<plot::GraphEdge>& edges,
                             const plot::GraphLayout& layout) {
  constexpr double kRounding = 1e-6;
  if (layout.corners.size() != boxes.size() || layout.lines.size() != edges.size()) return "something has no place";
  const auto box = [&](std::size_t i) {
    struct Sides {
      double left, right, top, bottom;
    };
    const plot::Point at = layout.corners[i];
    return Sides{at.x, at.x + boxes[i].width, at.y, at.y + boxes[i].height};
  };
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const auto a = box(i);
    if (!(a.left >= -kRounding && a.right <= layout.width + kRounding && a.top >= 0 &&
          a.bottom <= layout.height + kRounding))
      return "box " + std::to_string(i) + " is outside";
    for (std::size_t k = 0; k < i; ++k) {
      const auto b = box(k);
      if (a.right > b.left + kRounding && b.right > a.left + kRounding && a.bottom > b.top + kRounding &&
          b.bottom > a.top + kRounding)
        return "boxes " + std::to_string(k) + " and " + std::to_string(i) + " overlap";
    }
  }
  for (std::size_t e = 0; e < edges.size(); ++e) {
    const std::string name = "edge " + std::to_string(edges[e].from) + " to " + std::to_string(edges[e].to);
    const std::vector<plot::Point>& line = layout.lines[e];
    const auto from = box(edges[e].from), to = box(edges[e].to);
    const plot::Point first = line.front(), last = line.back();
    if (std::abs(first.y - from.bottom) > kRounding || first.x < from.left || first.x > from.right)
      return name + " begins elsewhere";
    if (std::abs(last.y - to.top) > kRounding || last.x < to.left || last.x > to.right) return name + " ends elsewhere";
    for (std::size_t i = 1; i < line.size(); ++i) {
      const plot::Point a = line[i - 1], b = line[i];
      if (b.y < a.y - kRounding) return name + " goes up";
      for (std::size_t k = 0; k < boxes.size(); ++k) {
        const auto other = box(k);
        if (std::max(a.x, b.x) > other.left && std::min(a.x, b.x) < other.right && b.y > other.top + kRounding &&
            a.y < other.bottom - kRounding)
          return name + " passes through box " + std::to_string(k);
      }
    }
  }
  return {};
}

// Checks the rules that as_svg() could break: tags nest, attributes are quoted, text has no < or bare &.
inline std::string malformed(std::string_view xml) {
  std::vector<std::string> open;
  for (std::size_t at = 0; at < xml.size();) {
    const std::size_t tag = xml.find('<', at);
    const std::string_view text = xml.substr(at, tag == std::string_view::npos ? tag : tag - at);
    for (std::size_t i = text.find('&'); i != std::string_view::npos; i = text.find('&', i + 1)) {
      const std::string_view entity = text.substr(i, text.find(';', i) - i);
      if (entity != "&amp" && entity != "&lt" && entity != "&gt" && entity != "&quot") return "a bare & in a text";
    }
    if (text.find('>') != std::string_view::npos && (open.empty() || open.back() != "style")) return "a > in a text";
    if (tag == std::string_view::npos) break;
    const std::size_t end = xml.find('>', tag);
    if (end == std::string_view::npos) return "a tag that does not end";
    const std::string_view inside = xml.substr(tag + 1, end - tag - 1);
    std::size_t quotes = 0;
    for (const char c : inside) quotes += c == '"' ? 1 : 0;
    if (inside.find('<') != std::string_view::npos || quotes % 2 != 0) return "a broken tag: " + std::string(inside);
    if (inside.starts_with('/')) {
      if (open.empty() || open.back() != inside.substr(1))
        return "</" + std::string(inside.substr(1)) + "> closes nothing";
      open.pop_back();
    } else if (!inside.ends_with('/')) {
      open.emplace_back(inside.substr(0, inside.find(' ')));
    }
    at = end + 1;
  }
  return open.empty() ? "" : "<" + open.back() + "> is not closed";
}

}  // namespace graphrun::test
