#include "graphrun/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>

#include "graphrun/elements.h"
#include "graphrun/error.h"
#include "graphrun/op.h"
#include "graphrun/partial_results.h"

namespace graphrun {
namespace {

constexpr std::string_view kKindNames[] = {"data",   "constant",   "parameter", "slot", "counter",
                                           "metric", "activation", "workspace", "tile"};

// Name for readability, id for uniqueness: "h.W#4".
std::string label(const Program& program, BufferId id) {
  if (id == kNoBuffer) return "none";
  const std::string_view name = id < program.buffers.size() ? std::string_view(program.buffers[id].name) : "?";
  return fmt::format("{}#{}", name, id);
}

std::string element(const std::vector<std::byte>& bytes, DType dtype, std::size_t index) {
  if (dtype == DType::boolean) return bytes[index] == std::byte{0} ? "false" : "true";
  return with_type(dtype, [&](auto zero) { return fmt::format("{}", load_element<decltype(zero)>(bytes, index)); });
}

// The first elements, or "N times x" for the common case that all are equal.
std::string elements(const std::vector<std::byte>& bytes, DType dtype) {
  constexpr std::size_t kShown = 8;
  const std::size_t width = size_of(dtype);
  const std::size_t count = bytes.size() / width;
  if (count == 0) return "nothing";
  // All elements are equal exactly if the bytes match themselves shifted by one element.
  if (count > 1 && std::equal(bytes.begin() + static_cast<std::ptrdiff_t>(width), bytes.end(), bytes.begin())) {
    return fmt::format("{} times {}", count, element(bytes, dtype, 0));
  }
  std::string text = element(bytes, dtype, 0);
  for (std::size_t i = 1; i < std::min(count, kShown); ++i) text += " " + element(bytes, dtype, i);
  if (count > kShown) text += fmt::format(" and {} more", count - kShown);
  return text;
}

std::string buffer_line(const Program& program, BufferId id) {
  const Buffer& buffer = program.buffers[id];
  std::string text = fmt::format("  {}: {}", label(program, id), name_of(buffer.kind));
  if (buffer.kind != BufferKind::workspace) text += " " + to_string(buffer.type);  // a workspace has no type
  text += fmt::format(", {} bytes at {}", buffer.bytes, buffer.offset);
  if (buffer.storage != id) text += fmt::format(" in {}", label(program, buffer.storage));
  if (buffer.poll) text += ", poll";
  if (buffer.layout == Layout::registers) text += ", in registers";
  if (buffer.layout == Layout::strided) text += fmt::format(", strides ({})", fmt::join(buffer.strides, ", "));
  if (buffer.layout == Layout::codes) text += fmt::format(", in codes / {}", buffer.divisor);
  if (buffer.extents.rank() > 0) text += fmt::format(" of extents ({})", fmt::join(buffer.extents.dims(), ", "));
  if (buffer.layout == Layout::vectors) {
    text +=
        buffer.kind == BufferKind::tile ? ", in place" : fmt::format(", in vectors from every {} rows", buffer.block);
  }
  return text + '\n';
}

std::string step_line(const Program& program, const Step& step, std::size_t number) {
  std::vector<std::string> inputs;
  for (const BufferId id : step.inputs) inputs.push_back(label(program, id));
  std::string text = fmt::format("  {}. {} = {}({}){}", number, label(program, step.output), name_of(step.op),
                                 fmt::join(inputs, ", "), to_string(step.params));
  if (step.row_count != kNoBuffer) text += fmt::format(" rows={}", label(program, step.row_count));
  if (step.workspace != kNoBuffer) text += fmt::format(" workspace={}", label(program, step.workspace));
  // A step usually has the name of its output, which is already printed.
  if (step.output >= program.buffers.size() || program.buffers[step.output].name != step.name) {
    text += fmt::format("  ({})", step.name);
  }
  return text + '\n';
}

std::string moves(const Program& program, std::string_view word, const std::vector<TileMove>& moves) {
  std::vector<std::string> pairs;
  for (const TileMove& move : moves) {
    pairs.push_back(fmt::format("{} {}", label(program, move.arena), label(program, move.tile)));
  }
  return moves.empty() ? std::string() : fmt::format("    {} {}\n", word, fmt::join(pairs, ", "));
}

std::string fused_line(const FusedSteps& fused) {
  std::string text = fmt::format("    fused {}", fused.product + 1);
  for (const std::uint32_t step : {fused.bias, fused.epilogue, fused.sum})
    if (step != kNoStep) text += fmt::format(" {}", step + 1);
  return text + '\n';
}

std::string element_lines(const Region& region, std::size_t number) {
  std::vector<std::string> chains;
  for (const ElementChain& chain : region.chains)
    chains.push_back(fmt::format("{} to {}", chain.first + 1, chain.last));
  const std::string tiling = region.tiling.index() == 0 ? std::string() : ", " + to_string(region.tiling);
  return fmt::format("  region {}: over elements, steps {}{}\n", number, fmt::join(chains, ", "), tiling);
}

// The program may be invalid.
std::string groups_text(const Program& program, BufferId accumulators, const HostTiling& tiling) {
  if (accumulators >= program.buffers.size() || tiling.accumulator_bytes == 0 || tiling.partitions < 1) return {};
  const std::uint64_t sets = program.buffers[accumulators].bytes / tiling.accumulator_bytes;
  const std::int32_t group = largest_group(tiling.partitions, sets);
  return group > 0 && group < tiling.partitions ? fmt::format(", in groups of {}", group) : std::string();
}

std::string region_lines(const Program& program, const Region& region, std::size_t number) {
  if (!region.chains.empty()) return element_lines(region, number);
  std::string text = fmt::format("  region {}: steps {} to {}, ", number, region.first() + 1, region.last);
  text += to_string(region.tiling);
  const auto* host = std::get_if<HostTiling>(&region.tiling);
  if (host != nullptr && region.accumulators != kNoBuffer) {
    text += fmt::format(" with {} bytes each in {}", host->accumulator_bytes, label(program, region.accumulators));
    if (host->lanes) text += ", lanes apart";
    text += groups_text(program, region.accumulators, *host);
  }
  text += '\n';
  for (const Stage& stage : region.stages) {
    text += fmt::format("   stage: once {} to {}, rows {} to {}\n", stage.first + 1, stage.rows, stage.rows + 1,
                        stage.last);
    text += moves(program, "load", stage.loads) + moves(program, "store", stage.stores);
    for (const Combine& combine : stage.combines) {
      text +=
          fmt::format("    combine {} {} at {}\n", label(program, combine.value), name_of(combine.op), combine.offset);
    }
    for (const FusedSteps& fused : stage.fused) text += fused_line(fused);
  }
  return text;
}

}  // namespace

std::string_view name_of(CombineOp op) {
  constexpr std::string_view kNames[] = {"sum", "product", "max", "min"};
  return kNames[static_cast<std::size_t>(op)];
}

std::string_view name_of(BufferKind kind) {
  return kKindNames[static_cast<std::size_t>(kind)];
}

std::string to_string(const Tiling& tiling) {
  if (const auto* gpu = std::get_if<GpuTiling>(&tiling))
    return fmt::format("{} blocks of {} threads", gpu->blocks, gpu->threads);
  if (const auto* step = std::get_if<StepTiling>(&tiling)) {
    const std::string blocks = step->cluster == 1    ? fmt::format("{}", step->clusters)
                               : step->clusters == 1 ? fmt::format("a cluster of {}", step->cluster)
                                                     : fmt::format("{} clusters of {}", step->clusters, step->cluster);
    const std::string groups = step->groups == 1 ? "" : fmt::format(" in {} groups", step->groups);
    return fmt::format("{} block{} of {} threads{}{}", blocks, step->blocks() == 1 ? "" : "s", step->threads, groups,
                       step->tile == RowTile::warp    ? ", a warp has 16 rows"
                       : step->tile == RowTile::block ? ", a block has 8 rows"
                       : step->tile == RowTile::pair  ? ", two threads have a row"
                       : step->tile == RowTile::split ? ", a cluster has rows, its blocks slices of them"
                                                      : "");
  }
  const auto& host = std::get<HostTiling>(tiling);
  return fmt::format("tiles of {} rows and {} bytes, {} partitions", host.tile_rows, host.tile_bytes, host.partitions);
}

std::string to_string(const Program& program) {
  std::string text = fmt::format(
      "program {} for {}{}\narena {} bytes, lower bound {}\n\nbuffers\n", printable(program.name), program.target,
      program.math == MathMode::exact ? "" : ", fast math", program.arena_bytes, program.lower_bound);
  for (BufferId id = 0; id < program.buffers.size(); ++id) text += buffer_line(program, id);
  for (const Phase& phase : program.phases) {
    text += fmt::format("\nphase {}, batch {}\n", phase.name, phase.capacity);
    for (std::size_t i = 0; i < phase.steps.size(); ++i) text += step_line(program, phase.steps[i], i + 1);
    for (std::size_t i = 0; i < phase.regions.size(); ++i) text += region_lines(program, phase.regions[i], i + 1);
  }
  if (!program.initial.empty()) text += "\ninitial values\n";
  for (const InitialValue& value : program.initial) {
    const DType dtype = value.buffer < program.buffers.size() ? program.buffers[value.buffer].type.dtype : DType::f32;
    text += fmt::format("  {} = {}\n", label(program, value.buffer), elements(value.bytes, dtype));
  }
  return text;
}

void check_range(const Buffer& buffer, std::uint64_t first, std::uint64_t bytes) {
  const bool inside = first <= buffer.bytes && bytes <= buffer.bytes - first;
  if (inside && buffer.layout == Layout::rows && buffer.kind != BufferKind::tile) return;
  throw std::logic_error(
      fmt::format("bytes {} to {} of buffer {} of {}", first, first + bytes, buffer.name, buffer.bytes));
}

std::uint64_t check_rows(const Buffer& buffer, std::int64_t first, std::uint64_t bytes) {
  const std::int64_t rows = buffer.type.shape.rank() > 0 ? buffer.type.shape[0] : 0;
  const std::uint64_t row = rows > 0 ? buffer.type.bytes() / static_cast<std::uint64_t>(rows) : 0;
  const bool in_arena = buffer.layout != Layout::strided && buffer.kind != BufferKind::tile;
  const bool whole = row > 0 ? bytes % row == 0 : bytes == 0;
  if (in_arena && whole && first >= 0 && first <= rows &&
      (row == 0 || bytes / row <= static_cast<std::uint64_t>(rows - first)))
    return row;
  throw std::logic_error(
      fmt::format("{} bytes from row {} of buffer {} of {} rows of {} bytes", bytes, first, buffer.name, rows, row));
}

View view_of(const Buffer& buffer) {
  View view = dense(buffer.extents.rank() > 0 ? buffer.extents : buffer.type.shape);
  if (buffer.layout == Layout::strided) std::copy(buffer.strides.begin(), buffer.strides.end(), view.strides);
  return view;
}

// Byte offsets of the elements in row-major order, relative to the buffer's offset.
static std::vector<std::uint64_t> element_offsets(const Buffer& buffer) {
  const View view = view_of(buffer);
  std::vector<std::uint64_t> offsets = {0};
  for (int axis = 0; axis < view.extents.rank(); ++axis) {
    std::vector<std::uint64_t> longer;
    for (const std::uint64_t base : offsets)
      for (std::int64_t i = 0; i < view.extents[axis]; ++i)
        longer.push_back(base + static_cast<std::uint64_t>(i * view.strides[axis]) * size_of(buffer.type.dtype));
    offsets = std::move(longer);
  }
  return offsets;
}

void gather(const Buffer& buffer, const std::byte* data, std::span<std::byte> to) {
  std::byte* next = to.data();
  for (const std::uint64_t at : element_offsets(buffer))
    next = std::copy_n(data + at, size_of(buffer.type.dtype), next);
}
void scatter(const Buffer& buffer, std::span<const std::byte> from, std::byte* data) {
  const std::byte* next = from.data();
  for (const std::uint64_t at : element_offsets(buffer)) {
    std::copy_n(next, size_of(buffer.type.dtype), data + at);
    next += size_of(buffer.type.dtype);
  }
}

void encode(const Buffer& buffer, std::span<const std::byte> values, std::byte* codes) {
  float value, known[256];
  for (int code = 0; code < 256; ++code) known[code] = decoded(static_cast<std::uint8_t>(code), buffer.divisor);
  for (std::size_t i = 0; i < values.size() / sizeof(value); ++i) {
    std::memcpy(&value, values.data() + i * sizeof(value), sizeof(value));
    const double rounded = value * buffer.divisor + 0.5;
    const auto code = rounded >= 0 && rounded < 256 ? static_cast<std::uint8_t>(rounded) : std::uint8_t{0};
    if (std::bit_cast<std::uint32_t>(value) != std::bit_cast<std::uint32_t>(known[code]))
      throw Error(ErrorKind::input, "state.code",
                  fmt::format("'{}' is stored in a byte per element, as k / {} with k from 0 to 255, and {} is not one "
                              "of these values",
                              buffer.name, buffer.divisor, value),
                  "a split with \"rows_vary\" is stored as f32 and takes any values");
    codes[i] = std::byte{code};
  }
}
void decode(const Buffer& buffer, const std::byte* codes, std::span<std::byte> values) {
  for (std::size_t i = 0; i < values.size() / sizeof(float); ++i) {
    const float value = decoded(std::to_integer<std::uint8_t>(codes[i]), buffer.divisor);
    std::memcpy(values.data() + i * sizeof(value), &value, sizeof(value));
  }
}

std::string stored_type(const Buffer& buffer) {
  const std::string text = to_string(buffer.type);
  return buffer.layout == Layout::codes ? "u8" + text.substr(text.find('(')) : text;
}

std::int64_t elements_of(const Program& program, const Step& step) {
  return step.op == Op::record ? 1 : program.buffers[step.output].type.shape.elements();
}

BufferId find_buffer(const Program& program, std::string_view name) {
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    if (program.buffers[id].name == name) return id;
  }
  return kNoBuffer;
}

BufferId storage_root(const Program& program, BufferId id) {
  while (program.buffers[id].storage != id) id = program.buffers[id].storage;
  return id;
}

PhaseId find_phase(const Program& program, std::string_view name) {
  std::vector<std::string> known;
  for (PhaseId id = 0; id < program.phases.size(); ++id) {
    if (program.phases[id].name == name) return id;
    known.push_back(program.phases[id].name);
  }
  throw Error(ErrorKind::input, "phase.unknown",
              fmt::format("program '{}' has no phase '{}'; its phases are {}", program.name, name,
                          known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))),
              did_you_mean(name, known));
}

PollBlock poll_block(const Program& program) {
  std::uint64_t first = ~std::uint64_t{0};
  std::uint64_t end = 0;
  for (const Buffer& buffer : program.buffers) {
    if (!buffer.poll || buffer.bytes == 0) continue;
    first = std::min(first, buffer.offset);
    end = std::max(end, buffer.offset + buffer.bytes);
  }
  return end == 0 ? PollBlock{} : PollBlock{first, end - first};
}

}  // namespace graphrun
