// The rules of a Program that can be checked without live ranges; every executor may rely on them. The validator in
// src/compiler checks that no two live buffers overlap.
#include <set>

#include "types/op_rules.h"
#include "types/region_check.h"

namespace graphrun {
namespace {

class Checker {
 public:
  explicit Checker(const Program& program) : program_(program) {}

  void run() {
    if (program_.lower_bound > program_.arena_bytes)
      broken("lower_bound", "the bound of {} bytes is above the arena of {} bytes", program_.lower_bound,
             program_.arena_bytes);
    if (program_.math > MathMode::fast) broken("enumerators", "math {}", static_cast<int>(program_.math));
    for (BufferId id = 0; id < program_.buffers.size(); ++id) check_type(id);
    resolve_storage();
    for (BufferId id = 0; id < program_.buffers.size(); ++id) check_buffer(id);
    std::set<std::string_view> names;
    for (const Phase& phase : program_.phases) {
      if (phase.name.empty()) broken("phase_name", "a phase has no name");
      if (!names.insert(phase.name).second) broken("phase_name", "two phases are named '{}'", phase.name);
      if (phase.capacity < 0 || phase.capacity > kMaxBatch)
        broken("capacity", "phase '{}' has {} rows, which an i32 counts", phase.name, phase.capacity);
      for (std::size_t i = 0; i < phase.steps.size(); ++i) check_step(phase, i);
      check_regions(phase, program_, root_);
    }
    check_initial();
  }

 private:
  const Program& program_;
  std::vector<BufferId> root_;  // storage_root() of each buffer

  std::string named(BufferId id) const { return fmt::format("buffer {}#{}", program_.buffers[id].name, id); }

  // Runs first: later checks index tables with these enumerators and multiply these extents.
  void check_type(BufferId id) const {
    const Buffer& buffer = program_.buffers[id];
    if (buffer.kind > BufferKind::tile || buffer.layout > Layout::codes || buffer.type.dtype > DType::boolean)
      broken("enumerators", "kind {}, layout {}, dtype {} of {}", static_cast<int>(buffer.kind),
             static_cast<int>(buffer.layout), static_cast<int>(buffer.type.dtype), named(id));
    const Shape& shape = buffer.type.shape;
    for (const Shape& axes : {shape, buffer.extents}) {
      for (const std::int64_t extent : axes.dims())
        if (extent < 0) broken("extent", "{} has shape {}", named(id), to_string(axes));
    }
    (void)shape.elements();  // throws beyond kMaxElements
    const std::int64_t rows = buffer.type.rows;
    if (rows < 0 || (rows > 0 && (shape.rank() == 0 || shape[0] % rows != 0)))
      broken("rows", "{} of shape {} cannot have {} rows for each sample", named(id), to_string(shape), rows);
  }

  void resolve_storage() {
    const std::size_t count = program_.buffers.size();
    root_.resize(count);
    for (BufferId id = 0; id < count; ++id) {
      BufferId at = id;
      std::size_t hops = 0;
      while (true) {
        const BufferId next = program_.buffers[at].storage;
        if (next >= count) broken("storage", "{} names storage {}, which does not exist", named(at), next);
        if (next == at) break;
        if (++hops > count) broken("storage", "the storage chain of {} is a cycle", named(id));
        at = next;
      }
      root_[id] = at;
    }
  }

  void check_buffer(BufferId id) const {
    const Buffer& buffer = program_.buffers[id];
    const bool tile = buffer.kind == BufferKind::tile;  // check_regions() checks its placement
    if (tile != (program_.buffers[root_[id]].kind == BufferKind::tile))
      broken("tile", "{} shares storage with {}, and one of them is in the arena", named(id), named(root_[id]));
    const bool registers = tile && buffer.layout == Layout::registers;
    if (tile && !registers && buffer.type.rows == 0) broken("tile", "{} has no rows", named(id));
    if (registers && (buffer.bytes > 0 || buffer.offset > 0))
      broken("tile", "{} is in registers and has a place in memory", named(id));
    if (tile && (buffer.poll || buffer.layout != program_.buffers[root_[id]].layout))
      broken("tile", "{} is polled, or has another layout than its storage", named(id));
    const TensorType& root = program_.buffers[root_[id]].type;
    if (tile && buffer.layout != Layout::rows &&
        (buffer.type.shape.elements() != root.shape.elements() || buffer.type.dtype != root.dtype))
      broken("tile", "{} has other elements than its storage", named(id));
    if (buffer.layout != Layout::strided ? !buffer.strides.empty() || buffer.extents.rank() > 0 : tile)
      broken("layout", "{} has strides and is not strided, or is strided in a tile", named(id));
    if (tile) return;
    if (buffer.offset > program_.arena_bytes || buffer.bytes > program_.arena_bytes - buffer.offset)
      broken("inside_arena", "{} is {} bytes at {}, the arena ends at {}", named(id), buffer.bytes, buffer.offset,
             program_.arena_bytes);
    check_layout(id);
    const Buffer& storage = program_.buffers[buffer.storage];
    if (buffer.storage == id) {
      if (buffer.offset % kAlignment != 0)
        broken("alignment", "{} begins at {}, no multiple of {}", named(id), buffer.offset, kAlignment);
      return;
    }
    if (buffer.offset < storage.offset || buffer.offset + buffer.bytes > storage.offset + storage.bytes)
      broken("inside_storage", "{} leaves its storage {}", named(id), named(buffer.storage));
    if (buffer.offset % size_of(buffer.type.dtype) != 0)
      broken("alignment", "{} begins at {}, no multiple of its element", named(id), buffer.offset);
    if (is_state(buffer.kind) && !is_state(program_.buffers[root_[id]].kind))
      broken("state", "{} is state, but its storage {} is not", named(id), named(root_[id]));
  }

  void check_layout(BufferId id) const {
    const Buffer& buffer = program_.buffers[id];
    const Buffer& root = program_.buffers[root_[id]];
    if (buffer.kind == BufferKind::workspace) {  // untyped bytes
      if (buffer.layout != Layout::rows || buffer.poll) broken("layout", "{} is a workspace", named(id));
      return;
    }
    std::uint64_t bytes = buffer.type.bytes();
    if (buffer.layout == Layout::registers) broken("layout", "{} is in registers and in the arena", named(id));
    if (buffer.layout == Layout::strided) bytes = strided_bytes(id);
    if ((buffer.layout == Layout::codes) != (buffer.divisor > 0) || (root.layout == Layout::codes && root_[id] != id))
      broken("layout", "{} has a divisor and no codes, or shows codes", named(id));
    if (buffer.layout == Layout::codes) {
      if (buffer.kind != BufferKind::data || buffer.poll || buffer.type.dtype != DType::f32 || buffer.type.rows > 0)
        broken("layout", "{} is stored in codes but is not a data set", named(id));
      bytes /= sizeof(float);
    }
    if (buffer.layout == Layout::vectors) {
      const Shape& shape = buffer.type.shape;
      if (root.kind != BufferKind::data || buffer.poll || buffer.type.dtype != DType::f32 || shape.rank() == 0 ||
          shape.elements() == 0 || buffer.block < 1 || buffer.block > kMaxElements)
        broken("layout", "{} is laid out in vectors but is not a data set", named(id));
      const std::int64_t rows =
          shape[0] / buffer.block * whole_lanes(buffer.block) + whole_lanes(shape[0] % buffer.block);
      bytes = bytes / static_cast<std::uint64_t>(shape[0]) * static_cast<std::uint64_t>(rows);
      // A few rows in huge blocks are padded to more elements than any memory can store.
      if (rows > kMaxElements) broken("layout", "{} has {} rows in vectors", named(id), rows);
    }
    if (buffer.bytes != bytes)
      broken("bytes", "{} has {} bytes, its type {} needs {}", named(id), buffer.bytes, to_string(buffer.type), bytes);
  }

  // Span from the first element to the last, which must fit in the storage.
  std::uint64_t strided_bytes(BufferId id) const {
    const Buffer& buffer = program_.buffers[id];
    const Shape& shape = buffer.extents.rank() > 0 ? buffer.extents : buffer.type.shape;
    if (buffer.storage == id || buffer.poll || is_state(buffer.kind) ||
        program_.buffers[root_[id]].layout != Layout::rows || shape.elements() != buffer.type.shape.elements() ||
        buffer.strides.size() != static_cast<std::size_t>(shape.rank()))
      broken("layout", "{} is strided and no view of another value", named(id));
    std::int64_t last = 0;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const std::int64_t stride = buffer.strides[static_cast<std::size_t>(axis)];
      const std::int64_t steps = std::max<std::int64_t>(shape[axis] - 1, 0);
      if (stride < 0 || (steps > 0 && stride > (kMaxElements - last) / steps))
        broken("layout", "{} has stride {} of {} along axis {}", named(id), stride, shape[axis], axis);
      last += stride * steps;
    }
    return shape.elements() == 0 ? 0 : static_cast<std::uint64_t>(last + 1) * size_of(buffer.type.dtype);
  }

  bool overlap(BufferId a, BufferId b) const {
    const Buffer& x = program_.buffers[a];
    const Buffer& y = program_.buffers[b];
    return (x.kind == BufferKind::tile) == (y.kind == BufferKind::tile) && graphrun::overlap(x, y);
  }

  void check_step(const Phase& phase, std::size_t index) const {
    const Step& step = phase.steps[index];
    const auto here = [&] { return fmt::format("phase '{}', step {} ({})", phase.name, index + 1, step.name); };
    const auto exists = [&](BufferId id, std::string_view role) {
      if (id >= program_.buffers.size()) broken("operand", "{}: its {} is buffer {}", here(), role, id);
    };
    if (traits_of(step.op).dtypes.empty())
      broken("op", "{}: {} (number {}) is not an op of a step", here(), name_of(step.op), static_cast<int>(step.op));
    for (const BufferId input : step.inputs) exists(input, "input");
    exists(step.output, "output");

    const BufferKind writes = program_.buffers[root_[step.output]].kind;
    if (program_.buffers[step.output].layout == Layout::strided)
      broken("read_only", "{} writes {}, which only shows another value", here(), named(step.output));
    if (writes == BufferKind::data || writes == BufferKind::constant)
      broken("read_only", "{} writes the {} {}", here(), name_of(writes), named(step.output));
    std::vector<TensorType> types;
    for (const BufferId input : step.inputs) types.push_back(operand_type(phase, here(), input));
    const TensorType& type_out = operand_type(phase, here(), step.output);
    const std::string fault = step_fault(step.op, types, type_out, step.params);
    if (!fault.empty()) broken("step", "{}: {}: {}", here(), name_of(step.op), fault);
    check_overlay(step, here());
    for (const BufferId input : step.inputs) {
      const auto* batches = step.params.get_if<MinibatchParams>();
      const bool decodes = batches != nullptr && batches->divisor > 0 && input == step.inputs[0];
      const Buffer& from = program_.buffers[input];
      if ((from.layout == Layout::codes) != decodes || (decodes && batches->divisor != from.divisor))
        broken("layout", "{} does not read {} as it is stored: in codes or not", here(), named(input));
    }
    std::vector<BufferId> reads = step.inputs;
    if (step.row_count != kNoBuffer) {
      exists(step.row_count, "row count");
      const Buffer& count = program_.buffers[step.row_count];
      const TensorType& type = count.type;
      if (count.kind == BufferKind::tile || count.kind == BufferKind::workspace || type.dtype != DType::i32 ||
          type.shape.elements() != 1)
        broken("row_count", "{}: {} is {}, not one i32", here(), named(step.row_count), to_string(type));
      reads.push_back(step.row_count);
    }
    if (step.row_count != kNoBuffer && overlap(step.row_count, step.output))
      broken("in_place", "{} writes {} over its row count", here(), named(step.output));
    if (step.workspace == kNoBuffer) return;
    exists(step.workspace, "workspace");
    reads.push_back(step.output);
    check_workspace(step, here(), reads);
  }

  const TensorType& operand_type(const Phase& phase, const std::string& here, BufferId id) const {
    const Buffer& buffer = program_.buffers[id];
    if (buffer.kind == BufferKind::workspace) broken("operand", "{}: {} is a workspace", here, named(id));
    const std::int64_t rows = buffer.type.rows;  // dividing avoids the overflow of a product
    if (rows > 0 && (buffer.type.shape[0] % rows != 0 || buffer.type.shape[0] / rows != phase.capacity))
      broken("capacity", "{}: {} has {} rows, the phase has {} for each of {} samples", here, named(id),
             buffer.type.shape[0], buffer.type.rows, phase.capacity);
    return buffer.type;
  }

  // An output may overlap an operand only if both have the same place and type and the op can run in place.
  void check_overlay(const Step& step, const std::string& here) const {
    const Overlay overlay = traits_of(step.op).overlay;
    const Buffer& output = program_.buffers[step.output];
    const auto over = [&](BufferId input) {
      const Buffer& buffer = program_.buffers[input];
      return root_[input] == root_[step.output] && buffer.offset == output.offset && buffer.type == output.type &&
             buffer.layout != Layout::strided;
    };
    if (overlay == Overlay::state && !over(step.inputs[0]))
      broken("in_place", "{} writes {}, which is not its {}", here, named(step.output), named(step.inputs[0]));
    for (const BufferId input : step.inputs) {
      if (!overlap(input, step.output) || (overlay != Overlay::none && over(input))) continue;
      broken("in_place", "{} writes {} over its input {}", here, named(step.output), named(input));
    }
  }

  void check_workspace(const Step& step, const std::string& here, const std::vector<BufferId>& operands) const {
    if (program_.buffers[step.workspace].kind != BufferKind::workspace)
      broken("workspace", "{}: {} is not a workspace", here, named(step.workspace));
    for (const BufferId operand : operands) {
      if (overlap(operand, step.workspace)) broken("workspace", "{}: its workspace overlaps {}", here, named(operand));
    }
  }

  void check_initial() const {
    std::set<BufferId> seen;
    for (const InitialValue& value : program_.initial) {
      if (value.buffer >= program_.buffers.size()) broken("initial", "a value is given for buffer {}", value.buffer);
      const Buffer& buffer = program_.buffers[value.buffer];
      if (!is_state(buffer.kind)) broken("initial", "{} is not state", named(value.buffer));
      if (value.bytes.size() != buffer.type.bytes())
        broken("initial", "{} bytes are given for {} of {} bytes", value.bytes.size(), named(value.buffer),
               buffer.type.bytes());
      if (!seen.insert(value.buffer).second) broken("initial", "{} is given two values", named(value.buffer));
    }
  }
};

}  // namespace

void check(const Program& program) {
  Checker(program).run();
}

}  // namespace graphrun
