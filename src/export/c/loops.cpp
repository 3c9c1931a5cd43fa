#include "export/c/loops.h"

#include <fmt/format.h>

namespace graphrun::c99 {

std::vector<Axis> merged(const std::vector<View>& views, std::uint32_t mask) {
  std::vector<Axis> axes;
  for (int axis = 0; axis < views[0].extents.rank(); ++axis) {
    if ((mask >> axis & 1u) == 0 || views[0].extents[axis] == 1) continue;
    Axis next{views[0].extents[axis], {}};
    for (const View& view : views) next.strides.push_back(view.strides[axis]);
    bool goes_on = !axes.empty();
    for (std::size_t k = 0; goes_on && k < views.size(); ++k)
      goes_on = axes.back().strides[k] == next.extent * next.strides[k];
    if (goes_on) {
      next.extent *= axes.back().extent;
      axes.pop_back();
    }
    axes.push_back(std::move(next));
  }
  return axes;
}

Axis take_last(std::vector<Axis>& axes, std::size_t views) {
  if (axes.empty()) return {1, std::vector<std::int64_t>(views, 1)};
  Axis last = std::move(axes.back());
  axes.pop_back();
  return last;
}

std::vector<Axis> matrices(const View& a, const View& b) {
  const auto [x, y] = product_matrices(a, b);
  return merged({x, y, dense(x.extents)});
}

Loops loops(const std::vector<Axis>& axes, const std::vector<std::string>& bases) {
  Loops result{"", bases};
  for (std::size_t d = 0; d < axes.size(); ++d) {
    result.text += fmt::format("for (int i{0} = 0; i{0} < {1}; i{0}++) ", d, axes[d].extent);
    for (std::size_t k = 0; k < bases.size(); ++k) {
      const std::int64_t stride = axes[d].strides[k];
      if (stride == 1) result.places[k] += fmt::format(" + i{}", d);
      if (stride > 1) result.places[k] += fmt::format(" + i{} * {}", d, stride);
    }
  }
  return result;
}

}  // namespace graphrun::c99
