#include "executors/cuda_planner/print/once_text.h"

#include <cstring>
#include <functional>
#include <iterator>
#include <utility>

#include "executors/cuda_planner/print/kernel_frame.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "graphrun/scalar_op.h"

namespace graphrun::cuda {
namespace {

// Number of terms up to which each thread folds an array by itself. All threads fold longer ones together.
constexpr std::int64_t kOwnTerms = 32;
constexpr std::uint32_t kWarp = 32;

// Discontinuous ops with a float result. The others are comparisons, argmax, argmin and casts to integers.
constexpr Op kJumps[] = {scalar_op::floor, scalar_op::ceil, scalar_op::round,
                         scalar_op::sign,  scalar_op::mod,  scalar_op::relu_gradient};

}  // namespace

// ---- places

Places::Places(const Program& program, const Phase& phase, const Region& region) : program_(program) {
  for (std::uint32_t i = region.first(); i < region.last; ++i)
    if (phase.steps[i].op != Op::record) written_.insert(storage_root(program, phase.steps[i].output));
  std::set<BufferId> roots;
  const auto add = [&](BufferId id) {
    if (id != kNoBuffer && program.buffers[id].kind != BufferKind::tile) roots.insert(storage_root(program, id));
  };
  for (std::uint32_t i = region.first(); i < region.last; ++i) {
    const Step& step = phase.steps[i];
    for (std::size_t k = 0; k < step.inputs.size(); ++k)
      if (!stays_in_arena(step, k)) add(step.inputs[k]);
    if (step.op != Op::record) add(step.output);
    add(step.row_count);
  }
  for (const Stage& stage : region.stages)
    for (const Combine& combine : stage.combines) add(combine.value);
  for (const BufferId root : roots) {
    const TensorType& type = program.buffers[root].type;
    if (type.shape.elements() != 1)
      arrays_.push_back({root, fmt::format("v{}", root), type.dtype, type.shape.elements()});
  }
}

bool Places::stays_in_arena(const Step& step, std::size_t input) const {
  if (input != 0) return false;
  return step.op == Op::record ||
         (step.op == Op::minibatch && !written_.contains(storage_root(program_, step.inputs[0])));
}
bool Places::is_read(const Step& step, std::size_t input) const {
  return program_.buffers[step.inputs[input]].kind != BufferKind::tile && !stays_in_arena(step, input) &&
         !is_only_written(step.op, input);
}
void Places::slice(BufferId root, std::int64_t elements, std::int64_t capacity) {
  slices_[root] = elements;
  for (Array& array : arrays_)
    if (array.root == root) array.capacity = capacity;
}
std::int64_t Places::elements(BufferId of) const {
  const auto found = slices_.find(storage_root(program_, of));
  return found != slices_.end() ? found->second : program_.buffers[of].type.shape.elements();
}

// ---- steps

OnceText::OnceText(KernelFrame& frame, std::string_view arrays)
    : frame_(frame),
      program_(frame.program),
      phase_(frame.phase),
      region_(frame.region),
      places_(frame.places),
      threads_(frame.threads),
      arrays_(arrays) {
  find_order();
  if (program_.math == MathMode::fast) find_exact();
}

// Finds the roots that are read before they are written, and those that are valid at the end. A value is lost if
// another value of the region overwrites its bytes.
void OnceText::find_order() {
  struct Bytes {
    BufferId root;
    std::uint64_t begin, end;
  };
  std::set<BufferId> seen;
  std::vector<Bytes> written;  // in order of the last write
  const auto write = [&](BufferId id, bool shared) {
    const BufferId of = root(id);
    const Bytes now{of, buffer(of).offset, buffer(of).offset + buffer(of).bytes};
    std::erase_if(written, [&](const Bytes& other) { return other.begin < now.end && now.begin < other.end; });
    if (shared) written.push_back(now);
    seen.insert(of);
  };
  const auto read = [&](BufferId id) {
    if (id == kNoBuffer || !seen.insert(root(id)).second) return;
    if (const std::optional<std::string> text = literal(root(id)))
      numbers_[root(id)] = *text;
    else
      read_first_.push_back(root(id));
  };
  for (std::uint32_t i = region_.first(); i < region_.last; ++i) {
    const Step& step = phase_.steps[i];
    for (std::size_t k = 0; k < step.inputs.size(); ++k)
      if (places_.is_read(step, k)) read(step.inputs[k]);
    read(step.row_count);
    if (buffer(step.output).kind != BufferKind::tile && step.op != Op::record) write(step.output, true);
    for (const Stage& stage : region_.stages)
      for (const TileMove& move : stage.stores)
        if (i + 1 == stage.last) write(move.arena, false);
  }
  for (const Bytes& bytes : written) written_back_.push_back(bytes.root);
}

// Finds approximate functions whose results reach a discontinuous op: floor(a / b) of a multiple of b could be one
// less. Values are traced back through the kernels of the phase, their tiles, and all ops except matrix products, whose
// rounding error is as large.
void OnceText::find_exact() {
  std::multimap<BufferId, BufferId> sources;  // source roots of copies, by target root
  for (const Region& region : phase_.regions) {
    for (const Stage& stage : region.stages) {
      for (const TileMove& load : stage.loads) sources.emplace(root(load.tile), root(load.arena));
      for (const TileMove& store : stage.stores) sources.emplace(root(store.arena), root(store.tile));
    }
  }
  std::set<BufferId> reached;  // roots that reach a discontinuous op among the later steps
  const std::function<void(BufferId)> reach = [&](BufferId id) {
    if (!is_float(buffer(id).type.dtype) || !reached.insert(id).second) return;
    const auto [first, last] = sources.equal_range(id);
    for (auto source = first; source != last; ++source) reach(source->second);
  };
  for (auto step = phase_.steps.rbegin(); step != phase_.steps.rend(); ++step) {
    const bool is_read = reached.contains(root(step->output));
    const bool jumps =
        std::ranges::find(kJumps, step->op) != std::end(kJumps) || !is_float(buffer(step->output).type.dtype);
    if (is_read && is_approximate(step->op)) exact_.insert(step->output);
    if (!jumps && (!is_read || step->op == Op::matmul)) continue;
    for (const BufferId id : step->inputs) {
      reach(root(id));
      if (step->op == scalar_op::relu_gradient && !is_read) break;  // the second operand is not a condition
    }
  }
}

// Literal of a constant scalar, which then needs no register. Slots may have different constants, except for operands
// of approximate functions: the assembler computes these with other bits if it knows the operand. Direct operands
// suffice: the builder folds exact functions of constants.
std::optional<std::string> OnceText::literal(BufferId of) const {
  const auto approximates = [&](const Step& step) {
    return is_approximate(step.op) && std::ranges::any_of(step.inputs, [&](BufferId id) { return root(id) == of; });
  };
  if (frame_.in_slots && (program_.math == MathMode::exact || std::ranges::none_of(phase_.steps, approximates)))
    return {};
  if (!places_.is_number(of) || buffer(of).kind != BufferKind::constant || buffer(of).type.dtype != DType::f32)
    return {};
  const auto initial = std::ranges::find(program_.initial, of, &InitialValue::buffer);
  if (initial == program_.initial.end() || initial->bytes.size() != sizeof(std::uint32_t)) return {};
  std::uint32_t bits = 0;
  std::memcpy(&bits, initial->bytes.data(), sizeof(bits));
  return fmt::format("scalar::from_bits({:#x})", bits);
}

View OnceText::view(BufferId id) const {
  View view = view_of(buffer(id));
  view.offset =
      static_cast<std::int64_t>((buffer(id).offset - buffer(root(id)).offset) / size_of(buffer(id).type.dtype));
  return view;
}

std::string OnceText::value(BufferId number) const {
  const auto found = numbers_.find(root(number));
  return found == numbers_.end() ? places_.name(root(number)) : found->second;
}

TextCall OnceText::call(const Step& step) const {
  TextCall call{step.op, &step.params, {}, buffer(step.output).type};
  if (exact_.contains(step.output)) call.number = "float";
  if (frame_.in_slots) call.key = frame_.key(step);
  for (std::size_t k = 0; k < step.inputs.size(); ++k) {
    const BufferId id = step.inputs[k];
    TextOperand& operand = call.inputs.emplace_back(TextOperand{buffer(id).type, {}});
    if (buffer(id).kind == BufferKind::tile || places_.stays_in_arena(step, k)) continue;
    operand.number = places_.is_number(root(id));
    operand.name = operand.number ? value(id) : array(root(id));
    operand.view = view(id);
  }
  return call;
}

bool OnceText::meet(const std::vector<Access>& some, const std::vector<Access>& others) {
  return std::ranges::any_of(some, [&](const Access& a) {
    return std::ranges::any_of(others, [&](const Access& b) { return conflict(a, b); });
  });
}

// Accesses to arrays.
std::vector<OnceText::Access> OnceText::accesses(const Step& step, bool with_output) const {
  std::vector<Access> list;
  const std::int64_t n = buffer(step.output).type.shape.elements();
  const auto add = [&](BufferId id, bool writes) {
    if (places_.is_number(root(id))) return;
    const View seen = view(id);
    const bool same = (writes || is_elementwise(step.op)) && is_dense(seen) && seen.extents.elements() == n;
    list.push_back({root(id), writes, same ? std::optional(seen.offset) : std::nullopt});
  };
  for (std::size_t k = 0; k < step.inputs.size(); ++k)
    if (places_.is_read(step, k)) add(step.inputs[k], false);
  if (with_output) add(step.output, true);
  return list;
}

void OnceText::rows_read(const Step& step) {
  std::ranges::move(accesses(step, false), std::back_inserter(since_barrier_));
}

void OnceText::combined(BufferId value, const std::string& total, std::int64_t offset) {
  const BufferId of = root(value);
  const std::int64_t n = places_.elements(value);
  if (places_.is_number(of)) {
    reduces_ = true;
    numbers_[of] = fmt::format("t{}", value);
    text_ += fmt::format("    const float t{} = {}({});\n", value, total, offset);
  } else if (n > 0) {
    open_.push_back({n, {}, {{of, true, 0}}, {{of, fmt::format("{}({} + i)", total, offset)}}});
    reduces_ = true;
  }
}

void OnceText::run(std::uint32_t first, std::uint32_t last) {
  for (std::uint32_t i = first; i < last; ++i) {
    const Step& step = phase_.steps[i];
    if (step.op == Op::record || places_.is_number(root(step.output)))
      number(i);
    else if (places_.elements(step.output) > 0)
      loop(i);
  }
}

// A step that every thread runs by itself: a number, or the record of one.
void OnceText::number(std::uint32_t index) {
  const Step& step = phase_.steps[index];
  const std::vector<Access> accesses = this->accesses(step);
  // All threads have completed the accesses that conflict with these.
  if (std::ranges::any_of(open_, [&](const Loop& loop) { return meet(accesses, loop.accesses); })) flush();
  if (meet(accesses, since_barrier_)) barrier();
  const TextCall c = call(step);
  const std::int64_t terms = fold_of(step.op) == nullptr || c.inputs[0].number ? 0 : c.inputs[0].type.shape.elements();
  const bool shares = terms > kOwnTerms;
  if (shares) {
    flush();
    since_barrier_.clear();  // shared_fold() begins and ends with a barrier
    folds_ = true;
  }
  for (const BufferId input : step.inputs) read_arrays_.insert(root(input));
  if (step.op == Op::record) {
    text_ += fmt::format("    if (first_thread) {}[{} % {}u] = {};{}", frame_.pointer(step.output), c.inputs[2].name,
                         buffer(step.output).type.shape[0], element_text(c), step_comment(step));
  } else {
    std::set<std::string> uses;
    for (std::size_t k = 0; k < step.inputs.size(); ++k)
      if (places_.is_read(step, k)) uses.insert(c.inputs[k].name);
    const std::string name = fmt::format("t{}_{}", step.output, index);
    const std::string code =
        shares ? fold_text(c, fmt::format("shared_fold<{}, {}>(s.fold, ", terms, threads_)) : element_text(c);
    definitions.push_back({name, "    " + definition(step, name, code), std::move(uses)});
    text_ += definitions.back().text;
    numbers_[root(step.output)] = name;
  }
  // Every thread reads the operands by itself from here on, so their next writer waits for all threads.
  rows_read(step);
}

// Merges the step with the open loops on which it depends, so that each thread reads elements that it has written.
void OnceText::loop(std::uint32_t index) {
  const Step& step = phase_.steps[index];
  Loop mine{places_.elements(step.output), {{index, call(step)}}, accesses(step)};
  const auto reads_others = [&](const Loop& other) {  // elements that other threads write, or vice versa
    return std::ranges::any_of(mine.accesses, [&](const Access& a) {
      return std::ranges::any_of(other.accesses, [&](const Access& b) {
        return conflict(a, b) && (other.elements != mine.elements || !a.offset || a.offset != b.offset);
      });
    });
  };
  if (std::ranges::any_of(open_, reads_others)) flush();
  if (meet(mine.accesses, since_barrier_)) {
    flush();
    barrier();
  }
  const auto joined = std::stable_partition(open_.begin(), open_.end(),
                                            [&](const Loop& other) { return !meet(mine.accesses, other.accesses); });
  for (auto other = joined; other != open_.end(); ++other) {
    mine.steps.merge(other->steps);
    mine.accesses.insert(mine.accesses.end(), other->accesses.begin(), other->accesses.end());
    mine.totals.merge(other->totals);
  }
  open_.erase(joined, open_.end());
  open_.push_back(std::move(mine));
}

std::string OnceText::definition(const Step& step, std::string_view name, std::string_view code) const {
  return fmt::format("const {} {} = {};{}", type_name(buffer(step.output).type.dtype), name, code, step_comment(step));
}

void OnceText::emit(const Loop& loop) {
  std::string text;
  const bool sliced =
      std::ranges::any_of(loop.accesses, [&](const Access& access) { return places_.is_sliced(access.root); });
  if (sliced) {  // the last blocks of a cluster may have a partial slice or none
    const BufferId array =
        loop.steps.empty() ? loop.totals.begin()->first : phase_.steps[loop.steps.begin()->first].output;
    text += fmt::format("      if (rank * {} + i >= {}) return;\n", loop.elements, buffer(array).type.shape.elements());
  }
  std::map<std::pair<BufferId, std::int64_t>, std::string> held;  // in a register, by root and offset
  for (const auto& [of, total] : loop.totals) {
    text += fmt::format("      const float t{} = {};  // {}\n", of, total, buffer(of).name);
    held[{of, 0}] = fmt::format("t{}", of);
  }
  for (const auto& [index, resolved] : loop.steps) {
    const Step& step = phase_.steps[index];
    TextCall c = resolved;
    for (std::size_t k = 0; k < step.inputs.size(); ++k) {
      TextOperand& x = c.inputs[k];
      if (x.number || places_.stays_in_arena(step, k)) continue;
      const auto found = held.find({root(step.inputs[k]), x.view.offset});
      if (found == held.end() || !is_elementwise(step.op) || !is_dense(x.view) ||
          x.view.extents.elements() != buffer(step.output).type.shape.elements()) {
        read_arrays_.insert(root(step.inputs[k]));
        continue;
      }
      x.number = true;
      x.name = found->second;
    }
    const std::string name = fmt::format("t{}_{}", step.output, index);
    text += "      " + definition(step, name, element_text(c));
    held[{root(step.output), view(step.output).offset}] = name;
  }
  std::string passed;
  for (const auto& [place, name] : held) {
    if (!places_.is_passed(place.first))
      text += fmt::format("      {}[{}i] = {};\n", array(place.first),
                          place.second == 0 ? "" : fmt::format("{} + ", place.second), name);
    else if (std::ranges::find(written_back_, place.first) != written_back_.end())
      passed += fmt::format("        {}[rank * {} + i] = {};\n", places_.passed(place.first), loop.elements, name);
  }
  if (!passed.empty()) text += fmt::format("      if (leaves) {{\n{}      }}\n", passed);
  if (sliced) {
    text_ +=
        fmt::format("    by_split::each_of_slice<{}, {}>([&](int i) {{\n{}    }});\n", loop.elements, threads_, text);
  } else {
    text_ += fmt::format("    each<{}, {}>({}, [&](int i) {{\n{}    }});\n", loop.elements, threads_,
                         next_warp_ * kWarp, text);
    next_warp_ = (next_warp_ + static_cast<std::uint32_t>((loop.elements + kWarp - 1) / kWarp)) % (threads_ / kWarp);
  }
}

void OnceText::flush() {
  for (const Loop& loop : std::exchange(open_, {})) {
    emit(loop);
    since_barrier_.insert(since_barrier_.end(), loop.accesses.begin(), loop.accesses.end());
  }
}

void OnceText::barrier() {
  text_ += "    barrier();\n";
  since_barrier_.clear();
  next_warp_ = 0;
}

std::string OnceText::before_rows() {
  flush();
  if (std::ranges::any_of(since_barrier_, &Access::writes)) barrier();
  return std::exchange(text_, {});
}

std::string OnceText::end_of_step() {
  flush();
  for (const auto& [of, name] : numbers_)
    if (is_read_first(of)) text_ += fmt::format("    {} = {};\n", places_.name(of), name);
  for (const BufferId of : written_back_)
    if (places_.is_number(of) && !is_read_first(of))
      text_ += fmt::format("    if (first_thread) s.{} = {};\n", places_.name(of), numbers_.at(of));
  if (!since_barrier_.empty() || reduces_) barrier();
  return std::exchange(text_, {});
}

}  // namespace graphrun::cuda
