// programs.h: hand-written Programs for the device tests.
// Contract: buffers lie one after the other at multiples of kAlignment; workspaces are what the executor asks for.
#pragma once

#include <algorithm>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "graphrun/executor.h"
#include "graphrun/op.h"
#include "graphrun/params/axes.h"
#include "graphrun/params/matmul.h"
#include "graphrun/params/minibatch.h"
#include "graphrun/program.h"

namespace graphrun::testing {

inline TensorType f32(Shape shape, std::int64_t rows = 0) {
  return {DType::f32, shape, rows};
}
inline TensorType scalar(DType dtype) {
  return {dtype, {}, 0};
}

class Builder {
 public:
  explicit Builder(std::string name, std::int64_t capacity = 0) {
    program_.name = std::move(name);
    program_.target = "h200";
    program_.phases.push_back({"run", capacity, {}});
  }

  BufferId buffer(std::string name, const TensorType& type, BufferKind kind = BufferKind::activation,
                  bool poll = false) {
    return place(std::move(name), type, kind, type.bytes(), poll);
  }
  BufferId state(std::string name, const TensorType& type, const std::vector<float>& values, bool poll = false) {
    const BufferId id = buffer(std::move(name), type, BufferKind::parameter, poll);
    std::vector<std::byte> bytes(type.bytes());
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    program_.initial.push_back({id, bytes});
    return id;
  }
  // Of any dtype, bytes as they are.
  template <class T>
  BufferId values(std::string name, const TensorType& type, const std::vector<T>& values,
                  BufferKind kind = BufferKind::parameter) {
    const BufferId id = buffer(std::move(name), type, kind);
    std::vector<std::byte> bytes(type.bytes());
    if (values.size() * sizeof(T) != bytes.size()) throw std::logic_error("the values do not fill " + to_string(type));
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    program_.initial.push_back({id, bytes});
    return id;
  }
  // A result that starts as garbage: what a kernel leaves out shows.
  BufferId result(std::string name, const TensorType& type) {
    return values(std::move(name), type, std::vector<std::uint8_t>(type.bytes(), 0xab));
  }
  BufferId counter(std::string name, bool poll = false, std::uint64_t start = 0) {
    const BufferId id = buffer(std::move(name), scalar(DType::u64), BufferKind::counter, poll);
    std::vector<std::byte> bytes(sizeof(start));
    std::memcpy(bytes.data(), &start, sizeof(start));
    program_.initial.push_back({id, bytes});
    return id;
  }
  // The batch that the steps after this one work on.
  void rows(BufferId count) { row_count_ = count; }
  void rows(std::int32_t samples) {
    rows(values("count", scalar(DType::i32), std::vector<std::int32_t>{samples}, BufferKind::counter));
  }

  BufferId step(std::string op, std::vector<BufferId> inputs, BufferId output, const Params& params = {}) {
    program_.phases[0].steps.push_back(
        {find_op(op).value(), program_.buffers[output].name, std::move(inputs), output, kNoBuffer, row_count_, params});
    return output;
  }

  // Gives every step the scratch that the executor wants, and another one that runs the Program, too.
  Program finish(const Executor& executor, const Executor* other = nullptr) {
    for (Step& step : program_.phases[0].steps) {
      std::vector<TensorType> types;
      for (const BufferId input : step.inputs) types.push_back(program_.buffers[input].type);
      const auto workspace_of = [&](const Executor& one, std::string_view target) {
        const Support support =
            one.supports({step.op, step.params, types, program_.buffers[step.output].type, true}, find_target(target));
        if (!support.yes) throw std::logic_error(std::string(name_of(step.op)) + " is declined: " + support.reason);
        return support.workspace_bytes;
      };
      std::uint64_t bytes = workspace_of(executor, program_.target);
      if (other != nullptr) bytes = std::max(bytes, workspace_of(*other, other->default_target()));
      if (bytes > 0) step.workspace = place("workspace", {DType::u64, {}, 0}, BufferKind::workspace, bytes, false);
    }
    check(program_);
    return program_;
  }

 private:
  BufferId place(std::string name, const TensorType& type, BufferKind kind, std::uint64_t bytes, bool poll) {
    const auto id = static_cast<BufferId>(program_.buffers.size());
    program_.buffers.push_back({std::move(name), type, kind, id, program_.arena_bytes, bytes, poll});
    program_.arena_bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return id;
  }

  Program program_;
  BufferId row_count_ = kNoBuffer;
};

inline std::vector<float> random_values(std::int64_t count, std::uint32_t seed, float low = -1.0f, float high = 1.0f) {
  std::mt19937 engine(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    value = low + (high - low) * static_cast<float>(engine() >> 8) * 0x1p-24f;
  }
  return values;
}

// Least squares by gradient descent in batches of 4 out of 10 samples: the third batch is short.
struct Regression {
  Builder build{"regression", 4};
  BufferId counter, weights, ring, activated;

  explicit Regression(std::int64_t samples = 10, std::int64_t ring_size = 16) {
    const std::int64_t features = 3;
    const MinibatchParams batches{samples, 4};
    const BufferId data = build.state("data", f32({samples, features}), random_values(samples * features, 11));
    const BufferId target = build.state("target", f32({samples, 1}), random_values(samples, 12));
    counter = build.counter("step", true);
    weights = build.state("w", f32({features, 1}), {}, true);
    ring = build.state("losses", f32({ring_size}), {}, true);
    const BufferId rate = build.state("rate", f32({}), {0.05f});
    const auto batch = [&](const char* name, std::int64_t columns) { return build.buffer(name, f32({4, columns}, 1)); };
    const BufferId count = build.buffer("count", scalar(DType::i32));
    build.step("row_count", {counter}, count, batches);
    build.rows(count);
    const BufferId x = build.step("minibatch", {data, counter}, batch("x", features), batches);
    const BufferId y = build.step("minibatch", {target, counter}, batch("y", 1), batches);
    const BufferId z = build.step("matmul", {x, weights}, batch("z", 1), MatmulParams{});
    const BufferId error = build.step("sub", {z, y}, batch("error", 1));
    const BufferId squares = build.step("square", {error}, batch("squares", 1));
    const BufferId loss = build.step("sum", {squares}, build.buffer("loss", f32({})), ReduceParams{3, false});
    activated = build.step("exp", {z}, build.buffer("exp", f32({4, 1}, 1), BufferKind::activation));
    const BufferId gradient =
        build.step("matmul", {x, error}, build.buffer("dw", f32({features, 1})), MatmulParams{true, false});
    const BufferId change = build.step("mul", {gradient, rate}, build.buffer("change", f32({features, 1})));
    const BufferId next = build.step("sub", {weights, change}, build.buffer("next", f32({features, 1})));
    build.step("assign", {weights, next}, weights);
    build.step("record", {ring, loss, counter}, ring);
    build.step("increment", {counter}, counter);
  }
};

template <class T>
std::vector<T> read(Runnable& runnable, const Program& program, BufferId id) {
  std::vector<T> values(program.buffers[id].type.bytes() / sizeof(T));
  runnable.read(id, std::as_writable_bytes(std::span(values)));
  return values;
}

inline std::uint64_t counted(const Runnable& runnable, std::string_view name) {
  for (const auto& [key, value] : runnable.counters()) {
    if (key == name) return value;
  }
  throw std::logic_error("there is no counter " + std::string(name));
}

}  // namespace graphrun::testing
