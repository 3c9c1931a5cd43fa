// Ops on the data set and the states: minibatch, row_count, increment, record, assign.
#include "conformance/samples.h"

namespace graphrun::test::samples {
namespace {

// Step 8 with 11 samples in batches of 4 is batch 2 of the third epoch: 3 samples.
Sample minibatch(std::string name, TensorType data, std::int64_t capacity, double at, std::int64_t count) {
  return {.op = "minibatch",
          .name = std::move(name),
          .operands = {{data, 0, 99}, step(at)},
          .attributes = {{"capacity", capacity}},
          .capacity = capacity,
          .count = count};
}

// Element i is i, so the result shows the selected rows. An independent program, written from the definition in
// base/random_bits.h, computed the literals.
Sample picked(std::string name, std::int64_t total, std::int64_t capacity, double at, std::vector<double> expected,
              bool shuffle, bool drop_last = false, std::int64_t key = kKey) {
  Sample s = minibatch(std::move(name), f32({total}), capacity, at, static_cast<std::int64_t>(expected.size()));
  for (std::int64_t i = 0; i < total; ++i) s.operands[0].values.push_back(static_cast<double>(i));
  for (const auto& [flag, value] : {std::pair{"shuffle", shuffle}, std::pair{"drop_last", drop_last}}) {
    s.attributes.emplace_back(flag, value);
  }
  s.attributes.emplace_back("key", key);
  s.expected = std::move(expected);
  s.expected.resize(static_cast<std::size_t>(capacity));
  return s;
}

Sample shuffled(std::string name, TensorType data, std::int64_t capacity, double at, std::int64_t count) {
  Sample s = minibatch(std::move(name), data, capacity, at, count);
  s.attributes.emplace_back("shuffle", true);
  s.attributes.emplace_back("key", kKey);
  return s;
}

Sample row_count(std::string name, std::int64_t total, std::int64_t capacity, double at, double expected) {
  return {.op = "row_count",
          .name = std::move(name),
          .operands = {step(at)},
          .attributes = {{"total", total}, {"capacity", capacity}},
          .expected = {expected}};
}

// The same batches in shards; `at` is step * shards + shard.
Sample in_shards(Sample sample, std::int64_t shards) {
  sample.attributes.emplace_back("shards", shards);
  sample.capacity = (sample.capacity + shards - 1) / shards;
  if (sample.op == "minibatch") sample.expected.resize(static_cast<std::size_t>(sample.capacity));
  return sample;
}

// Uses the first `rows` rows of the data.
Sample varying(Sample sample, double rows) {
  sample.op = "varying_" + std::string(sample.op);
  sample.name += "_of_some";
  sample.operands.push_back(step(rows));
  return sample;
}

Sample record(std::string name, std::int64_t size, double at, std::vector<double> expected) {
  return {.op = "record",
          .name = std::move(name),
          .operands = {{f32({size}), 0, 0, {1, 2, 3, 4}, "metric"}, {f32({}), 0, 0, {9}}, step(at)},
          .expected = std::move(expected)};
}

Sample assign(std::string name, TensorType type, std::string_view state) {
  return {.op = "assign", .name = std::move(name), .operands = {{type, 0, 9, {}, state}, {type, 0, 9}}};
}

}  // namespace

std::vector<Sample> sources() {
  std::vector<Sample> list = {
      minibatch("first", f32({11, 3}), 4, 0, 4),
      minibatch("second", f32({11, 3}), 4, 1, 4),
      minibatch("last_partial_rows", f32({11, 3}), 4, 2, 3),
      minibatch("second_round", f32({11, 3}), 4, 4, 4),
      minibatch("late_partial_rows", f32({11, 3}), 4, 8, 3),
      minibatch("whole_is_a_view", f32({11, 3}), 11, 7, 11),
      minibatch("larger_than_the_data", f32({3, 2}), 5, 6, 3),
      minibatch("batches_of_one", f32({4, 3}), 1, 6, 1),
      minibatch("vector", f32({11}), 4, 2, 3),
      minibatch("rank_three", f32({5, 2, 3}), 2, 2, 1),
      minibatch("even", f32({8, 3}), 4, 3, 4),
      minibatch("large", f32({1037, 31}), 256, 4, 13),
      minibatch("i32", typed(DType::i32, {7, 3}), 4, 1, 3),
      minibatch("f64", typed(DType::f64, {7, 3}), 4, 1, 3),
      minibatch("boolean", typed(DType::boolean, {7, 3}), 4, 1, 3),
      minibatch("step_beyond_32_bits", f32({11, 2}), 4, kBeyond32Bits, 3),
      // Epoch 0 is 7 2 4 10 6 3 1 0 9 5 8, epoch 1 is 8 4 2 3 5 7 10 6 0 9 1.
      picked("shuffle_first", 11, 4, 0, {7, 2, 4, 10}, true),
      picked("shuffle_second", 11, 4, 1, {6, 3, 1, 0}, true),
      picked("shuffle_last_partial_rows", 11, 4, 2, {9, 5, 8}, true),
      picked("shuffle_next_epoch", 11, 4, 3, {8, 4, 2, 3}, true),
      picked("shuffle_next_epoch_partial_rows", 11, 4, 5, {0, 9, 1}, true),
      picked("shuffle_other_key", 11, 4, 0, {2, 7, 0, 5}, true, false, -1),
      picked("shuffle_whole_is_no_view", 11, 11, 1, {8, 4, 2, 3, 5, 7, 10, 6, 0, 9, 1}, true),
      picked("shuffle_larger_than_the_data", 5, 8, 3, {3, 2, 4, 0, 1}, true),
      picked("shuffle_one", 1, 1, 9, {0}, true),
      picked("shuffle_batches_of_one", 17, 1, 2 * 17 + 7, {16}, true),
      picked("shuffle_epoch_beyond_32_bits", 11, 11, kBeyond32Bits, {3, 1, 2, 0, 7, 6, 4, 10, 8, 9, 5}, true),
      picked("drop_last_first", 11, 4, 0, {0, 1, 2, 3}, false, true),
      picked("drop_last_second_round", 11, 4, 2, {0, 1, 2, 3}, false, true),
      picked("drop_last_second_round_second", 11, 4, 3, {4, 5, 6, 7}, false, true),
      picked("drop_last_divides", 8, 4, 3, {4, 5, 6, 7}, false, true),
      picked("shuffle_drop_last", 11, 4, 1, {6, 3, 1, 0}, true, true),
      picked("shuffle_drop_last_next_epoch", 11, 4, 2, {8, 4, 2, 3}, true, true),
      shuffled("shuffle_rows", f32({11, 3}), 4, 2, 3),
      shuffled("shuffle_i32", typed(DType::i32, {7, 3}), 4, 1, 3),
      shuffled("shuffle_boolean", typed(DType::boolean, {7, 3}), 4, 1, 3),
      shuffled("shuffle_f64", typed(DType::f64, {7, 3}), 4, 1, 3),
      shuffled("shuffle_rank_three", f32({5, 2, 3}), 2, 2, 1),
      shuffled("shuffle_large", f32({1037, 31}), 256, 4, 13),
      row_count("full", 11, 4, 0, 4),
      row_count("last", 11, 4, 2, 3),
      row_count("next_round", 11, 4, 3, 4),
      row_count("late", 11, 4, 8, 3),
      row_count("divides", 12, 4, 5, 4),
      row_count("one_batch", 3, 3, 7, 3),
      row_count("larger_than_the_data", 3, 5, 7, 3),
      row_count("step_beyond_32_bits", 11, 4, kBeyond32Bits, 3),
      varying(minibatch("first", f32({11, 3}), 4, 0, 4), 7),
      varying(minibatch("last_partial_rows", f32({11, 3}), 4, 1, 3), 7),
      varying(minibatch("second_round", f32({11, 3}), 4, 2, 4), 7),
      varying(minibatch("all", f32({11, 3}), 4, 2, 3), 11),
      varying(minibatch("more_than_there_are", f32({11, 3}), 4, 2, 3), kBeyond32Bits),
      varying(minibatch("none_is_one", f32({11, 3}), 4, 5, 1), 0),
      varying(minibatch("one_batch", f32({11, 3}), 11, 5, 2), 2),
      varying(minibatch("i32", typed(DType::i32, {7, 3}), 4, 1, 2), 6),
      varying(minibatch("f64", typed(DType::f64, {7, 3}), 4, 1, 2), 6),
      varying(minibatch("boolean", typed(DType::boolean, {7, 3}), 4, 1, 2), 6),
      varying(minibatch("large", f32({1037, 31}), 256, 3, 232), 1000),
      varying(picked("numbers", 11, 4, 1, {4, 5, 6}, false), 7),
      varying(picked("numbers_drop_last", 11, 4, 1, {0, 1, 2, 3}, false, true), 7),
      varying(picked("too_few_to_drop", 11, 4, 1, {0, 1, 2, 3}, false, true), 2),
      varying(shuffled("shuffle_rows", f32({11, 3}), 4, 1, 3), 7),
      varying(row_count("full", 11, 4, 0, 4), 7),
      varying(row_count("last", 11, 4, 1, 3), 7),
      varying(row_count("next_round", 11, 4, 2, 4), 7),
      varying(row_count("all", 11, 4, 2, 3), 11),
      varying(row_count("more_than_there_are", 11, 4, 2, 3), 12),
      varying(row_count("none_is_one", 11, 4, 2, 1), 0),
      in_shards(picked("shard_first", 11, 4, 0, {0, 1}, false), 2),
      in_shards(picked("shard_second", 11, 4, 3, {6, 7}, false), 2),
      in_shards(picked("shard_last_partial_rows", 11, 4, 5, {10}, false), 2),
      in_shards(picked("shard_next_epoch", 11, 4, 6, {0, 1}, false), 2),
      in_shards(picked("shard_of_unequal_size", 11, 10, 3, {9}, false), 4),
      in_shards(picked("shard_without_rows", 11, 10, 6, {}, false), 4),
      in_shards(picked("shard_shuffle_next_epoch", 11, 4, 7, {2, 3}, true), 2),
      in_shards(row_count("shard_full", 11, 4, 1, 2), 2),
      in_shards(row_count("shard_last", 11, 4, 5, 1), 2),
      in_shards(row_count("shard_without_rows", 11, 10, 6, 0), 4),
      {.op = "shard_step",
       .name = "number",
       .operands = {step(5), step(3)},
       .attributes = {{"shards", std::int64_t{8}}},
       .expected = {43}},
      {.op = "divide_step", .name = "keeps", .operands = {step(11)}, .attributes = {{"every", 4.0}}, .expected = {2}},
      {.op = "combine_shards",
       .name = "copies",
       .operands = {{f32({3}), 0, 0, {1, 2, 3}}},
       .attributes = {{"shards", std::int64_t{8}}, {"combine", std::int64_t{2}}},
       .expected = {1, 2, 3}},
      record("first", 4, 0, {9, 2, 3, 4}),
      record("last", 4, 3, {1, 2, 3, 9}),
      record("wraps", 4, 6, {1, 2, 9, 4}),
      record("one", 1, 5, {9}),
      record("step_beyond_32_bits", 3, kBeyond32Bits, {1, 2, 9}),
      assign("parameter", f32({3, 5}), "parameter"),
      assign("slot", f32({1037}), "slot"),
      assign("metric", typed(DType::f64, {}), "metric"),
      assign("counter", typed(DType::u64, {}), "counter"),
      assign("empty", f32({0, 3}), "parameter"),
  };
  Sample exact = minibatch("exact", f32({5, 2}), 3, 1, 2);
  exact.operands[0].values = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  exact.expected = {6, 7, 8, 9, 0, 0};
  list.push_back(exact);
  for (const auto& [name, before] : {std::pair{"zero", 0.0}, std::pair{"carries_into_32_bits", 4294967295.0}}) {
    list.push_back({.op = "increment", .name = name, .operands = {step(before)}, .expected = {before + 1}});
  }
  Sample moved = assign("exact", f32({3}), "parameter");
  moved.operands[1].values = {1, 2, 3};
  moved.expected = {1, 2, 3};
  list.push_back(moved);
  return list;
}

}  // namespace graphrun::test::samples
