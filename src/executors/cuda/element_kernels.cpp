#include "executors/cuda/element_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>
#include <variant>

#include "executors/cuda_planner/print/scalar_text.h"
#include "graphrun/op.h"
#include "kernels/cuda/layout.h"

namespace graphrun::cuda {

const char* const kElementPrelude = R"(#include "kernels/scalar_ops.h"
#include "kernels/cuda/element_functions.h"
using namespace graphrun;
using namespace graphrun::cuda;
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
)";

namespace {

// Shape that a step iterates over: a record of one number changes one element of many.
const Shape& space_of(const Program& program, const Step& step) {
  return program.buffers[step.op == Op::record ? step.inputs[1] : step.output].type.shape;
}

// Position of a value, independent of its view: in a storage of its own, of the arena or of registers.
using Place = std::pair<BufferId, std::uint64_t>;
Place place_of(const Program& program, BufferId id) {
  const Buffer& buffer = program.buffers[id];
  return {storage_root(program, id), buffer.layout == Layout::registers ? 0 : buffer.offset};
}

// Code of one chain: loads, then values, then stores, so that a value may overwrite an operand.
class Chain {
 public:
  Chain(const Program& program, const Phase& phase, const ElementChain& chain, const Machine& machine,
        std::vector<BufferId>& pointers)
      : program_(program), phase_(phase), chain_(chain), pointers_(pointers) {
    elements_ = static_cast<std::uint64_t>(space_of(program, phase.steps[chain.last - 1]).elements());
    const ElementGrid grid = element_grid(elements_, machine);
    width_ = grid.width;
    groups_ = (elements_ + width_ - 1) / width_;
    blocks_ = grid.blocks;
    index_ = elements_ + 4ull * blocks_ * kElementThreads < (1ull << 32) ? "u32" : "u64";
  }

  std::uint32_t blocks() const { return blocks_; }

  std::string text(std::string_view name) {
    for (std::uint32_t step = chain_.first; step < chain_.last; ++step) add(phase_.steps[step], step - chain_.first);
    std::string out =
        fmt::format("static __device__ __forceinline__ void {}(const Pointers& p, {} block) {{\n", name, index_);
    out += outer_;
    out += fmt::format("  for ({0} group = block * {1} + threadIdx.x; group < {2}u; group += {3}u) {{\n", index_,
                       kElementThreads, groups_, std::uint64_t{blocks_} * kElementThreads);
    out += fmt::format("    const {} base = group * {};\n", index_, width_);
    if (ragged())
      out += fmt::format("    const int inside = {0}u - base < 4 ? static_cast<int>({0}u - base) : 4;\n", elements_);
    out += loads_;
    if (width_ == 4) out += "    _Pragma(\"unroll\")\n";
    out += fmt::format("    for (int k = 0; k < {}; ++k) {{\n", width_);
    out += fmt::format("      const {} i = base + k;\n", index_);
    if (ragged()) out += "      if (k >= inside) break;\n";
    out += body_ + "    }\n" + stores_ + "  }\n}\n";
    return out;
  }

 private:
  const TensorType& type_of(BufferId id) const { return program_.buffers[id].type; }
  // One pointer of the kernel for each place in the arena.
  std::string pointer(BufferId id, std::string_view qualifier = "const ") {
    const auto place = [&](BufferId of) { return place_of(program_, of); };
    const auto found = std::ranges::find(pointers_, place(id), place);
    const auto index = found - pointers_.begin();
    if (found == pointers_.end()) pointers_.push_back(id);
    return fmt::format("static_cast<{}{}*>(p.at[{}])", qualifier, type_name(type_of(id).dtype), index);
  }
  bool ragged() const { return width_ == 4 && elements_ % 4 != 0; }
  bool packs(BufferId id) const { return width_ == 4 && program_.buffers[id].offset % 16 == 0; }
  std::string guarded(std::string_view packed, std::string_view single) const {
    if (!ragged()) return fmt::format("    {}\n", packed);
    return fmt::format(
        "    if (inside == 4) {{ {} }} else {{ for (int k = 0; k < 4; ++k) if (k < inside) {{ {} }} }}\n", packed,
        single);
  }

  // Expression for an operand in terms of i and k; if `number`, of a scalar before the loop.
  std::string operand(const Step& step, std::uint32_t member, std::size_t input, bool number) {
    const BufferId id = step.inputs[input];
    if (const auto value = values_.find(place_of(program_, id)); value != values_.end()) return value->second;
    const std::string from = pointer(id);
    if (number) return from + "[0]";
    const std::string_view type = type_name(type_of(id).dtype);
    const std::string name = fmt::format("x{}_{}", member, input);
    const Operand how = operand_of(view_of(program_.buffers[id]), space_of(program_, step), nullptr);
    const auto pack = [&](std::string_view at) {
      loads_ += fmt::format("    {} {}[4];\n", type, name);
      loads_ += guarded(fmt::format("load4({} + {}, {});", from, at, name),
                        fmt::format("{}[k] = {}[{} + k];", name, from, at));
      return name + "[k]";
    };
    switch (how.access) {
      case Access::same:
        if (packs(id)) return pack("base");
        return from + "[i]";
      case Access::scalar:
        outer_ += fmt::format("  const {} {} = {}[0];\n", type, name, from);
        return name;
      case Access::period:
        if (packs(id) && how.extent % 4 == 0) return pack(fmt::format("base % {}u", how.extent));
        return fmt::format("{}[i % {}u]", from, how.extent);
      case Access::repeat:
        return fmt::format("{}[i / {}u]", from, how.extent);
      case Access::strided:
        break;
    }
    std::string at;
    std::int64_t inner = 1, last = 0;
    for (int d = 0; d < how.dims.rank; ++d) last += (how.dims.dim[d].extent - 1) * how.dims.dim[d].stride[0];
    const std::string_view i = last < std::int64_t{1} << 32 ? "i" : "u64(i)";
    for (int d = how.dims.rank - 1; d >= 0; --d) {
      const Dim<1>& dim = how.dims.dim[d];
      if (dim.stride[0] != 0)
        at += fmt::format("{}{} / {}u % {}u * {}u", at.empty() ? "" : " + ", i, inner, dim.extent, dim.stride[0]);
      inner *= dim.extent;
    }
    return fmt::format("{}[{}]", from, at.empty() ? "0" : at);
  }

  void add(const Step& step, std::uint32_t member) {
    const bool number = elements_ != 1 && space_of(program_, step).elements() == 1;
    TextCall call{step.op, &step.params, {}, type_of(step.output)};
    std::vector<std::string> x;
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      call.inputs.push_back({type_of(step.inputs[i]), {}});
      x.push_back(is_only_written(step.op, i) ? std::string() : operand(step, member, i, number));
    }
    const std::string name = fmt::format("v{}", member);
    const std::string_view type = type_name(type_of(step.output).dtype);
    (number ? outer_ : body_) += fmt::format("{}const {} {} = {};\n", number ? "  " : "      ", type, name,
                                             scalar_text(call, x, TextDialect::element_kernel));
    values_[place_of(program_, step.output)] = name;
    if (program_.buffers[step.output].layout != Layout::registers) store(step, name, x);
  }

  void store(const Step& step, const std::string& value, const std::vector<std::string>& x) {
    const TensorType& out = type_of(step.output);
    const std::string_view type = type_name(out.dtype);
    const std::string to = pointer(step.output, "");
    if (step.op == Op::record) {
      body_ += fmt::format("      {}[{} % {}u] = {};\n", to, x[2], out.shape[0], value);
      return;
    }
    loads_ += fmt::format("    {} {}_stored[{}];\n", type, value, width_);
    body_ += fmt::format("      {0}_stored[k] = {1};\n", value, within_rows(step, value));
    if (packs(step.output)) {
      stores_ += guarded(fmt::format("store4({} + base, {}_stored);", to, value),
                         fmt::format("{}[base + k] = {}_stored[k];", to, value));
    } else {
      stores_ +=
          fmt::format("    for (int k = 0; k < {}; ++k) {{ if (base + k < {}u) {}[base + k] = {}_stored[k]; }}\n",
                      width_, elements_, to, value);
    }
  }

  // Replaces rows past the end of the batch with zeros.
  std::string within_rows(const Step& step, const std::string& value) {
    const TensorType& out = type_of(step.output);
    if (out.rows == 0 || step.row_count == kNoBuffer) return value;
    if (!limited_) {
      const std::int64_t of_sample = out.rows * (out.shape.elements() / out.shape[0]);
      outer_ += fmt::format("  const u64 limit = static_cast<u64>({}[0]) * {}u;\n", pointer(step.row_count), of_sample);
    }
    limited_ = true;
    return fmt::format("i < limit ? {} : {}(0)", value, type_name(out.dtype));
  }

  const Program& program_;
  const Phase& phase_;
  const ElementChain& chain_;
  std::vector<BufferId>& pointers_;
  std::uint64_t elements_ = 0, width_ = 1, groups_ = 0;
  std::uint32_t blocks_ = 1;
  std::string_view index_;
  std::string outer_, loads_, body_, stores_;
  bool limited_ = false;                 // whether the row limit, one per chain, is declared
  std::map<Place, std::string> values_;  // variables that hold the value of a place
};

}  // namespace

ElementKernel element_kernel(std::string_view name, const Program& program, const Phase& phase, const Region& region,
                             const Machine& machine) {
  ElementKernel kernel;
  kernel.threads = kElementThreads;
  std::string functions, choice;
  std::uint32_t blocks = 0;
  for (std::size_t c = 0; c < region.chains.size(); ++c) {
    Chain chain(program, phase, region.chains[c], machine, kernel.pointers);
    const std::string part = fmt::format("chain{}", c);
    functions += chain.text(part);
    choice += fmt::format("  {}if (blockIdx.x < {}u) {}(p, blockIdx.x - {}u);\n", c > 0 ? "else " : "",
                          blocks + chain.blocks(), part, blocks);
    blocks += chain.blocks();
  }
  kernel.source = fmt::format(
      "namespace {0} {{\nstruct Pointers {{ void* at[{1}]; }};\n{2}"
      "extern \"C\" __global__ void __launch_bounds__({3}) {0}(const __grid_constant__ Pointers p) {{\n{4}}}\n}}\n",
      name, kernel.pointers.size(), functions, kElementThreads, choice);
  if (blocks != std::get<GpuTiling>(region.tiling).blocks) {
    throw std::logic_error(
        fmt::format("{}: {} blocks, the plan has {}", name, blocks, std::get<GpuTiling>(region.tiling).blocks));
  }
  kernel.grid = {blocks, 1, 1};
  return kernel;
}

}  // namespace graphrun::cuda
