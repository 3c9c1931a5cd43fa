#include "executors/cpu/element_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "graphrun/op.h"
#include "kernels/cpu/batch/families.h"

namespace graphrun {

std::string ElementRunner::fault(const RegionSignature& region) {
  if (region.rows.size() > kMaxSteps) return fmt::format("cpu runs at most {} steps over elements as one", kMaxSteps);
  for (const StepSignature& step : region.rows) {
    if (step.op == Op::record || step.output.shape.elements() == 1) continue;  // runs once, by its kernel
    BoundStep bound;
    bound.args.inputs = static_cast<int>(step.inputs.size());
    std::copy(step.inputs.begin(), step.inputs.end(), bound.args.in_type);
    bound.args.out_type = step.output;
    bound.args.params = step.params;
    bound.find_loop(step.op, Isa::plain);
    const bool real = is_float(step.output.dtype) && step.inputs[0].dtype == step.output.dtype;
    if (!real || (bound.loop.run == nullptr && step.op != Op::assign))
      return fmt::format("cpu has no loop over elements for '{}' of these types", name_of(step.op));
  }
  return {};
}

ElementRunner::ElementRunner(const Region& region, const Phase& phase, const Program& program,
                             std::vector<BoundStep>& steps) {
  for (const ElementChain& chain : region.chains) bind(chain, phase, program, steps);
}

void ElementRunner::bind(const ElementChain& range, const Phase& phase, const Program& program,
                         std::vector<BoundStep>& steps) {
  const auto root = [&](BufferId id) { return storage_root(program, id); };
  const auto in_registers = [&](BufferId id) { return program.buffers[id].kind == BufferKind::tile; };
  const std::int64_t count = elements_of(program, phase.steps[range.last - 1]);
  std::map<BufferId, std::uint32_t> last_reader;
  for (std::uint32_t i = range.first; i < range.last; ++i)
    for (const BufferId input : phase.steps[i].inputs) last_reader[root(input)] = i;

  Chain& chain = chains_.emplace_back();
  std::map<BufferId, int> place;           // registers of values
  std::map<BufferId, const void*> number;  // addresses of numbers in registers
  std::vector<std::uint32_t> until;        // last step that needs the value, by place
  for (std::uint32_t i = range.first; i < range.last; ++i) {
    const Step& step = phase.steps[i];
    BoundStep& bound = steps[i];
    Call call{i, size_of(program.buffers[step.output].type.dtype)};
    const bool once = count == 1 || elements_of(program, step) == 1;
    for (std::size_t k = 0; k < step.inputs.size(); ++k) {
      if (!in_registers(step.inputs[k])) continue;
      const BufferId input = root(step.inputs[k]);
      if (const auto found = number.find(input); found != number.end())
        bound.args.in[k] = found->second;
      else
        call.in[k] = place.at(input);
    }
    if (once) {
      chain.once.push_back(i);
      if (in_registers(step.output)) {
        numbers_.push_back(std::make_unique<std::uint64_t>());
        number[step.output] = bound.args.out = numbers_.back().get();
      }
      bound.find_loop(step.op, default_isa());  // uses the operands set above
      continue;
    }
    if (in_registers(step.output)) {
      const auto free = std::find_if(until.begin(), until.end(), [&](std::uint32_t needed) { return needed <= i; });
      call.out = place[step.output] = static_cast<int>(free - until.begin());
      if (free == until.end())
        until.push_back(last_reader[step.output]);
      else
        *free = last_reader[step.output];
    }
    chain.calls.push_back(call);
    chain.size = std::max(chain.size, call.size);
  }
  const std::size_t bytes = std::max<std::size_t>(until.size(), 1) * chain.size;
  chain.block = std::min(kElements, static_cast<std::int64_t>(kBytes / bytes) / cpu::kGrain * cpu::kGrain);
}

void ElementRunner::run(const std::vector<BoundStep>& steps) const {
  for (const Chain& chain : chains_) {
    for (const std::uint32_t step : chain.once) steps[step].run();
    if (chain.calls.empty()) continue;
    const KernelArgs& args = steps[chain.calls.back().step].args;
    const std::int64_t n = args.valid_elements(args.out_type);
    const int parts = cpu::parts_for(n * static_cast<std::int64_t>(chain.calls.size()));
    cpu::for_ranges(args.pool, parts, n, cpu::kGrain,
                    [&](std::int64_t first, std::int64_t last) { run_elements(chain, steps, first, last); });
    for (const Call& call : chain.calls)
      if (call.out == kArena) steps[call.step].args.clear_invalid_rows();
  }
}

void ElementRunner::run_elements(const Chain& chain, const std::vector<BoundStep>& steps, std::int64_t first,
                                 std::int64_t last) {
  alignas(64) std::byte registers[kBytes];
  const auto in_register = [&](int place) {
    return registers + static_cast<std::size_t>(place) * static_cast<std::size_t>(chain.block) * chain.size;
  };
  for (std::int64_t at = first; at < last; at += chain.block) {
    const std::int64_t n = std::min(chain.block, last - at);
    for (const Call& call : chain.calls) {
      const BoundStep& step = steps[call.step];
      const auto size = static_cast<std::int64_t>(call.size);
      std::byte* const out = call.out != kArena ? in_register(call.out) : step.args.output<std::byte>() + at * size;
      cpu::Operand in[2];
      for (int i = 0; i < step.args.inputs; ++i) {
        const std::int64_t column = step.in[i].column;
        in[i] = {call.in[i] != kArena ? in_register(call.in[i]) : step.args.input<std::byte>(i) + at * column * size, 0,
                 column};
      }
      if (step.loop.run != nullptr)
        step.loop(out, 1, n, in);
      else if (in[1].data != out)  // assign
        std::memcpy(out, in[1].data, static_cast<std::size_t>(n * size));
    }
  }
}

}  // namespace graphrun
