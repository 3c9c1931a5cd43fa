#include <algorithm>
#include <map>

#include "graphrun/op.h"
#include "types/region_check.h"

namespace graphrun {
namespace {

class ElementChecker : RegionRules {
 public:
  using RegionRules::RegionRules;

  void run(const Region& region) {
    if (!region.stages.empty() || region.accumulators != kNoBuffer)
      RegionRules::broken("elements", "a region over elements has stages too");
    std::uint32_t at = region.first();
    for (const ElementChain& chain : region.chains) {
      if (chain.first != at || chain.last <= chain.first || chain.last > phase_.steps.size())
        RegionRules::broken("elements", "a chain of steps {} to {} follows step {}", chain.first + 1, chain.last, at);
      check_chain(chain, region.chains.size() == 1);
      at = chain.last;
    }
    if (region.last != at)
      RegionRules::broken("elements", "the region ends at step {}, its chains at {}", region.last, at);
    check_accesses();
  }

 private:
  // Byte range of the arena that a step reads or writes.
  struct Access {
    std::uint64_t begin, end;
    BufferId root;
    std::uint32_t chain, step;
    bool written, aligned;
  };

  template <class... Values>
  [[noreturn]] void broken(std::uint32_t step, fmt::format_string<Values...> what, Values&&... values) const {
    RegionRules::broken("elements", "step {} ({}) {}", step + 1, phase_.steps[step].name,
                        fmt::format(what, std::forward<Values>(values)...));
  }

  static bool is_same(const Buffer& a, const Buffer& b) {
    return a.type.dtype == b.type.dtype && a.type.shape.elements() == b.type.shape.elements() && a.offset == b.offset &&
           a.kind == b.kind && a.layout == b.layout;
  }

  void access(BufferId id, std::uint32_t chain, std::uint32_t step, bool written, bool aligned) {
    const Buffer& b = buffer(id);
    if (b.kind == BufferKind::tile) broken(step, "reads {}, which its chain has not written", named(id));
    if (b.layout == Layout::vectors) broken(step, "reads {}, which is laid out in vectors", named(id));
    if (b.bytes > 0) accesses_.push_back({b.offset, b.offset + b.bytes, root_[id], chain, step, written, aligned});
  }

  void check_chain(const ElementChain& chain, bool alone) {
    const Step& last = phase_.steps[chain.last - 1];
    const std::int64_t count = elements_of(program_, last);
    const bool rows = buffer(last.output).type.rows > 0;
    std::map<BufferId, BufferId> values;  // outputs of the chain so far, keyed by storage root
    if (count == 0) broken(chain.last - 1, "has no elements");
    for (std::uint32_t i = chain.first; i < chain.last; ++i) {
      const Step& step = phase_.steps[i];
      const Buffer& output = buffer(step.output);
      const bool number = elements_of(program_, step) == 1 && (count > 1 || (rows && output.type.rows == 0));
      const bool in_registers = output.kind == BufferKind::tile;
      const bool product = step.op == Op::matmul && i == chain.first && alone && in_registers;
      if (!product && (!is_elementwise(step.op) || step.workspace != kNoBuffer)) broken(i, "does not go by elements");
      if (!number && (elements_of(program_, step) != count || (output.type.rows > 0) != rows))
        broken(i, "has other elements than step {}, the last of its chain", chain.last);
      if (number && (!in_registers || output.type.rows > 0)) broken(i, "gives a number that is not in registers");
      if (in_registers && (output.layout != Layout::registers || output.storage != step.output))
        broken(i, "writes {}, which is not in registers", named(step.output));
      if (in_registers && values.count(step.output) > 0) broken(i, "{} is written twice", named(step.output));
      // Input 0 of assign and record is the state they overwrite.
      for (std::size_t k = traits_of(step.op).overlay == Overlay::state ? 1 : 0; k < step.inputs.size(); ++k) {
        const BufferId input = step.inputs[k];
        const std::int64_t has = buffer(input).type.shape.elements();
        const auto value = values.find(root_[input]);
        if (value == values.end()) {
          access(input, chain.first, i, false,
                 !number && !product && has == count && buffer(input).layout == Layout::rows);
        } else if (!is_same(buffer(input), buffer(value->second)) ||
                   (number && (has > 1 || buffer(value->second).type.rows > 0)))
          broken(i, "cannot read {} as {} of its chain", named(input), named(value->second));
      }
      if (step.row_count != kNoBuffer) access(step.row_count, chain.first, i, false, false);
      if (step.workspace != kNoBuffer) access(step.workspace, chain.first, i, true, false);
      if (!in_registers) access(step.output, chain.first, i, true, step.op != Op::record);
      if (step.op != Op::record) values[root_[step.output]] = step.output;
    }
  }

  // Overlapping accesses form a group. If a group has a write, all of it must be one chain's, element by element.
  void check_accesses() {
    std::sort(accesses_.begin(), accesses_.end(), [](const Access& a, const Access& b) { return a.begin < b.begin; });
    for (std::size_t first = 0; first < accesses_.size();) {
      std::size_t last = first;
      std::uint64_t end = accesses_[first].end;
      bool written = false;
      for (; last < accesses_.size() && accesses_[last].begin < end; ++last) {
        end = std::max(end, accesses_[last].end);
        written = written || accesses_[last].written;
      }
      const Access& one = accesses_[first];
      for (std::size_t i = first; written && last - first > 1 && i < last; ++i) {
        const Access& other = accesses_[i];
        if (!other.aligned || other.begin != one.begin || other.end != one.end || other.root != one.root ||
            other.chain != one.chain)
          broken(other.step, "overlaps memory that step {} reads or writes", one.step + 1);
      }
      first = last;
    }
    accesses_.clear();
  }

  std::vector<Access> accesses_;
};

}  // namespace

void check_elements(const Region& region, const Phase& phase, const Program& program,
                    const std::vector<BufferId>& root) {
  ElementChecker(phase, program, root).run(region);
}

}  // namespace graphrun
