#include "executors/cpu/sweeps.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "graphrun/op.h"
#include "graphrun/params/scalar.h"
#include "kernels/cpu/simd/scalar_loops.h"
#include "kernels/cpu/threads/parallel.h"

namespace graphrun {
namespace {

constexpr std::uint32_t kMostSteps = 64;  // of a sweep: the search is quadratic

struct Range {
  std::uint64_t begin = 0, end = 0;
  bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
  friend bool operator==(const Range&, const Range&) = default;
};

}  // namespace

class SweepFinder {
 public:
  SweepFinder(const Program& program, const Phase& phase, const std::vector<BoundStep>& steps, std::uint32_t first,
              Isa isa)
      : program_(program), phase_(phase), steps_(steps), first_(first), table_(cpu::isa_table(isa)) {
    elements_ = program.buffers[phase.steps[first].output].type.shape.elements();
  }

  std::optional<Sweep> find(std::uint32_t end) {
    if (cpu::parts_for(elements_) == 1 || !is_member(first_)) return std::nullopt;
    for (std::uint32_t last = longest(std::min(end, first_ + kMostSteps)); last > first_ + 1; --last) {
      if (!is_member(last - 1)) continue;
      if (std::optional<Sweep> sweep = make(last)) return sweep;
    }
    return std::nullopt;
  }

 private:
  struct Access {
    Range range;
    bool written;
  };

  const Buffer& buffer(BufferId id) const { return program_.buffers[id]; }
  BufferId storage(BufferId id) const { return buffer(id).storage; }
  Range range(BufferId id) const { return {buffer(id).offset, buffer(id).offset + buffer(id).type.bytes()}; }
  bool is_number(BufferId id) const { return buffer(id).type.shape.elements() == 1; }

  // Reads its operands element by element, or as one number, and writes as many elements as the first step.
  bool is_member(std::uint32_t index) const {
    const Step& step = phase_.steps[index];
    const TensorType& out = buffer(step.output).type;
    if (out.dtype != DType::f32 || out.rows > 0 || out.shape.elements() != elements_) return false;
    if (step.op != Op::assign && cpu::unary_loop(table_, step.op) == nullptr &&
        cpu::binary_loop(table_, step.op) == nullptr)
      return false;
    return std::all_of(step.inputs.begin(), step.inputs.end(), [&](BufferId id) {
      const TensorType& in = buffer(id).type;
      return in.dtype == DType::f32 && in.rows == 0 && (in.shape == out.shape || is_number(id));
    });
  }

  // Makes one number and depends on no member before it, nor does it overwrite what they need: it may run first.
  bool may_run_first(std::uint32_t index) const {
    const Step& step = phase_.steps[index];
    if (!is_number(step.output) || step.workspace != kNoBuffer || step.row_count != kNoBuffer) return false;
    for (std::uint32_t i = first_; i < index; ++i) {
      if (!is_member(i)) continue;
      const Step& member = phase_.steps[i];
      const auto meets = [&](BufferId a, BufferId b) { return range(a).overlaps(range(b)); };
      if (meets(member.output, step.output)) return false;
      for (const BufferId id : member.inputs)
        if (meets(id, step.output)) return false;
      for (const BufferId id : step.inputs)
        if (meets(id, member.output)) return false;
    }
    return true;
  }

  std::uint32_t longest(std::uint32_t end) const {
    std::uint32_t last = first_ + 1;
    while (last < end && (is_member(last) || may_run_first(last))) ++last;
    return last;
  }

  // Whether no step outside of [first, last) reads what member `index` writes.
  bool stays_inside(std::uint32_t index, std::uint32_t last) const {
    const BufferId written = storage(phase_.steps[index].output);
    if (is_state(buffer(written).kind)) return false;
    bool read = false;
    for (std::uint32_t i = index + 1; i < phase_.steps.size(); ++i) {
      const Step& step = phase_.steps[i];
      for (const BufferId id : step.inputs) {
        if (storage(id) != written) continue;
        if (i >= last || !is_member(i)) return false;
        read = true;
      }
      if (storage(step.output) == written) return read;
    }
    for (const Region& region : phase_.regions) {
      for (const Stage& stage : region.stages)
        for (const TileMove& load : stage.loads)
          if (stage.first > index && storage(load.arena) == written) return false;
    }
    return read;
  }

  // The last member that reads what member `index` writes.
  std::uint32_t last_reader(std::uint32_t index, std::uint32_t last) const {
    std::uint32_t reader = index;
    for (std::uint32_t i = index + 1; i < last; ++i) {
      const Step& step = phase_.steps[i];
      for (const BufferId id : step.inputs)
        if (storage(id) == storage(phase_.steps[index].output)) reader = i;
      if (storage(step.output) == storage(phase_.steps[index].output)) break;
    }
    return reader;
  }

  std::optional<Sweep> make(std::uint32_t last) const {
    Sweep sweep;
    sweep.first_ = first_;
    sweep.last_ = last;
    sweep.elements_ = elements_;
    std::map<BufferId, int> inside;                         // by storage: what members have written
    std::array<std::uint32_t, Sweep::kMostInside> until{};  // of each place: the last step that needs it
    std::vector<Access> accesses;                           // of the arena

    for (std::uint32_t i = first_; i < last; ++i) {
      const Step& step = phase_.steps[i];
      if (!is_member(i)) {
        sweep.numbers_.push_back(i);
        continue;
      }
      const KernelArgs& args = steps_[i].args;
      const bool assigns = step.op == Op::assign;
      if (assigns && args.out == args.in[1]) continue;
      const auto operand = [&](std::size_t input) {
        const BufferId id = step.inputs[input];
        Sweep::Operand result;
        result.column = is_number(id) ? 0 : 1;
        const auto found = inside.find(storage(id));
        if (found != inside.end() && found->second >= 0) {
          result.inside = found->second;
        } else {
          result.arena = static_cast<float*>(const_cast<void*>(args.in[input]));
          accesses.push_back({range(id), false});
        }
        return result;
      };
      Sweep::Call call;
      call.x = operand(assigns ? 1 : 0);
      if (!assigns && step.inputs.size() == 2) call.y = operand(1);
      if (const auto* scalars = step.params.get_if<ScalarParams>()) {
        call.a = static_cast<float>(scalars->a);
        call.b = static_cast<float>(scalars->b);
      }
      call.binary = cpu::binary_loop(table_, step.op);
      call.unary = cpu::unary_loop(table_, step.op);
      if (call.binary == nullptr && call.x.column == 0) return std::nullopt;

      int place = -1;
      if (!assigns && stays_inside(i, last)) {
        const auto free = std::find_if(until.begin(), until.end(), [&](std::uint32_t needed) { return needed <= i; });
        if (free == until.end()) return std::nullopt;
        *free = last_reader(i, last);
        place = static_cast<int>(free - until.begin());
      }
      inside[storage(step.output)] = place;
      call.out.inside = place;
      if (place < 0) {
        call.out.arena = args.output<float>();
        accesses.push_back({range(step.output), true});
      }
      sweep.calls_.push_back(call);
    }
    for (const Access& a : accesses) {
      for (const Access& b : accesses)
        if (a.written && a.range != b.range && a.range.overlaps(b.range)) return std::nullopt;
    }
    return sweep;
  }

  const Program& program_;
  const Phase& phase_;
  const std::vector<BoundStep>& steps_;
  std::uint32_t first_;
  const cpu::IsaTable& table_;
  std::int64_t elements_ = 0;
};

std::optional<Sweep> Sweep::find(const Program& program, const Phase& phase, const std::vector<BoundStep>& steps,
                                 std::uint32_t first, std::uint32_t end, Isa isa) {
  return SweepFinder(program, phase, steps, first, isa).find(end);
}

void Sweep::run(const std::vector<BoundStep>& steps) const {
  for (const std::uint32_t step : numbers_) steps[step].run();
  const int parts = cpu::parts_for(elements_ * static_cast<std::int64_t>(calls_.size()));
  cpu::for_ranges(steps[first_].args, parts, elements_, cpu::kGrain,
                  [&](std::int64_t first, std::int64_t last) { run_elements(first, last); });
}

void Sweep::run_elements(std::int64_t first, std::int64_t last) const {
  alignas(64) float inside[kMostInside][kElements];
  for (std::int64_t at = first; at < last; at += kElements) {
    const std::int64_t n = std::min(kElements, last - at);
    const auto place = [&](const Operand& o) {
      return o.inside >= 0 ? inside[o.inside] : o.arena + (o.column == 0 ? 0 : at);
    };
    for (const Call& call : calls_) {
      float* const out = place(call.out);
      if (call.binary != nullptr) {
        call.binary(out, 1, n, {place(call.x), 0, call.x.column}, {place(call.y), 0, call.y.column});
      } else if (call.unary != nullptr) {
        call.unary(out, place(call.x), n, call.a, call.b);
      } else {
        std::memcpy(out, place(call.x), static_cast<std::size_t>(n) * sizeof(float));
      }
    }
  }
}

}  // namespace graphrun
