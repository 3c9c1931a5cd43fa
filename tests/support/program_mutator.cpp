#include "support/program_mutator.h"

#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "graphrun/op.h"
#include "graphrun/params.h"
#include "types/op_rules.h"

namespace graphrun::test {
namespace {

class Mutator {
 public:
  Mutator(Program& program, std::mt19937_64& random) : program_(program), random_(random) {}

  void run() {
    switch (below(12)) {
      case 0:
        return whole_program();
      case 1:
      case 2:
      case 3:
        return buffer();
      case 4:
        return initial();
      case 5:
      case 6:
        if (Region* found = region()) return change(*found);
        return step();
      case 7:
        if (!program_.phases.empty()) number(any(program_.phases).capacity);
        return;
      default:
        return step();
    }
  }

 private:
  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random_() % n); }
  bool once_in(std::size_t n) { return below(n) == 0; }
  template <class T>
  T& any(std::vector<T>& list) {
    return list[below(list.size())];
  }

  // Sets x to a nearby number, or to an edge case of arithmetic.
  template <class T>
  void number(T& x) {
    static constexpr std::uint64_t kFeared[] = {
        0,          1,          2,          3,          4,          7,           8,          15,         16,
        17,         64,         256,        257,        0x7fffffff, 0x80000000,  0xffffffff, 1ull << 32, 1ull << 40,
        1ull << 43, 1ull << 53, 1ull << 62, ~0ull >> 1, 1ull << 63, ~0ull - 255, ~0ull};
    const auto old = static_cast<std::uint64_t>(x);
    switch (below(6)) {
      case 0:
        x = static_cast<T>(old + 1);
        break;
      case 1:
        x = static_cast<T>(old - 1);
        break;
      case 2:
        x = static_cast<T>(old * 2);
        break;
      case 3:
        x = static_cast<T>(0 - old);
        break;
      case 4:
        x = static_cast<T>(old ^ (1ull << below(64)));
        break;
      default:
        x = static_cast<T>(kFeared[below(std::size(kFeared))]);
    }
  }
  void number(bool& x) { x = !x; }
  void number(double& x) {
    static constexpr double kFeared[] = {0, -0.0, 1, -1, 0.5, 1e300, -1e300, 1e-310, INFINITY, -INFINITY, NAN};
    x = kFeared[below(std::size(kFeared))];
  }
  template <class E>
  void enumerator(E& x, int names) {
    x = static_cast<E>(once_in(4) ? below(256) : below(static_cast<std::size_t>(names)));
  }
  void id(BufferId& x) {
    if (once_in(5)) return number(x);
    x = once_in(5) ? kNoBuffer : static_cast<BufferId>(below(program_.buffers.size()));
  }
  // Removes, duplicates or changes an entry.
  template <class T, class Change>
  void entries(std::vector<T>& list, Change change_one) {
    if (list.empty()) return;
    const std::size_t at = below(list.size());
    const auto place = list.begin() + static_cast<std::ptrdiff_t>(at);
    if (once_in(6)) {
      list.erase(place);
    } else if (once_in(6)) {
      const T copy = *place;
      list.insert(place, copy);
    } else if (once_in(6)) {
      std::swap(list[at], list[below(list.size())]);
    } else {
      change_one(list[at]);
    }
  }

  void whole_program() {
    switch (below(5)) {
      case 0:
        return number(program_.arena_bytes);
      case 1:
        return number(program_.lower_bound);
      case 2:
        program_.target = once_in(2) ? "h200" : once_in(2) ? "" : "nowhere";
        return;
      case 3:
        return enumerator(program_.math, 2);
      default:
        return entries(program_.phases, [&](Phase& phase) { entries(phase.steps, [](Step&) {}); });
    }
  }

  void type(TensorType& type) {
    switch (below(4)) {
      case 0:
        return enumerator(type.dtype, 5);
      case 1:
        return number(type.rows);
      case 2:
        if (type.shape.rank() > 0) {
          number(type.shape[static_cast<int>(below(static_cast<std::size_t>(type.shape.rank())))]);
        }
        return;
      default:
        if (once_in(2) && type.shape.rank() < kMaxRank) {
          type.shape.push_back(static_cast<std::int64_t>(below(4)));
        } else if (type.shape.rank() > 0) {
          type.shape = Shape(type.shape.dims().first(static_cast<std::size_t>(type.shape.rank()) - 1));
        }
    }
  }

  void buffer() {
    if (program_.buffers.empty()) return;
    Buffer& b = any(program_.buffers);
    switch (below(11)) {
      case 0:
        return enumerator(b.kind, 9);
      case 1:
        return id(b.storage);
      case 2:
        return number(b.offset);
      case 3:
        return number(b.bytes);
      case 4:
        return number(b.poll);
      case 5:
        enumerator(b.layout, 5);
        if (once_in(2)) return number(b.divisor);
        return number(b.block);
      case 6:
        b.offset = any(program_.buffers).offset;  // overlaps another buffer
        return;
      case 7:
        b = any(program_.buffers);
        return;
      case 8:
        return type(b.type);
      case 9:
        if (!b.strides.empty() && !once_in(4)) return number(any(b.strides));
        b.layout = graphrun::Layout::strided;
        b.storage = static_cast<BufferId>(below(program_.buffers.size()));
        b.strides.assign(static_cast<std::size_t>(b.type.shape.rank()), static_cast<std::int64_t>(below(4)));
        return;
      default:  // keeps the byte count consistent
        type(b.type);
        if (b.type.dtype > DType::boolean) return;
        try {
          b.bytes = b.type.bytes();
        } catch (const std::exception&) {  // too large, or negative
        }
    }
  }

  void initial() {
    entries(program_.initial, [&](InitialValue& value) {
      if (once_in(3)) return id(value.buffer);
      if (once_in(3)) return value.bytes.resize(below(64));
      for (std::byte& byte : value.bytes) byte = static_cast<std::byte>(random_());
    });
  }

  void step() {
    if (program_.phases.empty()) return;
    Phase& phase = any(program_.phases);
    entries(phase.steps, [&](Step& step) {
      switch (below(8)) {
        case 0:
          do {
            step.op = static_cast<Op>(below(kOps));
          } while (name_of(step.op) == "?" && !once_in(8));
          return;
        case 1:
        case 2:
          return entries(step.inputs, [&](BufferId& input) { id(input); });
        case 3:
          return id(step.output);
        case 4:
          return id(step.workspace);
        case 5:
          return id(step.row_count);
        default:
          return params(step.params);
      }
    });
  }

  void params(Params& params) {
    if (once_in(4)) {
      const Params all[] = {NoParams(),   ScalarParams(),    MatmulParams(),  ReduceParams(),
                            AxisParams(), MinibatchParams(), PermuteParams(), SliceParams(),
                            PadParams(),  RandomParams(),    WindowParams(),  ShardParams()};
      static_assert(std::size(all) == std::variant_size_v<Params::variant>);
      params = all[below(std::size(all))];
      return;
    }
    std::vector<const void*> seen;
    std::size_t fields = 0;
    params.describe([&](std::string_view, const auto&) { ++fields; });
    const std::size_t wanted = below(fields);
    std::size_t at = 0;
    const auto change_field = [&](std::string_view, const auto& field) {
      if (at++ != wanted) return;
      using F = std::remove_cvref_t<decltype(field)>;
      if constexpr (std::is_same_v<F, std::span<const std::int32_t>>) {
        number(const_cast<std::int32_t&>(field[below(field.size())]));
      } else {
        number(const_cast<F&>(field));
      }
    };
    auto* const product = params.get_if<MatmulParams>();
    if (product == nullptr) return params.describe(change_field);
    if (once_in(4)) return enumerator(product->precision, 2);
    number(once_in(2) ? product->transpose_a : product->transpose_b);
  }

  Region* region() {
    std::vector<Region*> all;
    for (Phase& phase : program_.phases) {
      for (Region& r : phase.regions) all.push_back(&r);
    }
    return all.empty() ? nullptr : any(all);
  }

  void change(Region& r) {
    if (!r.chains.empty() && !once_in(8)) {
      if (once_in(8)) return number(r.last);
      return entries(r.chains, [&](ElementChain& chain) { number(once_in(2) ? chain.first : chain.last); });
    }
    switch (below(10)) {
      case 0:
        return number(r.last);
      case 1:
        return id(r.accumulators);
      case 2:
      case 3:
      case 4:
      case 5:
        return change(r.tiling);
      default:
        return entries(r.stages, [&](Stage& stage) { change(stage); });
    }
  }
  void change(Tiling& tiling) {
    if (once_in(16)) {  // for another kind of machine
      if (tiling.index() == 0) {
        tiling = GpuTiling{256, 1};
      } else {
        tiling = HostTiling{};
      }
    } else if (auto* gpu = std::get_if<GpuTiling>(&tiling)) {
      number(once_in(2) ? gpu->threads : gpu->blocks);
    } else if (auto* step = std::get_if<StepTiling>(&tiling)) {
      number(once_in(2) ? step->threads : once_in(2) ? step->cluster : step->clusters);
    } else {
      auto& host = std::get<HostTiling>(tiling);
      switch (below(5)) {
        case 0:
          return number(host.tile_rows);
        case 1:
          return number(host.partitions);
        case 2:
          return number(host.tile_bytes);
        case 3:
          return number(host.accumulator_bytes);
        default:
          return number(host.lanes);
      }
    }
  }
  void move(TileMove& m) { id(once_in(2) ? m.arena : m.tile); }
  void change(Stage& stage) {
    switch (below(9)) {
      case 0:
        return number(stage.first);
      case 1:
        return number(stage.rows);
      case 2:
        return number(stage.last);
      case 3:
      case 4:
        return entries(stage.loads, [&](TileMove& m) { move(m); });
      case 5:
        return entries(stage.stores, [&](TileMove& m) { move(m); });
      case 6:
      case 7:
        return entries(stage.fused, [&](FusedSteps& f) {
          std::uint32_t* const steps[] = {&f.product, &f.bias, &f.epilogue, &f.sum};
          std::uint32_t& step = *steps[below(4)];
          if (once_in(4)) return number(step);
          step = once_in(4) ? kNoStep : stage.rows + static_cast<std::uint32_t>(below(stage.last - stage.rows));
        });
      default:
        return entries(stage.combines, [&](Combine& c) {
          if (once_in(3)) return id(c.value);
          if (once_in(3)) return enumerator(c.op, 4);
          number(c.offset);
        });
    }
  }

  Program& program_;
  std::mt19937_64& random_;
};

}  // namespace

void mutate(Program& program, std::mt19937_64& random) {
  const std::size_t times = 1 + random() % 3;
  for (std::size_t i = 0; i < times; ++i) Mutator(program, random).run();
}

}  // namespace graphrun::test
