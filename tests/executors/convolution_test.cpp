// Convolutions and pooling compared with their definitions, as loops in double, over random extents, windows, strides,
// dilations, paddings and groups.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "graphrun/model.h"
#include "graphrun/session.h"
#include "support/temporary_folder.h"
#include "support/tensors.h"

namespace graphrun {
namespace {

using i64 = std::int64_t;

struct Pair {
  i64 h = 1, w = 1;
};

// Values (rows, height, width, channels).
struct Image {
  i64 rows, height, width, channels;
  std::vector<double> values = std::vector<double>(static_cast<std::size_t>(rows * height * width * channels));
  bool has(i64 y, i64 x) const { return y >= 0 && y < height && x >= 0 && x < width; }
  double& at(i64 n, i64 y, i64 x, i64 c) {
    return values[static_cast<std::size_t>(((n * height + y) * width + x) * channels + c)];
  }
};

struct Case {
  bool flat = false;  // one axis: conv1d
  bool transposed = false;
  i64 filters = 1, groups = 1;
  Pair size = {}, stride = {}, dilation = {};
  std::string padding = "valid";
};

// Positions along an axis, and the zeros before the first element.
struct Along {
  i64 count = 0, before = 0;
};
Along along(const Case& c, i64 extent, i64 size, i64 stride, i64 dilation) {
  const i64 reach = dilation * (size - 1) + 1;
  if (c.transposed) {
    const i64 all = (extent - 1) * stride + reach, wanted = extent * stride;
    return c.padding == "valid" ? Along{all, 0} : Along{wanted, std::max<i64>(all - wanted, 0) / 2};
  }
  if (c.padding == "valid") return {(extent - reach) / stride + 1, 0};
  const i64 count = (extent + stride - 1) / stride;
  if (c.padding == "causal") return {count, reach - 1};
  return {count, std::max<i64>((count - 1) * stride + reach - extent, 0) / 2};
}

Image convolved(const Case& c, Image& x, const std::vector<double>& weights, const std::vector<double>& bias) {
  const Along down = along(c, x.height, c.size.h, c.stride.h, c.dilation.h);
  const Along right = along(c, x.width, c.size.w, c.stride.w, c.dilation.w);
  Image y{x.rows, down.count, right.count, c.filters};
  for (i64 i = 0; i < static_cast<i64>(y.values.size()); ++i)
    y.values[static_cast<std::size_t>(i)] = bias[static_cast<std::size_t>(i % c.filters)];
  const i64 width = x.channels / c.groups, part = c.filters / c.groups;
  for (i64 n = 0; n < x.rows; ++n)
    for (i64 ky = 0; ky < c.size.h; ++ky)
      for (i64 kx = 0; kx < c.size.w; ++kx)
        for (i64 f = 0; f < c.filters; ++f)
          for (i64 k = 0; k < width; ++k) {
            const i64 tap = ky * c.size.w + kx;
            const double weight = weights[static_cast<std::size_t>(c.transposed ? (tap * c.filters + f) * width + k
                                                                                : (tap * width + k) * c.filters + f)];
            const i64 channel = f / part * width + k;
            Image& small = c.transposed ? x : y;  // its positions are windows in the other
            Image& large = c.transposed ? y : x;
            for (i64 oy = 0; oy < small.height; ++oy)
              for (i64 ox = 0; ox < small.width; ++ox) {
                const i64 iy = oy * c.stride.h + ky * c.dilation.h - down.before;
                const i64 ix = ox * c.stride.w + kx * c.dilation.w - right.before;
                if (!large.has(iy, ix)) continue;
                if (c.transposed)
                  y.at(n, iy, ix, f) += weight * x.at(n, oy, ox, channel);
                else
                  y.at(n, oy, ox, f) += weight * x.at(n, iy, ix, channel);
              }
          }
  return y;
}

Session session_of(const std::string& formula, const std::vector<i64>& extents, const std::string& executor) {
  const std::string text = fmt::format(R"j({{"format": 1, "data": {{"train": {{"npz": "none.npz"}}}},
      "inputs": {{"x": ["batch", {}]}},
      "graph": [{{"name": "c", {}}}, "y = dense(flatten(c), units=1)", "loss = mean(square(y))"], "outputs": ["c"],
      "train": {{"minimize": "loss", "optimizer": {{"sgd": {{"lr": 0.1}}}}, "batch": 4}}}})j",
                                       fmt::join(extents, ", "), formula);
  LoadOptions load;
  load.predicts = 1;
  SessionOptions options;
  options.executor = executor;
  return Session(load_model(test::write_model(text), load), options);
}

std::vector<i64> extents_of(const Image& x, bool flat) {
  return flat ? std::vector<i64>{x.width, x.channels} : std::vector<i64>{x.height, x.width, x.channels};
}

Image random_image(std::mt19937& random, bool flat, i64 channels) {
  const auto extent = [&] { return static_cast<i64>(4 + random() % 9); };
  Image x{3, flat ? 1 : extent(), extent(), channels};
  for (double& value : x.values) value = static_cast<float>(static_cast<double>(random() % 2001) / 1000 - 1);
  return x;
}

void expect_near(Session& session, const Image& x, bool flat, const Image& wanted, const std::string& text) {
  std::vector<i64> shape = extents_of(x, flat);
  shape.insert(shape.begin(), x.rows);
  HostTensor input(DType::f32, Shape(shape));
  std::copy(x.values.begin(), x.values.end(), input.elements<float>().begin());
  const HostTensor result = session.predict({{"x", input}});
  std::vector<i64> expected = extents_of(wanted, flat);
  expected.insert(expected.begin(), x.rows);
  ASSERT_EQ(result.shape(), Shape(expected)) << text;
  for (std::size_t i = 0; i < wanted.values.size(); ++i)
    ASSERT_NEAR(result.elements<float>()[i], wanted.values[i], 1e-5) << text << " element " << i;
}

TEST(Convolution, IsItsDefinition) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const auto up_to = [&](i64 n) { return static_cast<i64>(1 + random() % static_cast<unsigned>(n)); };
    Case c;
    c.flat = seed % 2 == 0, c.transposed = seed % 5 == 4;
    c.groups = c.transposed ? 1 : up_to(3);
    c.filters = c.groups * up_to(3);
    c.size = {c.flat ? 1 : up_to(3), up_to(4)};
    c.stride = {c.flat ? 1 : up_to(3), up_to(3)};
    c.dilation = {1, c.size.w < 3 ? up_to(3) : 1};
    c.padding = c.flat && !c.transposed ? std::vector{"valid", "same", "causal"}[random() % 3]
                                        : std::vector{"valid", "same"}[random() % 2];
    Image x = random_image(random, c.flat, c.groups * up_to(3));
    const auto list = [&](Pair p) { return c.flat ? fmt::format("{}", p.w) : fmt::format("[{}, {}]", p.h, p.w); };
    const std::string text = fmt::format(
        R"("op": "conv{}{}d", "inputs": ["x"], "filters": {}, "size": {}, "stride": {}, "dilation": {}, "padding": "{}"{},
        "bias": {{"normal": 1}})",
        c.transposed ? "_transpose" : "", c.flat ? 1 : 2, c.filters, list(c.size), list(c.stride), list(c.dilation),
        c.padding, c.transposed ? "" : fmt::format(", \"groups\": {}", c.groups));
    for (const std::string executor : {"ref", "cpu"}) {
      Session session = session_of(text, extents_of(x, c.flat), executor);
      const Image wanted =
          convolved(c, x, test::to_doubles(session.read("c.W")), test::to_doubles(session.read("c.b")));
      expect_near(session, x, c.flat, wanted, fmt::format("seed {}: {} {}", seed, executor, text));
    }
  }
}

TEST(Pooling, IsItsDefinition) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    const auto up_to = [&](i64 n) { return static_cast<i64>(1 + random() % static_cast<unsigned>(n)); };
    const bool flat = seed % 2 == 0, largest = seed % 4 < 2, overlapping = seed % 3 == 0;
    Image x = random_image(random, flat, up_to(3));
    const Pair size{flat ? 1 : up_to(3), up_to(4)};
    const Pair stride = overlapping ? Pair{flat ? 1 : up_to(3), up_to(3)} : size;
    Image y{x.rows, (x.height - size.h) / stride.h + 1, (x.width - size.w) / stride.w + 1, x.channels};
    for (i64 n = 0; n < y.rows; ++n)
      for (i64 oy = 0; oy < y.height; ++oy)
        for (i64 ox = 0; ox < y.width; ++ox)
          for (i64 c = 0; c < y.channels; ++c) {
            double sum = 0, best = -2;
            for (i64 ky = 0; ky < size.h; ++ky)
              for (i64 kx = 0; kx < size.w; ++kx) {
                const double value = x.at(n, oy * stride.h + ky, ox * stride.w + kx, c);
                sum += value, best = std::max(best, value);
              }
            y.at(n, oy, ox, c) = largest ? best : sum / static_cast<double>(size.h * size.w);
          }
    const auto list = [&](Pair p) { return flat ? fmt::format("{}", p.w) : fmt::format("[{}, {}]", p.h, p.w); };
    const std::string text =
        fmt::format(R"("op": "{}", "inputs": ["x"], "size": {}{})", largest ? "max_pool" : "avg_pool", list(size),
                    overlapping ? fmt::format(", \"stride\": {}", list(stride)) : "");
    for (const std::string executor : {"ref", "cpu"}) {
      Session session = session_of(text, extents_of(x, flat), executor);
      expect_near(session, x, flat, y, fmt::format("seed {}: {} {}", seed, executor, text));
    }
  }
}

std::string code_of(const std::string& formula, const std::vector<i64>& extents) {
  try {
    session_of(formula, extents, "ref");
  } catch (const Error& error) {
    return error.diagnostics().front().code;
  }
  return "";
}

TEST(Convolution, ReportsInvalidAttributes) {
  const auto conv = [](const std::string& rest) { return R"("op": "conv2d", "inputs": ["x"], "filters": 4, )" + rest; };
  EXPECT_EQ(code_of(conv(R"("size": 3)"), {8, 8, 2}), "");
  EXPECT_EQ(code_of(conv(R"("size": 3)"), {8, 8}), "shape.rank");
  EXPECT_EQ(code_of(conv(R"("size": 9)"), {8, 8, 2}), "shape.mismatch");
  EXPECT_EQ(code_of(conv(R"("size": 9, "padding": "same")"), {8, 8, 2}), "");
  EXPECT_EQ(code_of(conv(R"("size": [3, 3, 3])"), {8, 8, 2}), "attribute.value");
  EXPECT_EQ(code_of(conv(R"("size": 0)"), {8, 8, 2}), "attribute.value");
  EXPECT_EQ(code_of(conv(R"("size": 3, "stride": -1)"), {8, 8, 2}), "attribute.value");
  EXPECT_EQ(code_of(conv(R"("size": 3, "groups": 3)"), {8, 8, 2}), "attribute.value");
  EXPECT_NE(code_of(conv(R"("size": 3, "padding": "causal")"), {8, 8, 2}), "");
  EXPECT_EQ(code_of(R"("op": "max_pool", "inputs": ["x"], "size": 9)", {8, 8, 2}), "shape.mismatch");
  EXPECT_EQ(code_of(R"("op": "max_pool", "inputs": ["x"], "size": 2)", {8}), "shape.rank");
  EXPECT_EQ(code_of(R"("op": "avg_pool", "inputs": ["x"], "size": [2, 2, 2])", {8, 8, 2}), "shape.rank");
  EXPECT_EQ(code_of(R"("op": "avg_pool", "inputs": ["x"], "size": 0)", {8, 8, 2}), "attribute.range");
}

}  // namespace
}  // namespace graphrun
