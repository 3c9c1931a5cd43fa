// programs.h: hand-written Programs for the device tests.
// Contract: buffers lie one after the other at multiples of kAlignment; workspaces are what the executor asks for.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "graphrun/executor.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
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
  // A data set in Layout::codes.
  BufferId codes(std::string name, const TensorType& type, const std::vector<float>& values, double divisor) {
    const BufferId id = this->values(std::move(name), type, values, BufferKind::data);
    program_.buffers[id].layout = Layout::codes;
    program_.buffers[id].divisor = divisor;
    program_.buffers[id].bytes /= sizeof(float);
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

  // The elements of `of` that the view shows; of another type than the view, they are a reshape of it.
  BufferId view(std::string name, BufferId of, const View& view, std::optional<TensorType> as = {}) {
    const Buffer& shown = program_.buffers[of];
    const std::uint64_t size = size_of(shown.type.dtype);
    Buffer buffer{std::move(name), as.value_or(TensorType{shown.type.dtype, view.extents, 0}), BufferKind::activation,
                  of};
    if (!(buffer.type.shape == view.extents)) buffer.extents = view.extents;
    buffer.offset = shown.offset + static_cast<std::uint64_t>(view.offset) * size;
    buffer.bytes = static_cast<std::uint64_t>(span_of(view)) * size;
    buffer.layout = Layout::strided;
    buffer.strides.assign(view.strides, view.strides + view.extents.rank());
    program_.buffers.push_back(std::move(buffer));
    return static_cast<BufferId>(program_.buffers.size() - 1);
  }

  // A value that lives within a chain.
  BufferId inside(std::string name, const TensorType& type) {
    const auto id = static_cast<BufferId>(program_.buffers.size());
    program_.buffers.push_back({std::move(name), type, BufferKind::tile, id, 0, 0, false, Layout::registers});
    return id;
  }
  // The steps from here on are a region over elements; those since its last chain, or its begin, are one more chain.
  void begin_region() { program_.phases[0].regions.emplace_back().last = steps(); }
  void end_chain() {
    Region& region = program_.phases[0].regions.back();
    region.chains.push_back({region.last, steps()});
    region.last = steps();
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
    for (Region& region : program_.phases[0].regions) {
      RegionSignature signature;
      for (const ElementChain& chain : region.chains) {
        const Step& last = program_.phases[0].steps[chain.last - 1];
        signature.chains.push_back(last.op == Op::record ? 1 : program_.buffers[last.output].type.shape.elements());
        for (std::uint32_t i = chain.first; i < chain.last; ++i) {
          const Step& step = program_.phases[0].steps[i];
          StepSignature& one = signature.rows.emplace_back(
              StepSignature{step.op, step.params, {}, program_.buffers[step.output].type, true});
          for (const BufferId input : step.inputs) one.inputs.push_back(program_.buffers[input].type);
        }
      }
      region.tiling = executor.region_choices(signature, find_target(program_.target)).tiling;
    }
    check(program_);
    return program_;
  }

 private:
  std::uint32_t steps() const { return static_cast<std::uint32_t>(program_.phases[0].steps.size()); }
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

// A region of three chains over elements: operands of every shape that is broadcast to (2, rows, columns), a number, a
// result that takes the place of an operand, rows past the count of a batch, and a record beside a counter. Or the same
// steps without a region.
struct ElementProgram {
  static constexpr std::int64_t kShort = 3;  // rows less than the capacity
  inline static const Shape kSmall[] = {{30, 4}, {33, 7}, {16, 1000}};
  inline static const Shape kLarge[] = {{2048, 32}, {4099, 16}, {9369, 7}};  // the last is no multiple of four

  Program program;
  std::vector<BufferId> stored;

  ElementProgram(const Shape& shape, bool region) {
    const std::int64_t rows = shape[0], columns = shape[1];
    Builder build("elements", rows);
    const auto kept = [&](BufferId id) { return stored.push_back(id), id; };
    const auto value = [&](const char* name, const TensorType& type) {
      return region ? build.inside(name, type) : build.buffer(name, type);
    };
    const auto random = [&](const char* name, Shape of, std::uint32_t seed) {
      return build.state(name, f32(of), random_values(of.elements(), seed, 0.5f, 1.5f));
    };
    const Shape all = {2, rows, columns};
    const BufferId same = kept(random("same", all, 1)), number = random("number", {}, 2);
    const BufferId period = random("period", {columns}, 3), repeat = random("repeat", {2, rows, 1}, 4);
    const BufferId strided = random("strided", {2, 1, columns}, 5);
    const BufferId data = random("data", shape, 6);
    const BufferId loss = random("loss", {}, 7);
    const BufferId ring = kept(build.state("ring", f32({5}), {})), counter = kept(build.counter("counter"));
    const BufferId count =
        build.values("count", scalar(DType::i32), std::vector<std::int32_t>{static_cast<std::int32_t>(rows - kShort)},
                     BufferKind::counter);
    build.rows(count);
    const BufferId samples =
        build.step("minibatch", {data, counter}, build.buffer("samples", f32(shape, 1)), MinibatchParams{rows, rows});

    if (region) build.begin_region();
    build.rows(kNoBuffer);
    const BufferId squared = build.step("square", {number}, value("squared", f32({})));
    const BufferId a = build.step("add", {same, period}, value("a", f32(all)));
    const BufferId b = build.step("mul", {a, repeat}, value("b", f32(all)));
    const BufferId c = build.step("sub", {b, strided}, kept(build.buffer("c", f32(all))));
    const BufferId less = build.step("less", {c, same}, value("less", {DType::boolean, all, 0}));
    const BufferId one = build.step("cast", {less}, value("one", f32(all)));
    const BufferId scaled = build.step("mul", {one, squared}, value("scaled", f32(all)));
    const BufferId next = build.step("add", {scaled, c}, value("next", f32(all)));
    build.step("assign", {same, next}, same);
    if (region) build.end_chain();

    build.rows(count);
    const BufferId grown = build.step("exp", {samples}, value("grown", f32(shape, 1)));
    const BufferId mixed = build.step("mul", {grown, period}, kept(build.buffer("mixed", f32(shape, 1))));
    build.step("add", {mixed, grown}, kept(build.buffer("sum", f32(shape, 1))));
    if (region) build.end_chain();

    build.rows(kNoBuffer);
    build.step("record", {ring, loss, counter}, ring);
    build.step("increment", {counter}, counter);
    if (region) build.end_chain();
    program = build.finish(*find_executor("cuda"));
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
