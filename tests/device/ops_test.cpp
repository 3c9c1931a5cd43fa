// Each structured op of the CUDA executor against ref: shapes that take every route of its kernels, odd and empty
// extents, batches that are not full, special values.
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "device.h"
#include "graphrun/params.h"

namespace graphrun::testing {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TensorType typed(DType dtype, Shape shape, std::int64_t rows = 0) {
  return {dtype, shape, rows};
}

// Random values whose rows past the batch are zero.
std::vector<float> batch_values(const TensorType& type, std::int64_t samples, std::uint32_t seed, float low = -1.0f,
                                float high = 1.0f) {
  std::vector<float> values = random_values(type.shape.elements(), seed, low, high);
  if (type.rows > 0) {
    const std::int64_t row = type.shape[0] == 0 ? 0 : type.shape.elements() / type.shape[0];
    std::fill(values.begin() + samples * type.rows * row, values.end(), 0.0f);
  }
  return values;
}

// Whole numbers below `end`.
std::vector<std::int32_t> random_classes(std::int64_t count, std::uint32_t seed, float low, float end) {
  std::vector<std::int32_t> classes;
  for (const float value : random_values(count, seed, low, end)) classes.push_back(static_cast<std::int32_t>(value));
  return classes;
}

template <class T>
std::vector<T> counted_up(std::int64_t count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  std::size_t i = 0;
  for (T& value : values) value = static_cast<T>(i++ % 251);
  return values;
}

std::string text(const Shape& shape) {
  return " " + to_string(shape);
}

struct Reduced {
  Shape in, out;
  std::uint32_t axes;
};
// Few terms, columns, blocks, and each of them in parts; axes that do not merge; nothing at all.
const Reduced kReduced[] = {{{}, {}, 0},
                            {{7}, {}, 1},
                            {{100003}, {}, 1},
                            {{3000000}, {}, 1},
                            {{300, 6}, {6}, 1},
                            {{300, 6}, {300}, 2},
                            {{1000, 64}, {64}, 1},
                            {{20000, 40}, {40}, 1},
                            {{50, 3000}, {50}, 2},
                            {{9, 5, 40}, {40}, 3},
                            {{9, 50, 40}, {9, 40}, 2},
                            {{40, 5, 9}, {5}, 5},
                            {{2, 3, 2, 3, 2, 3}, {2, 2, 2}, 42},
                            {{0, 3}, {3}, 1},
                            {{3, 0}, {3}, 2},
                            {{0, 3}, {0}, 2}};

TEST_F(Device, Reductions) {
  for (const std::string op : {"sum", "max", "min", "prod", "logsumexp"}) {
    for (const Reduced& c : kReduced) {
      Builder build(op + text(c.in) + " " + std::to_string(c.axes));
      // A product of a million numbers stays a number only near one.
      const bool product = op == "prod";
      const BufferId in = build.state(
          "in", f32(c.in), random_values(c.in.elements(), 3, product ? 0.999f : -2.0f, product ? 1.001f : 1.0f));
      const BufferId out = build.result("out", f32(c.out));
      build.step(op, {in}, out, ReduceParams{c.axes, false});
      // Each factor rounds once, in an order of each executor's own: n roundings at most.
      const float of_product = std::max(1e-3f, static_cast<float>(c.in.elements()) * 0x1p-24f);
      compare(build, out, op == "max" || op == "min" ? 0.0f : product ? of_product : 1e-4f);
    }
  }
}

TEST_F(Device, ReductionsOfPartOfABatch) {
  const std::int64_t capacity = 700;
  for (const std::string op : {"sum", "max", "min", "prod", "logsumexp"}) {
    for (const std::int32_t samples : {0, 1, 333, 700}) {
      for (const std::uint32_t axes : {1u, 2u, 3u, 4u, 6u, 7u}) {
        for (const std::int64_t width : {3, 40}) {
          Builder build(op + " of " + std::to_string(samples) + ", axes " + std::to_string(axes), capacity);
          build.rows(samples);
          const TensorType type = f32({2 * capacity, 2, width}, 2);
          // All below zero: a row that is not there would be the largest.
          const bool product = op == "prod";
          const BufferId in =
              build.state("in", type, batch_values(type, samples, 5, product ? 0.99f : -2.0f, product ? 1.01f : -1.0f));
          TensorType out_type;
          for (int axis = 0; axis < 3; ++axis) {
            if ((axes >> axis & 1u) == 0) out_type.shape.push_back(type.shape[axis]);
          }
          out_type.rows = (axes & 1u) != 0 ? 0 : 2;
          const BufferId out = build.result("out", out_type);
          build.step(op, {in}, out, ReduceParams{axes, false});
          compare(build, out, op == "max" || op == "min" ? 0.0f : 1e-4f);
        }
      }
    }
  }
}

// One special value in each of several places, on each route.
TEST_F(Device, SpecialValuesInReductions) {
  for (const std::string op : {"sum", "max", "min", "prod", "logsumexp", "argmax", "argmin"}) {
    for (const std::int64_t size : {5, 100, 9000}) {
      for (const bool along_last : {true, false}) {
        const std::vector<std::vector<float>> lists = {{kNan},       {kInf},        {-kInf}, {kInf, -kInf},
                                                       {kNan, kInf}, {0.0f, -0.0f}, {}};
        for (std::size_t list = 0; list < lists.size(); ++list) {
          const std::int64_t lines = 40;
          // Near one: a product of many stays away from zero, which times infinity is NaN.
          std::vector<float> values = random_values(lines * size, 9, 0.99f, 1.01f);
          if (list + 1 == lists.size()) std::fill(values.begin(), values.end(), -kInf);
          for (std::int64_t line = 0; line < lines; ++line) {
            for (std::size_t k = 0; k < lists[list].size(); ++k) {
              const std::int64_t at = (line * 13 + static_cast<std::int64_t>(k) * 7) % size;
              values[static_cast<std::size_t>(along_last ? line * size + at : at * lines + line)] = lists[list][k];
            }
          }
          Builder build(op + " special " + std::to_string(list) + " size " + std::to_string(size));
          const BufferId in = build.state("in", f32(along_last ? Shape{lines, size} : Shape{size, lines}), values);
          if (op.rfind("arg", 0) == 0) {
            const BufferId out = build.result("out", typed(DType::i32, {lines}));
            build.step(op, {in}, out, AxisParams{along_last ? 1 : 0});
            compare<std::int32_t>(build, out);
          } else {
            const BufferId out = build.result("out", f32({lines}));
            build.step(op, {in}, out, ReduceParams{along_last ? 2u : 1u, false});
            compare(build, out, 1e-4f);
          }
        }
      }
    }
  }
}

TEST_F(Device, Positions) {
  struct Case {
    Shape in, out;
    int axis;
  };
  const Case cases[] = {
      {{7}, {}, 0},          {{100003}, {}, 0}, {{300, 6}, {300}, 1}, {{300, 6}, {6}, 0},        {{20000, 40}, {40}, 0},
      {{50, 3000}, {50}, 1}, {{0, 3}, {0}, 1},  {{4, 1}, {4}, 1},     {{9, 50, 40}, {9, 40}, 1}, {{3, 40000}, {3}, 1}};
  for (const std::string op : {"argmax", "argmin"}) {
    for (const Case& c : cases) {
      for (const bool ties : {false, true}) {
        Builder build(op + text(c.in) + " axis " + std::to_string(c.axis));
        std::vector<float> values = random_values(c.in.elements(), 4, -3.0f, 3.0f);
        if (ties) std::transform(values.begin(), values.end(), values.begin(), [](float x) { return std::floor(x); });
        const BufferId in = build.state("in", f32(c.in), values);
        const BufferId out = build.result("out", typed(DType::i32, c.out));
        build.step(op, {in}, out, AxisParams{c.axis});
        compare<std::int32_t>(build, out);
      }
    }
  }
  Builder build("argmax of part of a batch", 9);
  build.rows(4);
  const TensorType type = f32({9, 10}, 1);
  const BufferId in = build.state("in", type, batch_values(type, 4, 6));
  const BufferId out = build.result("out", typed(DType::i32, {9}, 1));
  build.step("argmax", {in}, out, AxisParams{1});
  compare<std::int32_t>(build, out);
}

TEST_F(Device, Softmax) {
  struct Case {
    Shape shape;
    int axis;
  };
  std::vector<Case> cases = {{{0, 4}, 1},        {{4, 0}, 1}, {{6, 7, 5}, 1}, {{6, 70, 5}, 1},
                             {{100, 90, 60}, 1}, {{5, 3}, 0}, {{2000, 3}, 0}, {{3, 4, 5, 6}, 2}};
  for (const std::int64_t size : {1, 2, 3, 4, 5, 10, 16, 17, 32, 100, 1024, 1025, 5000, 20001}) {
    cases.push_back({{37, size}, 1});
    cases.push_back({{size}, 0});
  }
  for (const std::string op : {"softmax", "log_softmax"}) {
    for (const Case& c : cases) {
      for (const bool in_place : {false, true}) {
        Builder build(op + text(c.shape) + " axis " + std::to_string(c.axis));
        const BufferId in = build.state("in", f32(c.shape), random_values(c.shape.elements(), 8, -20.0f, 20.0f));
        const BufferId out = in_place ? in : build.result("out", f32(c.shape));
        build.step(op, {in}, out, AxisParams{c.axis});
        compare(build, out, 1e-5f);
      }
    }
    for (const std::int64_t size : {3, 10, 100, 3000}) {
      for (const std::int32_t samples : {0, 5, 8}) {
        Builder build(op + " of part of a batch, size " + std::to_string(size), 8);
        build.rows(samples);
        const TensorType type = f32({16, size}, 2);
        const BufferId in = build.state("in", type, batch_values(type, samples, 8));
        const BufferId out = build.result("out", type);
        build.step(op, {in}, out, AxisParams{1});
        compare(build, out, 1e-5f);
      }
      Builder build(op + " special, size " + std::to_string(size));
      std::vector<float> values = random_values(5 * size, 3, 80.0f, 200.0f);  // exp overflows
      values[0] = kNan;
      values[static_cast<std::size_t>(size)] = kInf;
      values[static_cast<std::size_t>(2 * size)] = -kInf;
      std::fill(values.begin() + 3 * size, values.begin() + 4 * size, -kInf);
      const BufferId in = build.state("in", f32({5, size}), values);
      const BufferId out = build.result("out", f32({5, size}));
      build.step(op, {in}, out, AxisParams{1});
      compare(build, out, 2e-5f);
    }
  }
}

TEST_F(Device, SoftmaxCrossEntropy) {
  for (const std::int64_t size : {1, 2, 3, 10, 17, 100, 1025, 20001}) {
    for (const std::int32_t samples : {0, 3, 7}) {
      for (const bool classes : {false, true}) {
        Builder build("softmax_cross_entropy " + std::to_string(size) + (classes ? " classes" : " one-hot"), 7);
        build.rows(samples);
        const TensorType type = f32({7, 3, size}, 1);
        const BufferId in = build.state("in", type, batch_values(type, samples, 2, -5.0f, 5.0f));
        BufferId target = kNoBuffer;
        if (classes) {  // some of them no classes
          target = build.values("target", typed(DType::i32, {7, 3}, 1),
                                random_classes(21, 3, -1.0f, static_cast<float>(size) + 1.0f));
        } else {
          std::vector<float> weights = batch_values(type, samples, 4, -1.0f, 1.0f);
          for (float& weight : weights) weight = weight > 0.5f ? weight / static_cast<float>(size) : 0.0f;
          target = build.state("target", type, weights);
        }
        const BufferId out = build.result("out", f32({7, 3}, 1));
        build.step("softmax_cross_entropy", {in, target}, out);
        compare(build, out, 2e-5f);
      }
    }
  }
  Builder build("a class of no probability and no target adds nothing");
  const BufferId in = build.state("in", f32({2, 3}), {-kInf, 1.0f, 2.0f, kNan, 1.0f, 2.0f});
  const BufferId target = build.state("target", f32({2, 3}), {0.0f, 1.0f, 0.0f, 0.0f, 1.0f, 0.0f});
  const BufferId out = build.result("out", f32({2}));
  build.step("softmax_cross_entropy", {in, target}, out);
  compare(build, out, 1e-6f);
}

template <class T>
void add_transpose(Builder& build, const TensorType& type, const std::vector<int>& order, BufferId& out) {
  PermuteParams params;
  TensorType out_type = type;
  for (std::size_t i = 0; i < order.size(); ++i) {
    params.axes[i] = order[i];
    out_type.shape[static_cast<int>(i)] = type.shape[order[i]];
  }
  const BufferId in = build.values("in", type, counted_up<T>(type.shape.elements()));
  out = build.result("out", out_type);
  build.step("transpose", {in}, out, params);
}

TEST_F(Device, Transpose) {
  struct Case {
    Shape shape;
    std::vector<int> order;
  };
  const Case cases[] = {{{}, {}},
                        {{5}, {0}},
                        {{5, 7}, {1, 0}},
                        {{5, 7}, {0, 1}},
                        {{1000, 1003}, {1, 0}},
                        {{33, 9}, {1, 0}},
                        {{0, 9}, {1, 0}},
                        {{6, 40, 50}, {0, 2, 1}},
                        {{6, 40, 50}, {2, 1, 0}},
                        {{6, 40, 50}, {1, 0, 2}},
                        {{6, 40, 50}, {2, 0, 1}},
                        {{40, 6, 50}, {1, 2, 0}},
                        {{3, 33, 4, 35}, {0, 3, 2, 1}},
                        {{3, 33, 4, 35}, {2, 3, 0, 1}},
                        {{3, 1, 33, 35}, {1, 3, 0, 2}},
                        {{2, 3, 2, 9, 2, 3, 9, 2}, {7, 6, 5, 4, 3, 2, 1, 0}}};
  for (const Case& c : cases) {
    for (const DType dtype : {DType::f32, DType::u64, DType::boolean}) {
      Builder build("transpose" + text(c.shape) + " " + std::string(name_of(dtype)));
      BufferId out = kNoBuffer;
      if (dtype == DType::f32) {
        add_transpose<float>(build, typed(dtype, c.shape), c.order, out);
        compare(build, out);
      } else if (dtype == DType::u64) {
        add_transpose<std::uint64_t>(build, typed(dtype, c.shape), c.order, out);
        compare<std::uint64_t>(build, out);
      } else {
        Builder other("transpose" + text(c.shape) + " bool");
        PermuteParams params;
        Shape to = c.shape;
        for (std::size_t i = 0; i < c.order.size(); ++i) {
          params.axes[i] = c.order[i];
          to[static_cast<int>(i)] = c.shape[c.order[i]];
        }
        std::vector<std::uint8_t> bits = counted_up<std::uint8_t>(c.shape.elements());
        for (std::uint8_t& bit : bits) bit = bit % 3 == 0;
        const BufferId in = other.values("in", typed(dtype, c.shape), bits);
        out = other.result("out", typed(dtype, to));
        other.step("transpose", {in}, out, params);
        compare<std::uint8_t>(other, out);
      }
    }
  }
  for (const std::int32_t samples : {0, 2, 5}) {
    Builder build("transpose of part of a batch", 5);
    build.rows(samples);
    const TensorType type = f32({5, 40, 33}, 1);
    const BufferId in = build.state("in", type, batch_values(type, samples, 1));
    const BufferId out = build.result("out", f32({5, 33, 40}, 1));
    PermuteParams params;
    params.axes[1] = 2;
    params.axes[2] = 1;
    build.step("transpose", {in}, out, params);
    compare(build, out);
  }
}

TEST_F(Device, SlicePadConcat) {
  struct Case {
    Shape shape;
    int axis;
    std::int64_t before, length;
  };
  // Odd extents, and those that let four floats be moved at a time.
  const Case cases[] = {{{10}, 0, 3, 4},      {{16, 8}, 0, 4, 8},   {{16, 8}, 1, 4, 4},     {{7, 9, 5}, 1, 2, 6},
                        {{7, 9, 4}, 1, 2, 6}, {{7, 9, 5}, 2, 0, 1}, {{7, 9, 5}, 0, 6, 1},   {{7, 9, 5}, 2, 5, 0},
                        {{0, 9}, 1, 1, 3},    {{7, 0}, 1, 0, 0},    {{300, 700}, 1, 1, 650}};
  for (const Case& c : cases) {
    const std::string name = text(c.shape) + " axis " + std::to_string(c.axis);
    Shape part = c.shape;
    part[c.axis] = c.length;
    {
      Builder build("slice" + name);
      const BufferId in = build.state("in", f32(c.shape), random_values(c.shape.elements(), 1));
      const BufferId out = build.result("out", f32(part));
      build.step("slice", {in}, out, SliceParams{c.axis, c.before});
      compare(build, out);
    }
    {
      Builder build("slice of u64" + name);
      const BufferId in = build.values("in", typed(DType::u64, c.shape), counted_up<std::uint64_t>(c.shape.elements()));
      const BufferId out = build.result("out", typed(DType::u64, part));
      build.step("slice", {in}, out, SliceParams{c.axis, c.before});
      compare<std::uint64_t>(build, out);
    }
    for (const double value : {0.0, -1.5}) {
      Builder build("pad" + name);
      const BufferId in = build.state("in", f32(part), random_values(part.elements(), 1));
      const BufferId out = build.result("out", f32(c.shape));
      build.step("pad", {in}, out, PadParams{c.axis, c.before, value});
      compare(build, out);
    }
    for (int operands = 1; operands <= 8; ++operands) {
      Builder build("concat of " + std::to_string(operands) + name);
      std::vector<BufferId> inputs;
      Shape whole = c.shape;
      whole[c.axis] = 0;
      for (int k = 0; k < operands; ++k) {
        Shape shape = c.shape;
        shape[c.axis] = k == 0 ? c.length : (k * 4 + c.before) % 9;
        whole[c.axis] += shape[c.axis];
        inputs.push_back(build.state("in", f32(shape), random_values(shape.elements(), static_cast<std::uint32_t>(k))));
      }
      const BufferId out = build.result("out", f32(whole));
      build.step("concat", inputs, out, AxisParams{c.axis});
      compare(build, out);
    }
  }
  Builder flags("concat of booleans");
  const BufferId left = flags.values("left", typed(DType::boolean, {5, 3}), std::vector<std::uint8_t>(15, 1));
  const BufferId right = flags.values("right", typed(DType::boolean, {5, 2}), std::vector<std::uint8_t>(10, 0));
  const BufferId both = flags.result("both", typed(DType::boolean, {5, 5}));
  flags.step("concat", {left, right}, both, AxisParams{1});
  compare<std::uint8_t>(flags, both);

  for (const std::int32_t samples : {0, 3, 6}) {
    for (const std::int64_t width : {3, 4}) {
      Builder build("slice, pad and concat of part of a batch", 6);
      build.rows(samples);
      const TensorType type = f32({6, 8, width}, 1);
      const BufferId in = build.state("in", type, batch_values(type, samples, 1));
      const BufferId part = build.result("part", f32({6, 4, width}, 1));
      const BufferId padded = build.result("padded", f32({6, 9, width}, 1));
      const BufferId out = build.result("out", f32({6, 17, width}, 1));
      build.step("slice", {in}, part, SliceParams{1, 4});
      build.step("pad", {part}, padded, PadParams{1, 2, 0.5});
      build.step("concat", {in, padded}, out, AxisParams{1});
      compare(build, out);
    }
  }
}

TEST_F(Device, OneHotAndGather) {
  for (const std::int64_t width : {1, 3, 4, 10, 64}) {
    for (const std::int32_t samples : {0, 50, 101}) {
      Builder build("one_hot " + std::to_string(width), 101);
      build.rows(samples);
      const BufferId in = build.values("in", typed(DType::i32, {101, 2}, 1),
                                       random_classes(202, 3, -2.0f, static_cast<float>(width) + 2.0f));
      const BufferId out = build.result("out", f32({101, 2, width}, 1));
      build.step("one_hot", {in}, out);
      compare(build, out);

      Builder other("gather " + std::to_string(width), 101);
      other.rows(samples);
      const BufferId table = other.state("table", f32({20, width}), random_values(20 * width, 2));
      const BufferId indices =
          other.values("indices", typed(DType::i32, {101, 2}, 1), random_classes(202, 5, -2.0f, 22.0f));
      const BufferId rows = other.result("rows", f32({101, 2, width}, 1));
      other.step("gather", {table, indices}, rows);
      compare(other, rows);
    }
  }
  Builder build("gather of u64");
  const BufferId table = build.values("table", typed(DType::u64, {5, 3}), counted_up<std::uint64_t>(15));
  const BufferId indices = build.values("indices", typed(DType::i32, {}), std::vector<std::int32_t>{4});
  const BufferId out = build.result("out", typed(DType::u64, {3}));
  build.step("gather", {table, indices}, out);
  compare<std::uint64_t>(build, out);
}

// The same bits as on the host: nothing is off by one rounding.
TEST_F(Device, Draws) {
  for (const std::string op : {"random_uniform", "random_normal"}) {
    for (const std::int64_t count : {1, 3, 4, 1001, 1000003}) {
      for (const std::uint64_t step : {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{1} << 33}) {
        Builder build(op + " " + std::to_string(count) + " at step " + std::to_string(step));
        const BufferId counter = build.counter("step", false, step);
        const BufferId out = build.result("out", f32({count}));
        build.step(op, {counter}, out, RandomParams{0x123456789abcdefull, -0.3, 0.7});
        compare(build, out);
      }
    }
    Builder build(op + " for part of a batch", 5);
    build.rows(3);
    const BufferId counter = build.counter("step", false, 7);
    const BufferId out = build.result("out", f32({5, 7}, 1));
    build.step(op, {counter}, out, RandomParams{1, 0, 1});
    compare(build, out);
  }
  for (const std::int64_t count : {0, 1, 2, 17, 256, 257, 100003}) {
    Builder build("permutation " + std::to_string(count));
    const BufferId counter = build.counter("step", false, 3);
    const BufferId out = build.result("out", typed(DType::i32, {count}));
    build.step("permutation", {counter}, out, RandomParams{99, 0, 0});
    compare<std::int32_t>(build, out);
  }
}

TEST_F(Device, Dropout) {
  for (const double rate : {0.0, 0.1, 0.5}) {
    for (const bool in_place : {false, true}) {
      for (const std::int32_t samples : {0, 60, 101}) {
        const auto add = [&](Builder& build) {
          build.rows(samples);
          const TensorType type = f32({101, 13}, 1);
          const BufferId counter = build.counter("step", false, 4);
          const BufferId in = build.state("in", type, batch_values(type, samples, 3));
          const BufferId out = in_place ? in : build.result("out", type);
          return build.step("dropout", {in, counter}, out, RandomParams{17, rate, 0});
        };
        Builder with_ref("dropout", 101);  // ref divides doubles
        compare(with_ref, add(with_ref), 1e-6f);
        Builder with_cpu("dropout", 101);
        compare(with_cpu, add(with_cpu), 0.0f, 1, find_executor("cpu"));
      }
    }
  }
}

TEST_F(Device, Minibatches) {
  struct Case {
    std::int64_t total, capacity;
    std::vector<std::int64_t> row;
  };
  const Case cases[] = {{11, 4, {3}},   {11, 4, {4}},     {12, 4, {}},      {3, 5, {2}},       {1037, 256, {31}},
                        {64, 7, {784}}, {1000, 512, {6}}, {9, 2, {100000}}, {5, 1, {2, 3, 2}}, {100003, 4096, {1}}};
  for (const Case& c : cases) {
    for (const bool shuffle : {false, true}) {
      for (const bool drop_last : {false, true}) {
        if (drop_last && c.total < c.capacity) continue;
        for (const std::uint64_t step :
             {std::uint64_t{0}, std::uint64_t{2}, std::uint64_t{25}, (std::uint64_t{1} << 33) + 2}) {
          Shape data_shape = {c.total}, batch_shape = {c.capacity};
          for (const std::int64_t extent : c.row) {
            data_shape.push_back(extent);
            batch_shape.push_back(extent);
          }
          Builder build("minibatch" + text(data_shape) + " by " + std::to_string(c.capacity) +
                            (shuffle ? " shuffled" : "") + " at step " + std::to_string(step),
                        c.capacity);
          const BufferId data = build.state("data", f32(data_shape), random_values(data_shape.elements(), 1));
          const BufferId counter = build.counter("step", false, step);
          const BufferId out = build.result("out", f32(batch_shape, 1));
          build.step("minibatch", {data, counter}, out,
                     MinibatchParams{c.total, c.capacity, shuffle, 0xfeedface12345678ull, drop_last});
          compare(build, out);
          Builder coded("codes of " + to_string(data_shape), c.capacity);
          std::vector<float> values;
          for (const std::uint8_t code : counted_up<std::uint8_t>(data_shape.elements()))
            values.push_back(decoded(code, 254.99999999999997));
          const BufferId codes = coded.codes("data", f32(data_shape), values, 254.99999999999997);
          const BufferId now = coded.counter("step", false, step);
          const BufferId rows = coded.result("out", f32(batch_shape, 1));
          coded.step("minibatch", {codes, now}, rows,
                     MinibatchParams{c.total, c.capacity, shuffle, 5, drop_last, 1, 254.99999999999997});
          compare(coded, rows);
        }
      }
    }
  }
  Builder build("minibatch of booleans", 4);
  std::vector<std::uint8_t> bits(33);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = i % 2 == 0;
  const BufferId data = build.values("data", typed(DType::boolean, {11, 3}), bits);
  const BufferId counter = build.counter("step", false, 2);
  const BufferId out = build.result("out", typed(DType::boolean, {4, 3}, 1));
  build.step("minibatch", {data, counter}, out, MinibatchParams{11, 4, true, 5, false});
  compare<std::uint8_t>(build, out);
}

TEST_F(Device, ProductsOfManyMatrices) {
  struct Case {
    Shape a, b, leading;
  };
  // (leading of a), (leading of b), (leading of the result); matrices are added below.
  const Case cases[] = {{{3}, {3}, {3}}, {{3}, {}, {3}},        {{}, {3}, {3}},        {{1}, {3}, {3}},
                        {{3}, {1}, {3}}, {{2, 3}, {3}, {2, 3}}, {{3}, {2, 1}, {2, 3}}, {{2, 1}, {1, 3}, {2, 3}},
                        {{1}, {1}, {1}}, {{0}, {}, {0}}};
  const std::int64_t sizes[][3] = {{5, 7, 3},     {1, 9, 40},   {40, 1, 40}, {33, 35, 70},
                                   {20, 20, 100}, {64, 96, 80}, {4, 4, 0}};
  for (const Case& c : cases) {
    for (const auto& [m, n, k] : sizes) {
      for (int transposes = 0; transposes < 4; ++transposes) {
        const MatmulParams params{(transposes & 1) != 0, (transposes & 2) != 0};
        const auto with = [](Shape shape, std::int64_t rows, std::int64_t columns, bool turned) {
          shape.push_back(turned ? columns : rows);
          shape.push_back(turned ? rows : columns);
          return shape;
        };
        const Shape a = with(c.a, m, k, params.transpose_a), b = with(c.b, k, n, params.transpose_b);
        Builder build("matmul" + text(a) + " by" + text(b) + " " + std::to_string(transposes));
        const BufferId left = build.state("a", f32(a), random_values(a.elements(), 1));
        const BufferId right = build.state("b", f32(b), random_values(b.elements(), 2));
        const BufferId out = build.result("out", f32(with(c.leading, m, n, false)));
        build.step("matmul", {left, right}, out, params);
        compare(build, out, 2e-5f);
      }
    }
  }
  for (const std::int32_t samples : {0, 1, 4}) {
    for (const std::int64_t size : {3, 20, 40}) {
      for (const std::int64_t capacity : {1, 4}) {
        if (samples > capacity) continue;
        for (const bool broadcast : {false, true}) {
          for (const bool transpose_a : {false, true}) {
            Builder build("matmul of part of a batch", capacity);
            build.rows(samples);
            const TensorType type = f32({capacity, size, size}, 1);
            const BufferId a = build.state("a", type, batch_values(type, samples, 1));
            const TensorType b_type = broadcast ? f32({size, size}) : type;
            const BufferId b = build.state("b", b_type, batch_values(b_type, samples, 2));
            const BufferId out = build.result("out", type);
            build.step("matmul", {a, b}, out, MatmulParams{transpose_a, false});
            compare(build, out, 2e-5f);
          }
        }
      }
    }
  }
}

TEST_F(Device, ComparisonsOfIntegers) {
  for (const std::string op : {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}) {
    Builder build(op + " of i32", 101);
    build.rows(77);
    const TensorType type = typed(DType::i32, {101, 3}, 1);
    const BufferId a = build.values("a", type, random_classes(303, 1, -3.0f, 3.0f));
    const BufferId b = build.values("b", typed(DType::i32, {3}), std::vector<std::int32_t>{-1, 0, 1});
    const BufferId out = build.result("out", typed(DType::boolean, {101, 3}, 1));
    build.step(op, {a, b}, out);
    compare<std::uint8_t>(build, out);
  }
}

// What a row gives does not depend on how many rows there are.
TEST_F(Device, RowsAreAlone) {
  const std::int64_t capacity = 64, width = 300;
  const auto result = [&](std::int32_t samples) {
    Builder build("rows", capacity);
    build.rows(samples);
    const TensorType type = f32({capacity, width}, 1);
    std::vector<float> values = random_values(capacity * width, 3);
    std::fill(values.begin() + samples * width, values.end(), 0.0f);
    const BufferId in = build.state("in", type, values);
    const BufferId weights = build.state("w", f32({width, 8}), random_values(width * 8, 4));
    const BufferId soft = build.step("softmax", {in}, build.result("soft", type), AxisParams{1});
    const BufferId product =
        build.step("matmul", {soft, weights}, build.result("product", f32({capacity, 8}, 1)), MatmulParams{});
    const BufferId out =
        build.step("logsumexp", {product}, build.result("out", f32({capacity}, 1)), ReduceParams{2, false});
    const Program program = build.finish(*cuda);
    const auto device = cuda->load(program);
    device->run(0, 1);
    return read<float>(*device, program, out);
  };
  const std::vector<float> all = result(capacity);
  for (const std::int32_t samples : {1, 17, 63}) {
    const std::vector<float> some = result(samples);
    for (std::size_t i = 0; i < some.size(); ++i) {
      ASSERT_EQ(some[i], i < static_cast<std::size_t>(samples) ? all[i] : 0.0f) << samples << " samples, row " << i;
    }
  }
}

TEST_F(Device, RepeatedRunsOfReductionsGiveTheSameBits) {
  Builder build("repeated");
  const BufferId in = build.state("in", f32({1000, 3000}), random_values(3000000, 3));
  std::vector<BufferId> outs;
  for (const std::string op : {"sum", "prod", "logsumexp"}) {
    for (const std::uint32_t axes : {1u, 2u, 3u}) {
      const TensorType type = f32(axes == 3 ? Shape{} : Shape{axes == 1 ? 3000 : 1000});
      outs.push_back(build.step(op, {in}, build.result(op, type), ReduceParams{axes, false}));
    }
  }
  const Program program = build.finish(*cuda);
  const auto first = cuda->load(program);
  const auto second = cuda->load(program);
  first->run(0, 1);
  second->run(0, 50);
  for (const BufferId out : outs) EXPECT_EQ(read<float>(*first, program, out), read<float>(*second, program, out));
}

}  // namespace
}  // namespace graphrun::testing
