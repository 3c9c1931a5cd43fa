// plan.cpp: the verb `plan`: what would be in the arena and what would run, without a device.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <vector>

#include "buffer_uses.h"
#include "graphrun/params/all.h"
#include "graphrun/program.h"
#include "graphrun/session.h"
#include "open.h"
#include "picture_file.h"
#include "plan_picture.h"
#include "terminal.h"
#include "verbs.h"
#include "waiting.h"

namespace graphrun::cli {
namespace {

constexpr std::array kKinds = {BufferKind::data,       BufferKind::constant, BufferKind::parameter,
                               BufferKind::slot,       BufferKind::counter,  BufferKind::metric,
                               BufferKind::activation, BufferKind::workspace};
constexpr std::size_t kLargest = 10;

struct KindTotal {
  std::uint64_t bytes = 0;
  std::size_t buffers = 0;
};

KindTotal total_of(const Program& program, BufferKind kind) {
  KindTotal total;
  for (std::size_t id = 0; id < program.buffers.size(); ++id) {
    if (program.buffers[id].kind != kind || !owns_bytes(program, id)) continue;
    total.bytes += program.buffers[id].bytes;
    ++total.buffers;
  }
  return total;
}

void write_phase(JsonWriter& json, const Phase& phase) {
  json.member("name", phase.name).member("capacity", phase.capacity);
  json.objects("nodes", phase.steps, [&](const Step& step) {
    json.member("op", name_of(step.op)).member("name", step.name).member("inputs", step.inputs);
    json.member("output", step.output);
    if (step.workspace != kNoBuffer) json.member("workspace", step.workspace);
    if (step.row_count != kNoBuffer) json.member("row_count", step.row_count);
    json.key("attrs").begin_object();
    AllParams::visit(step.params, [&](const auto& params) {
      params.describe([&](std::string_view name, const auto& value) { json.member(name, value); });
    });
    json.end_object();
  });
}

void write_buffer(JsonWriter& json, const Program& program, std::size_t id, const std::optional<Use>& use) {
  const Buffer& buffer = program.buffers[id];
  json.member("id", id).member("name", buffer.name).member("kind", name_of(buffer.kind));
  json.member("dtype", name_of(buffer.type.dtype)).member("shape", buffer.type.shape.dims());
  json.member("rows", buffer.type.rows).member("storage_id", buffer.storage);
  json.member("offset", buffer.offset).member("bytes", buffer.bytes).member("poll", buffer.poll);
  if (use) {
    json.member("phase", program.phases[use->phase].name);
    json.member("first_use", use->first).member("last_use", use->last);
  }
}

struct Fusion : FusionSummary {
  std::uint64_t arena_bytes_without = 0;
};

void write_fusion(JsonWriter& json, const Fusion& fusion) {
  json.begin_object().member("arena_bytes_without", fusion.arena_bytes_without);
  json.objects("regions", fusion.regions, [&](const RegionSummary& region) {
    json.member("phase", region.phase).member("steps", region.steps);
    json.member("row_steps", region.row_steps).member("stages", region.stages).member("chains", region.chains);
    if (const auto* host = std::get_if<HostTiling>(&region.tiling)) {
      json.member("tile_rows", host->tile_rows).member("tile_bytes", host->tile_bytes);
      json.member("partitions", host->partitions);
    } else if (const auto* step = std::get_if<StepTiling>(&region.tiling)) {
      json.member("tiling", region.tiling_name);
      json.objects("tilings", region.choices, [&](const std::pair<std::string, std::int64_t>& choice) {
        json.member("tiling", choice.first).member("cycles", choice.second);
      });
      json.member("threads", step->threads).member("cluster", step->cluster).member("blocks", step->blocks());
    } else {
      const auto& gpu = std::get<GpuTiling>(region.tiling);
      json.member("threads", gpu.threads).member("blocks", gpu.blocks);
    }
    json.member("bytes_in_tiles", region.bytes_in_tiles);
  });
  json.member("notes", fusion.notes).end_object();
}

std::string as_json(const Program& program, std::string_view executor, const Fusion& fusion) {
  JsonWriter json;
  json.begin_object().member("model", program.name).member("executor", executor);
  json.member("math", name_of(program.math)).member("target", program.target);
  json.member("arena_bytes", program.arena_bytes).member("lower_bound", program.lower_bound);
  json.member("poll_bytes", poll_block(program).bytes);
  json.key("bytes_by_kind").begin_object();
  for (const BufferKind kind : kKinds) json.member(name_of(kind), total_of(program, kind).bytes);
  json.end_object();
  json.objects("phases", program.phases, [&](const Phase& phase) { write_phase(json, phase); });
  const auto used = uses(program);
  json.objects("buffers", program.buffers, [&](const Buffer& buffer) {
    const auto id = static_cast<std::size_t>(&buffer - program.buffers.data());
    write_buffer(json, program, id, used[id]);
  });
  write_fusion(json.key("fusion"), fusion);
  json.member("fallbacks", fusion.fallbacks);
  json.end_object();
  return json.text() + "\n";
}

// What can run at the same time.
std::int64_t parts_of(const Tiling& tiling) {
  if (const auto* host = std::get_if<HostTiling>(&tiling)) return host->partitions;
  if (const auto* step = std::get_if<StepTiling>(&tiling)) return step->blocks();
  return std::get<GpuTiling>(tiling).blocks;
}

// The cheapest tilings of each region that has several, and the chosen one.
std::string tilings_text(const Fusion& fusion) {
  constexpr std::size_t kListed = 4;
  std::string text;
  for (const RegionSummary& region : fusion.regions) {
    for (std::size_t i = 0; i < region.choices.size(); ++i) {
      const auto& [name, cycles] = region.choices[i];
      const bool chosen = name == region.tiling_name;
      if (i < kListed || chosen)
        text += fmt::format("{:<24}{:<24}{:>12}{}\n", region.phase, name, grouped(static_cast<std::uint64_t>(cycles)),
                            chosen ? "  chosen" : "");
    }
  }
  if (text.empty()) return text;
  return paint(stdout, Style::bold, fmt::format("\n{:<24}{:<24}{:>12}\n", "regions", "tilings", "cycles")) + text;
}

// Regions, what they keep from the arena, and why the rest is in none.
std::string regions_text(const Fusion& fusion) {
  if (fusion.regions.empty() && fusion.notes.empty()) return {};
  std::string text = paint(
      stdout, Style::bold,
      fmt::format("\n{:<24}{:>6}{:>6}{:>12}{:>18}\n", "regions", "steps", "rows", "partitions", "bytes in tiles"));
  for (const RegionSummary& region : fusion.regions) {
    text += fmt::format("{:<24}{:>6}{:>6}{:>12}{:>18}\n", region.phase, region.steps, region.row_steps,
                        parts_of(region.tiling), grouped(region.bytes_in_tiles));
  }
  text += tilings_text(fusion);
  text += fmt::format("Without regions the arena has {}.\n", human_bytes(fusion.arena_bytes_without));
  for (const std::string& note : fusion.notes) text += note + "\n";
  return text;
}

std::string fallbacks_text(const Fusion& fusion) {
  std::string text = fusion.fallbacks.empty() ? "" : "\n";
  for (const std::string& fallback : fusion.fallbacks) text += fallback + "\n";
  return text;
}

std::string as_text(const Program& program, std::string_view executor, std::size_t listed) {
  std::string text = paint(stdout, Style::bold, fmt::format("{} on {}", printable(program.name), executor)) + "\n";
  const auto line = [&](std::string_view label, std::string_view content) {
    text += fmt::format("{:<12}  {}\n", label, content);
  };
  line("target", program.target);
  line("arena", human_bytes(program.arena_bytes));
  line("lower bound", human_bytes(program.lower_bound));
  line("polled", human_bytes(poll_block(program).bytes));

  text += paint(stdout, Style::bold, fmt::format("\n{:<12}{:>18}{:>10}\n", "kind", "bytes", "buffers"));
  for (const BufferKind kind : kKinds) {
    const KindTotal total = total_of(program, kind);
    if (total.buffers > 0)
      text += fmt::format("{:<12}{:>18}{:>10}\n", name_of(kind), grouped(total.bytes), total.buffers);
  }
  text += "Activations and workspace share addresses: they may add up to more than the arena.\n";

  text += paint(stdout, Style::bold, fmt::format("\n{:<24}{:>6}{:>10}\n", "phase", "steps", "rows"));
  for (const Phase& phase : program.phases) {
    text += fmt::format("{:<24}{:>6}{:>10}\n", phase.name, phase.steps.size(), phase.capacity);
  }

  std::vector<std::size_t> order;
  for (std::size_t id = 0; id < program.buffers.size(); ++id) {
    if (owns_bytes(program, id) && program.buffers[id].kind != BufferKind::tile) order.push_back(id);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return program.buffers[a].bytes > program.buffers[b].bytes; });
  order.resize(std::min(order.size(), listed));
  text +=
      paint(stdout, Style::bold, fmt::format("\n{:>18}  {:<12}{:<24}{}\n", "bytes", "kind", "type", "largest buffers"));
  for (const std::size_t id : order) {
    const Buffer& buffer = program.buffers[id];
    text += fmt::format("{:>18}  {:<12}{:<24}{}\n", grouped(buffer.bytes), name_of(buffer.kind), to_string(buffer.type),
                        buffer.name);
  }
  return text;
}

int run_plan(const Arguments& arguments, Diagnostics& diagnostics) {
  PictureFile file(arguments, "plan.write");
  LoadOptions load = arguments.load;
  load.data = DataUse::sizes;
  const Model model = read_model(arguments, load, diagnostics);
  const Waiting waiting(diagnostics, "planning");
  Fusion fusion;
  const Program program = plan_program(model, arguments.session, &fusion);
  const std::string_view executor = arguments.session.executor;
  if (arguments.svg) {
    file.write(plan_picture(program, executor));
    return kDone;
  }
  if (arguments.program) {
    write_results(to_string(program));
    return kDone;
  }
  SessionOptions plain = arguments.session;
  plain.fuse = false;
  plain.jit = Jit::off;
  plain.tiling.clear();
  fusion.arena_bytes_without = arguments.session.fuse ? plan_program(model, plain).arena_bytes : program.arena_bytes;
  write_results(arguments.json ? as_json(program, executor, fusion)
                               : as_text(program, executor, arguments.verbose ? program.buffers.size() : kLargest) +
                                     regions_text(fusion) + fallbacks_text(fusion));
  return kDone;
}

}  // namespace

const Verb plan_verb = {
    "plan",
    "",
    Words::model,
    "show the memory plan and the steps; needs no device",
    R"(Prints how many bytes the run will take, what they are for, and the steps of each phase. Nothing is allocated or
computed, and the plan for a GPU needs none. --svg draws it: what lies at which offset of the arena, and when.)",
    R"(graphrun plan model.json
graphrun plan model.json --executor=cuda --target=h200 --json
graphrun plan model.json --program
graphrun plan model.json --svg -o plan.svg)",
    run_plan};

}  // namespace graphrun::cli
