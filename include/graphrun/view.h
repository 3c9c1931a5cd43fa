// view.h: mapping from the elements of a value to its storage: a stride per axis and an offset, in elements.
// Contract: the element at index (i, j, …) is number offset + i * strides[0] + j * strides[1] + … of the storage.
// Strides are never negative; 0 shows the same elements again. Every function here gives a view of the same storage.
// Leaves to others: walking over the elements of several views at once (kernels/dims.h).
#pragma once

#include <cstdint>
#include <utility>

#include "graphrun/params.h"
#include "graphrun/types.h"

namespace graphrun {

struct View {
  Shape extents;
  std::int64_t strides[kMaxRank] = {};
  std::int64_t offset = 0;
  friend bool operator==(const View&, const View&) = default;
};

// Row-major, without gaps.
inline View dense(const Shape& shape) {
  View view{shape};
  std::int64_t step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; step *= shape[axis--]) view.strides[axis] = step;
  return view;
}

// Ignores the offset.
inline bool is_dense(const View& view) {
  View other = dense(view.extents);
  other.offset = view.offset;
  return other == view;
}

// NumPy's rule: axes align at the right, those of extent 1 are repeated.
inline View broadcast(const View& from, const Shape& to) {
  View view{to, {}, from.offset};
  const int shift = to.rank() - from.extents.rank();
  for (int axis = 0; axis < from.extents.rank(); ++axis)
    view.strides[axis + shift] = from.extents[axis] == 1 ? 0 : from.strides[axis];
  return view;
}

// Axis i of the result is axis axes[i] of `from`.
inline View permuted(const View& from, const std::int32_t* axes) {
  View view = from;
  for (int axis = 0; axis < from.extents.rank(); ++axis) {
    view.extents[axis] = from.extents[axes[axis]];
    view.strides[axis] = from.strides[axes[axis]];
  }
  return view;
}

// Swaps the last two axes.
inline View transposed(const View& from) {
  View view = from;
  const int last = from.extents.rank() - 1;
  for (const int axis : {last - 1, last}) {
    view.extents[axis] = from.extents[2 * last - 1 - axis];
    view.strides[axis] = from.strides[2 * last - 1 - axis];
  }
  return view;
}

// `extent` indices from `start` on along the axis.
inline View sliced(const View& from, int axis, std::int64_t start, std::int64_t extent) {
  View view = from;
  view.extents[axis] = extent;
  view.offset += start * from.strides[axis];
  return view;
}

// Windows over the axes before the last one, (…, s, c) to (…, o, k, c): element (o, k) is element o * stride +
// k * dilation of s. Windows may overlap.
inline View windowed(const View& from, const WindowParams& windows) {
  const int first = from.extents.rank() - 1 - windows.axes, last = from.extents.rank() + windows.axes - 1;
  View view = from;
  for (int i = 0; i < windows.axes; ++i) {
    view.extents[first + i] = windows.windows(i, from.extents[first + i]);
    view.strides[first + i] = from.strides[first + i] * windows.stride[i];
    view.extents.push_back(1);
  }
  for (int i = 0; i < windows.axes; ++i) {
    view.extents[first + windows.axes + i] = windows.size[i];
    view.strides[first + windows.axes + i] = from.strides[first + i] * windows.dilation[i];
  }
  view.extents[last] = from.extents[from.extents.rank() - 1];
  view.strides[last] = from.strides[from.extents.rank() - 1];
  return view;
}

// The matrices of a product: all axes but the last two, broadcast.
inline std::pair<View, View> product_matrices(View a, View b) {
  for (View* one : {&a, &b})
    one->extents = Shape(one->extents.dims().first(static_cast<std::size_t>(one->extents.rank() - 2)));
  Shape both = a.extents.rank() < b.extents.rank() ? b.extents : a.extents;
  for (int axis = both.rank() - 1, i = a.extents.rank() - 1, j = b.extents.rank() - 1; axis >= 0; --axis, --i, --j)
    both[axis] = j < 0 || (i >= 0 && a.extents[i] != 1) ? a.extents[i] : b.extents[j];
  return {broadcast(a, both), broadcast(b, both)};
}

// Number of storage elements from first to last inclusive; 0 if the view is empty.
inline std::int64_t span_of(const View& view) {
  std::int64_t last = 0;
  for (int axis = 0; axis < view.extents.rank(); ++axis) last += (view.extents[axis] - 1) * view.strides[axis];
  return view.extents.elements() == 0 ? 0 : last + 1;
}

}  // namespace graphrun
