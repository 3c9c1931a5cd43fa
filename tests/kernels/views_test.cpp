// Views and the dimensions they are walked by, against an index along each axis.
#include "graphrun/view.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

#include "kernels/dims.h"

namespace graphrun {
namespace {

// Offsets of a view's elements, one index after another, without its own offset.
std::vector<std::int64_t> offsets_of(const View& view) {
  std::vector<std::int64_t> offsets;
  std::int64_t at[kMaxRank] = {};
  for (std::int64_t i = 0, n = view.extents.elements(); i < n; ++i) {
    offsets.push_back(std::inner_product(at, at + kMaxRank, view.strides, std::int64_t{0}));
    for (int axis = view.extents.rank() - 1; axis >= 0 && ++at[axis] == view.extents[axis]; --axis) at[axis] = 0;
  }
  return offsets;
}

std::int64_t below(std::mt19937& random, std::int64_t n) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
}

// A dense value turned, cut and repeated.
View random_view(std::mt19937& random, Shape& extents) {
  Shape shape;
  std::vector<std::int32_t> axes;
  for (auto rank = random() % 5; axes.size() < rank; axes.push_back(static_cast<std::int32_t>(axes.size())))
    shape.push_back(1 + random() % 4);
  std::shuffle(axes.begin(), axes.end(), random);
  View view = permuted(dense(shape), axes.data());
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const std::int64_t start = random() % 2 == 0 ? 0 : below(random, view.extents[axis]);
    view = sliced(view, axis, start, view.extents[axis] - start);
  }
  if (extents.rank() == 0) {
    extents = view.extents;
    for (int axis = 0; axis < extents.rank(); ++axis)
      if (extents[axis] == 1 && random() % 2 == 0) extents[axis] = 3;
    if (extents.rank() < 4 && random() % 2 == 0) {
      Shape longer{2};
      for (const std::int64_t extent : extents.dims()) longer.push_back(extent);
      extents = longer;
    }
  }
  return broadcast(view, extents);
}

TEST(Views, AreWalkedInOrder) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    Shape extents;
    const View x = random_view(random, extents);
    const View views[] = {x, dense(extents)};
    const Dims<2> dims = merged(views);
    const std::vector<std::int64_t> expected = offsets_of(x);
    ASSERT_EQ(dims.count, extents.elements());
    for (int d = 1; d < dims.rank; ++d)  // nothing is left to merge
      ASSERT_NE(dims.dim[d - 1].stride[0], dims.dim[d].extent * dims.dim[d].stride[0]);
    for (std::int64_t i = 0; i < dims.count; ++i) {
      ASSERT_EQ(dims.offset(i), expected[static_cast<std::size_t>(i)]);
      ASSERT_EQ(dims.offsets(i)[1], i);
    }
    const std::int64_t first = below(random, dims.count + 1), last = first + below(random, dims.count - first + 1);
    std::int64_t next = first;
    for_runs(dims, first, last, [&](std::int64_t i, const Offsets<2>& at, std::int64_t n) {
      ASSERT_EQ(i, next);
      ASSERT_GT(n, 0);
      for (std::int64_t j = 0; j < n; ++j) {
        const std::int64_t step = dims.rank > 0 ? j * dims.dim[dims.rank - 1].stride[0] : 0;
        ASSERT_EQ(at[0] + step, expected[static_cast<std::size_t>(i + j)]);
      }
      next += n;
    });
    ASSERT_EQ(next, last);
  }
}

TEST(Views, SplitAxesMeetEveryElementOnce) {
  const View view = permuted(dense({2, 3, 4}), std::vector<std::int32_t>{2, 0, 1}.data());
  for (std::uint32_t mask = 0; mask < 8; ++mask) {
    const AxisGroups<1> split({view}, mask);
    std::vector<int> visits(24);
    for_elements(split.kept, [&](std::int64_t, const Offsets<1>& base) {
      for (std::int64_t j = 0; j < split.reduced.count; ++j)
        ++visits.at(static_cast<std::size_t>(base[0] + split.reduced.offset(j)));
    });
    EXPECT_EQ(visits, std::vector<int>(24, 1)) << mask;
  }
}

TEST(Views, NothingIsWalkedWhereAnExtentIsZero) {
  int visits = 0;
  const Dims<1> dims = merged<1>({broadcast(dense({1, 0, 3}), {4, 0, 3})});
  for_elements(dims, [&](std::int64_t, const Offsets<1>&) { ++visits; });
  EXPECT_EQ(dims.count, 0);
  EXPECT_EQ(visits, 0);
}

}  // namespace
}  // namespace graphrun
