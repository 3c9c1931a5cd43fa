// random_uniform, random_normal, permutation, dropout: (key, step, element) determines every bit, so all is exact. An
// independent program, written from the definition in base/random_bits.h, computed the literals (with the error
// function of its math library for the normal distribution).

#include "conformance/samples.h"

namespace graphrun::test::samples {
namespace {

Sample draw(std::string op, std::string name, std::vector<std::int64_t> shape, std::int64_t rows = 0, double at = 5,
            std::int64_t key = kKey) {
  return {.op = std::move(op),
          .name = std::move(name),
          .operands = {step(at)},
          .attributes = {{"shape", std::move(shape)}, {"rows", rows}, {"key", key}}};
}

Sample with(Sample sample, const AttrList& more, std::vector<double> expected = {}) {
  sample.attributes.insert(sample.attributes.end(), more.begin(), more.end());
  sample.expected = std::move(expected);
  return sample;
}

void add_draws(std::vector<Sample>& list, const std::string& op) {
  for (Sample& sample : std::vector<Sample>{
           draw(op, "scalar", {}), draw(op, "odd", {7, 13}), draw(op, "size_one_axes", {1, 5, 1}),
           draw(op, "large", {1037}), draw(op, "empty", {0, 3}), batch_of(5, draw(op, "full_rows", {5, 3}, 1)),
           batch_of(3, draw(op, "partial_rows", {5, 3}, 1)), batch_of(2, draw(op, "partial_double_rows", {10, 3}, 2)),
           batch_of(0, draw(op, "no_rows", {5, 3}, 1))}) {
    list.push_back(std::move(sample));
  }
}

void add_uniforms(std::vector<Sample>& list) {
  const std::string op = "random_uniform";
  add_draws(list, op);
  list.push_back(with(draw(op, "exact", {6}, 0, 0), {},
                      {0x1.70a044p-1, 0x1.8b1960p-1, 0x1.4a7a00p-4, 0x1.ea13fcp-2, 0x1.5b9428p-1, 0x1.48f834p-2}));
  list.push_back(with(draw(op, "exact_step_beyond_32_bits", {6}, 0, kBeyond32Bits), {},
                      {0x1.c8897ep-1, 0x1.00f220p-5, 0x1.2562dap-1, 0x1.0aa880p-3, 0x1.8f42e4p-2, 0x1.dcf430p-1}));
  list.push_back(with(draw(op, "exact_other_key", {6}, 0, 3, -1), {},
                      {0x1.d8daf0p-4, 0x1.89a1dap-1, 0x1.306568p-2, 0x1.324f08p-1, 0x1.668920p-5, 0x1.6a8a2cp-1}));
  list.push_back(with(draw(op, "exact_range", {6}, 0, 1), {{"low", -3.0}, {"high", 5.0}},
                      {0x1.353bfep+2, 0x1.821080p-2, 0x1.2f38e0p-2, -0x1.69bc04p+1, 0x1.223f88p+2, 0x1.74f4c0p+0}));
  // The same numbers for any shape: row 3 is outside the batch.
  list.push_back(with(batch_of(3, draw(op, "exact_partial_rows", {4, 2}, 1, 0), 4), {},
                      {0x1.70a044p-1, 0x1.8b1960p-1, 0x1.4a7a00p-4, 0x1.ea13fcp-2, 0x1.5b9428p-1, 0x1.48f834p-2}));
  list.back().expected.resize(8);
  list.push_back(with(draw(op, "one_value", {3}), {{"low", 2.5}, {"high", 2.5}}, {2.5, 2.5, 2.5}));
}

void add_normals(std::vector<Sample>& list) {
  const std::string op = "random_normal";
  add_draws(list, op);
  list.push_back(with(draw(op, "exact", {6}, 0, 0), {},
                      {0x1.2a5f96p-1, 0x1.7d1ff0p-1, -0x1.6686c2p+0, -0x1.b7cfa8p-5, 0x1.dbacdcp-2, -0x1.db5208p-2}));
  list.push_back(with(draw(op, "exact_step_beyond_32_bits", {6}, 0, kBeyond32Bits), {},
                      {0x1.3c4868p+0, -0x1.dc70a6p+0, 0x1.78f87cp-3, -0x1.201beep+0, -0x1.1e47a4p-2, 0x1.7cc8cap+0}));
  list.push_back(with(draw(op, "exact_other_key", {6}, 0, 3, -1), {},
                      {-0x1.32b548p+0, 0x1.784a7ap-1, -0x1.108898p-1, 0x1.fda1e4p-3, -0x1.b563f4p+0, 0x1.187944p-1}));
  list.push_back(with(draw(op, "exact_mean_and_deviation", {6}, 0, 1), {{"mean", 2.0}, {"deviation", 0.5}},
                      {0x1.821c8cp+1, 0x1.e6da90p+0, 0x1.e38982p+0, 0x1.fb22fcp-1, 0x1.6488c4p+1, 0x1.093164p+1}));
  list.push_back(with(draw(op, "no_deviation", {3}), {{"mean", 2.5}, {"deviation", 0.0}}, {2.5, 2.5, 2.5}));
}

Sample permutation(std::string name, std::int64_t n, double at, std::vector<double> expected = {},
                   std::int64_t key = kKey) {
  return {.op = "permutation",
          .name = std::move(name),
          .operands = {step(at)},
          .attributes = {{"n", n}, {"key", key}},
          .expected = std::move(expected)};
}

// Elements of step 2 kept at rate 1/2: 1 0 1 0 1 0 0 1 1 0 0 0; at rate 1/4: 1 1 1 0 1 1 0 1 1 1 0 0.
Sample dropout(std::string name, TensorType x, double rate, std::int64_t key = kKey) {
  // x / (1 - rate) with a rounded divisor: one more rounding than in ref.
  return {.op = "dropout",
          .name = std::move(name),
          .operands = {{x}, step(2)},
          .attributes = {{"rate", rate}, {"key", key}},
          .tolerance = {2, 0}};
}

void add_dropouts(std::vector<Sample>& list) {
  for (Sample& sample : std::vector<Sample>{
           dropout("scalar", f32({}), 0.5), dropout("odd", f32({7, 13}), 0.3), dropout("large", f32({1037}), 0.9),
           dropout("size_one_axes", f32({1, 5, 1}), 0.5), dropout("empty", f32({0, 3}), 0.5),
           dropout("f64", typed(DType::f64, {3, 5}), 0.3), dropout("other_key", f32({7, 13}), 0.3, -1),
           batch_of(5, dropout("full_rows", rows_f32({5, 3}), 0.3)),
           batch_of(3, dropout("partial_rows", rows_f32({5, 3}), 0.3)),
           batch_of(2, dropout("partial_double_rows", rows_f32({10, 3}, 2), 0.3)),
           batch_of(0, dropout("no_rows", rows_f32({5, 3}), 0.3)),
           differentiable(dropout("gradient", f32({3, 4}), 0.5)),
           differentiable(batch_of(3, dropout("gradient_rows", rows_f32({5, 2}), 0.3)))}) {
    list.push_back(std::move(sample));
  }
  const auto exact = [&](std::string name, double rate, std::vector<double> x, std::vector<double> y) {
    Sample sample = dropout(std::move(name), f32({static_cast<std::int64_t>(x.size())}), rate);
    sample.operands[0].values = std::move(x);
    sample.expected = std::move(y);
    sample.tolerance = {};
    list.push_back(sample);
  };
  exact("exact", 0.5, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {2, 0, 6, 0, 10, 0, 0, 16, 18, 0, 0, 0});
  exact("exact_quarter", 0.25, {3, 6, 9, 12, 15, 18}, {4, 8, 12, 0, 20, 24});
  exact("no_rate", 0, {1, 2, -0.1, 4, kInf, kNan}, {1, 2, -0.1, 4, kInf, kNan});
  exact("dropped_is_zero_whatever_it_was", 0.5, {kNan, kNan, kInf, kInf, -kInf, -kInf}, {kNan, 0, kInf, 0, -kInf, 0});
}

}  // namespace

std::vector<Sample> random() {
  std::vector<Sample> list;
  add_uniforms(list);
  add_normals(list);
  list.push_back(permutation("exact", 11, 0, {7, 2, 4, 10, 6, 3, 1, 0, 9, 5, 8}));
  list.push_back(permutation("exact_next_step", 11, 1, {8, 4, 2, 3, 5, 7, 10, 6, 0, 9, 1}));
  list.push_back(permutation("exact_other_key", 11, 0, {2, 7, 0, 5, 10, 6, 1, 3, 9, 8, 4}, -1));
  list.push_back(permutation("exact_step_beyond_32_bits", 11, kBeyond32Bits, {3, 1, 2, 0, 7, 6, 4, 10, 8, 9, 5}));
  list.push_back(permutation("exact_two", 2, 0, {0, 1}));
  list.push_back(permutation("exact_power_of_four", 16, 0, {7, 2, 12, 10, 6, 3, 1, 14, 9, 15, 8, 11, 13, 4, 0, 5}));
  list.push_back(permutation("exact_17", 17, 2, {13, 5, 14, 0, 3, 4, 10, 16, 12, 7, 1, 11, 8, 9, 2, 6, 15}));
  list.push_back(permutation("one", 1, 0, {0}));
  list.push_back(permutation("none", 0, 0));
  list.push_back(permutation("large", 1037, 3));
  add_dropouts(list);
  return list;
}

}  // namespace graphrun::test::samples
