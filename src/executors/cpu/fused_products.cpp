#include "executors/cpu/fused_products.h"

#include <algorithm>

#include "graphrun/op.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/tile.h"

namespace graphrun {
namespace {

class Pairing {
 public:
  Pairing(const Phase& phase, const Stage& stage, const Program& program)
      : phase_(phase), stage_(stage), buffers_(program.buffers) {}

  std::vector<FusedProduct> run() {
    std::vector<FusedProduct> fused(stage_.last - stage_.rows);
    for (std::uint32_t i = stage_.rows; i < stage_.last; ++i) {
      if (phase_.steps[i].op != Op::matmul || buffers_[phase_.steps[i].output].kind != BufferKind::tile) continue;
      FusedProduct product;
      product.product = i;
      std::uint32_t last = i;
      if (const std::uint32_t add = only_reader(last); add != kNoStep && adds_bias(add, last) && intact(i, add)) {
        product.bias = phase_.steps[add].inputs[1];
        last = add;
      }
      if (const std::uint32_t step = only_reader(last); step != kNoStep && follows(step, last, i) && intact(i, step)) {
        product.epilogue = step;
        last = step;
      }
      if (last == i) continue;
      fused[i - stage_.rows].taken = true;
      if (product.bias != kNoBuffer) fused[only_reader(i) - stage_.rows].taken = true;
      fused[last - stage_.rows] = product;
    }
    return fused;
  }

 private:
  BufferId root(BufferId id) const {
    while (buffers_[id].storage != id) id = buffers_[id].storage;
    return id;
  }

  // The one step that reads the result of step `i`, where that is read neither under another name nor outside the tile.
  std::uint32_t only_reader(std::uint32_t i) const {
    const BufferId value = phase_.steps[i].output;
    for (const TileMove& store : stage_.stores)
      if (store.tile == value) return kNoStep;
    for (std::uint32_t s = i + 1; s < stage_.last; ++s) {
      const Step& step = phase_.steps[s];
      const auto reads = [&](BufferId input) { return root(input) == root(value); };
      if (std::none_of(step.inputs.begin(), step.inputs.end(), reads)) continue;
      const bool once = std::count(step.inputs.begin(), step.inputs.end(), value) == 1 &&
                        std::count_if(step.inputs.begin(), step.inputs.end(), reads) == 1;
      return once && (root(step.output) == root(value) || !is_read_after(s, root(value))) ? s : kNoStep;
    }
    return kNoStep;
  }
  bool is_read_after(std::uint32_t step, BufferId storage) const {
    return std::any_of(phase_.steps.begin() + step + 1, phase_.steps.begin() + stage_.last, [&](const Step& later) {
      return std::any_of(later.inputs.begin(), later.inputs.end(),
                         [&](BufferId input) { return root(input) == storage; });
    });
  }

  // A number for each feature of a row.
  bool adds_bias(std::uint32_t add, std::uint32_t after) const {
    const Step& step = phase_.steps[add];
    const BufferId product = phase_.steps[after].output;
    if (step.op != Op::add || step.inputs[0] != product || buffers_[step.output].type != buffers_[product].type)
      return false;
    const TensorType& bias = buffers_[step.inputs[1]].type;
    const Shape& shape = buffers_[product].type.shape;
    const std::int64_t width = shape[shape.rank() - 1];
    return bias.rows == 0 && bias.shape.rank() > 0 && bias.shape[bias.shape.rank() - 1] == width &&
           bias.shape.elements() == width;
  }

  // A cheap step on equal rows. A product of several blocks of k writes its output more than once: that must not be
  // where the other operand lies.
  bool follows(std::uint32_t next, std::uint32_t after, std::uint32_t product) const {
    const Step& step = phase_.steps[next];
    const BufferId value = phase_.steps[after].output;
    const int input = cpu::epilogue_input(step.op);
    if (input < 0 || static_cast<std::size_t>(input) >= step.inputs.size()) return false;
    if (step.inputs[static_cast<std::size_t>(input)] != value || buffers_[step.output].type != buffers_[value].type)
      return false;
    const Shape& left = buffers_[phase_.steps[product].inputs[0]].type.shape;
    const bool one_block = left[left.rank() - 1] <= cpu::kProductBlock;
    return std::all_of(step.inputs.begin(), step.inputs.end(), [&](BufferId other) {
      return other == value ||
             (buffers_[other].type == buffers_[value].type && (one_block || !meet(other, step.output)));
    });
  }

  // No step on the way to the last one, nor that one, writes where the product's operands lie.
  bool intact(std::uint32_t product, std::uint32_t last) const {
    for (const BufferId input : phase_.steps[product].inputs) {
      for (std::uint32_t s = product + 1; s <= last; ++s) {
        if (meet(phase_.steps[s].output, input)) return false;
        for (const BufferId loaded : phase_.steps[s].inputs)
          if (is_loaded(loaded) && root(loaded) != root(input) && meet(loaded, input)) return false;
      }
    }
    return true;
  }
  bool is_loaded(BufferId id) const {
    return std::any_of(stage_.loads.begin(), stage_.loads.end(),
                       [&](const TileMove& load) { return root(load.tile) == root(id); });
  }
  bool meet(BufferId a, BufferId b) const {
    const Buffer& x = buffers_[a];
    const Buffer& y = buffers_[b];
    return x.kind == BufferKind::tile && y.kind == BufferKind::tile && x.bytes > 0 && y.bytes > 0 &&
           x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
  }

  const Phase& phase_;
  const Stage& stage_;
  const std::vector<Buffer>& buffers_;
};

}  // namespace

std::vector<FusedProduct> fuse_products(const Phase& phase, const Stage& stage, const Program& program) {
  return Pairing(phase, stage, program).run();
}

}  // namespace graphrun
