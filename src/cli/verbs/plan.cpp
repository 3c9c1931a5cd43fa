// plan.cpp: the verb `plan`: memory plan and execution plan, without a device.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "cli/command_line/open.h"
#include "cli/command_line/verbs.h"
#include "cli/pictures/picture_file.h"
#include "cli/plans/buffer_uses.h"
#include "cli/plans/plan_buffers.h"
#include "cli/plans/plan_lock.h"
#include "cli/plans/plan_page.h"
#include "cli/plans/plan_picture.h"
#include "cli/plans/plan_summary.h"
#include "cli/plans/shards_summary.h"
#include "cli/results/budget_lines.h"
#include "cli/terminal/slow_operation.h"
#include "cli/terminal/terminal.h"
#include "graphrun/params.h"
#include "graphrun/program.h"
#include "graphrun/session.h"

namespace graphrun::cli {
namespace {

constexpr std::size_t kLargest = 10;

void write_phase(JsonWriter& json, const Phase& phase) {
  json.member("name", phase.name).member("capacity", phase.capacity);
  json.objects("nodes", phase.steps, [&](const Step& step) {
    json.member("op", name_of(step.op)).member("name", step.name).member("inputs", step.inputs);
    json.member("output", step.output);
    if (step.workspace != kNoBuffer) json.member("workspace", step.workspace);
    if (step.row_count != kNoBuffer) json.member("row_count", step.row_count);
    json.key("attrs").begin_object();
    step.params.describe([&](std::string_view name, const auto& value) { json.member(name, value); });
    json.end_object();
  });
}

void write_buffer(JsonWriter& json, const Program& program, std::size_t id, const std::optional<Use>& use) {
  const Buffer& buffer = program.buffers[id];
  json.member("id", id).member("name", buffer.name).member("kind", name_of(buffer.kind));
  json.member("dtype", buffer.layout == Layout::codes ? "u8" : name_of(buffer.type.dtype))
      .member("shape", buffer.type.shape.dims());
  json.member("rows", buffer.type.rows).member("storage_id", buffer.storage);
  json.member("offset", buffer.offset).member("bytes", buffer.bytes).member("poll", buffer.poll);
  if (use) {
    json.member("phase", program.phases[use->phase].name);
    json.member("first_use", use->first).member("last_use", use->last);
  }
}

struct Fusion : FusionSummary {
  std::uint64_t arena_bytes_without = 0;
  std::uint64_t bytes_without_both = 0;  // without regions and without reuse
};

std::vector<BufferId> first_of(const std::vector<BufferId>& all, std::size_t count) {
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(count, all.size()))};
}

void write_fusion(JsonWriter& json, const Fusion& fusion) {
  json.begin_object().member("arena_bytes_without", fusion.arena_bytes_without);
  json.member("bytes_without_reuse", fusion.bytes_without_both);
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

// Bytes of a network's own copy of the data set.
std::uint64_t data_bytes(const PlanSummary& summary) {
  const auto data = std::ranges::find(summary.classes, BufferKind::data, &ClassTotal::kind);
  return data == summary.classes.end() ? 0 : data->bytes;
}

std::string as_json(const Program& program, std::string_view executor, const Fusion& fusion, int at_once) {
  JsonWriter json;
  json.begin_object().member("model", program.name).member("executor", executor);
  json.member("math", name_of(program.math)).member("target", program.target);
  json.member("arena_bytes", program.arena_bytes).member("lower_bound", program.lower_bound);
  const PlanSummary summary = summary_of(program);
  json.member("over_lower_bound", over_lower_bound(program)).member("poll_bytes", summary.poll_bytes);
  json.key("bytes_by_kind").begin_object();
  for (const ClassTotal& total : summary.classes) json.member(name_of(total.kind), total.bytes);
  json.end_object();
  json.member("bytes_without_reuse", summary.bytes_without_reuse);
  json.key("peak").begin_object().member("phase", summary.peak.phase).member("step", summary.peak.step);
  json.member("at", summary.peak.at).member("bytes", summary.peak.bytes);
  json.member("state_bytes", summary.peak.state_bytes).member("live", summary.peak.live).end_object();
  json.member("largest", first_of(summary.largest, kLargest));
  json.key("outside_arena").begin_object().member("polled", summary.poll_bytes);
  json.member("tiles", summary.tile_bytes).end_object();
  if (at_once > 0) {
    const auto networks = static_cast<std::uint64_t>(at_once);
    json.key("at_once").begin_object().member("networks", networks);
    json.member("arena_bytes", networks * program.arena_bytes);
    json.member("data_bytes", networks * data_bytes(summary)).end_object();
  }
  json.objects("phases", program.phases, [&](const Phase& phase) { write_phase(json, phase); });
  const auto used = uses(program);
  json.objects("buffers", program.buffers, [&](const Buffer& buffer) {
    const auto id = static_cast<std::size_t>(&buffer - program.buffers.data());
    write_buffer(json, program, id, used[id]);
  });
  write_fusion(json.key("fusion"), fusion);
  json.member("fallbacks", fusion.fallbacks);
  if (fusion.budget.limit > 0) write_budget(json.key("budget"), fusion.budget);
  if (const ShardsSummary shards = shards_summary(program); shards.shards > 1) {
    json.key("shards").begin_object().member("shards", shards.shards).member("rows", shards.rows);
    json.member("member_bytes", shards.member_bytes).member("messages", shards.messages);
    json.member("message_bytes", shards.message_bytes).member("pays_from", shards.pays_from).end_object();
  }
  json.end_object();
  return json.text() + "\n";
}

// Number of parts that run in parallel.
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

// Regions, the bytes they keep out of the arena, and why the other steps are not in one.
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
  for (const std::string& note : fusion.notes) text += note + "\n";
  return text;
}

std::string budget_text(const Program& program, const Fusion& fusion) {
  std::string text;
  for (const std::string& line : budget_lines(fusion.budget, program)) text += line + "\n";
  if (text.empty()) return text;
  return paint(stdout, Style::bold, "\nto fit max_memory\n") + text;
}

std::string fallbacks_text(const Fusion& fusion) {
  std::string text = fusion.fallbacks.empty() ? "" : "\n";
  for (const std::string& fallback : fusion.fallbacks) text += fallback + "\n";
  return text;
}

std::string buffers_text(const Program& program, const std::vector<BufferId>& buffers, std::string_view heading) {
  std::string text =
      paint(stdout, Style::bold, fmt::format("\n{:>18}  {:<12}{:<24}{}\n", "bytes", "kind", "type", heading));
  for (const BufferId id : buffers) {
    const Buffer& buffer = program.buffers[id];
    text += fmt::format("{:>18}  {:<12}{:<24}{}\n", grouped(buffer.bytes), name_of(buffer.kind), stored_type(buffer),
                        buffer.name);
  }
  return text;
}

std::string savings_text(const PlanSummary& summary, const Program& program, const Fusion& fusion) {
  std::string text =
      paint(stdout, Style::bold, fmt::format("\n{:<24}{:>18}{:>18}\n", "bytes of the arena", "reuse", "no reuse"));
  text += fmt::format("{:<24}{:>18}{:>18}\n", fusion.regions.empty() ? "as planned" : "with regions",
                      grouped(program.arena_bytes), grouped(summary.bytes_without_reuse));
  if (!fusion.regions.empty())
    text += fmt::format("{:<24}{:>18}{:>18}\n", "without regions", grouped(fusion.arena_bytes_without),
                        grouped(fusion.bytes_without_both));
  return text;
}

std::string as_text(const Program& program, std::string_view executor, const Fusion& fusion, int at_once, bool all) {
  const PlanSummary summary = summary_of(program);
  std::string text = paint(stdout, Style::bold, fmt::format("{} on {}", printable(program.name), executor)) + "\n";
  const auto line = [&](std::string_view label, std::string_view content) {
    text += fmt::format("{:<12}  {}\n", label, content);
  };
  line("target", program.target);
  line("arena", human_bytes(program.arena_bytes));
  line("lower bound",
       fmt::format("{}; arena / lower bound {:.4f}", human_bytes(program.lower_bound), over_lower_bound(program)));
  line("polled", human_bytes(summary.poll_bytes));
  if (summary.tile_bytes > 0)
    line("tiles", fmt::format("{} a thread, outside the arena", human_bytes(summary.tile_bytes)));
  if (const auto networks = static_cast<std::uint64_t>(at_once); networks > 0)
    line("at once",
         fmt::format("{} networks: {}, of which data {}; each has an arena of its own", networks,
                     human_bytes(networks * program.arena_bytes), human_bytes(networks * data_bytes(summary))));
  if (!summary.peak.step.empty())
    line("peak", fmt::format("{} at step {} of {}, {}", human_bytes(summary.peak.bytes), summary.peak.at + 1,
                             summary.peak.phase, summary.peak.step));

  text += paint(stdout, Style::bold, fmt::format("\n{:<12}{:>18}{:>10}\n", "kind", "bytes", "buffers"));
  for (const ClassTotal& total : summary.classes) {
    if (total.buffers == 0) continue;
    text += fmt::format("{:<12}{:>18}{:>10}\n", name_of(total.kind), grouped(total.bytes), total.buffers);
  }
  text += "Activations and workspace share addresses: they may add up to more than the arena.\n";

  text += paint(stdout, Style::bold, fmt::format("\n{:<24}{:>6}{:>10}\n", "phase", "steps", "rows"));
  for (const Phase& phase : program.phases) {
    text += fmt::format("{:<24}{:>6}{:>10}\n", phase.name, phase.steps.size(), phase.capacity);
  }
  text += savings_text(summary, program, fusion);
  text += buffers_text(program, first_of(summary.largest, all ? summary.largest.size() : kLargest), "largest buffers");
  if (!summary.peak.live.empty())
    text += buffers_text(
        program, first_of(summary.peak.live, all ? summary.peak.live.size() : kLargest),
        fmt::format("live at the peak, in addition to {} of states", human_bytes(summary.peak.state_bytes)));
  return text;
}

// Keeps the batch size, even if the budget would choose another one without regions.
void plan_without(const Model& given, const Arguments& arguments, LoadOptions load, const Program& program,
                  Fusion& fusion) {
  fusion.arena_bytes_without = program.arena_bytes;
  fusion.bytes_without_both = summary_of(program).bytes_without_reuse;
  if (!arguments.session.fuse) return;
  SessionOptions plain = arguments.session;
  plain.fuse = false;
  plain.jit = Jit::off;
  plain.tiling.clear();
  const bool is_bounded = given.train.max_memory > 0 || given.train.largest_batch;
  if (is_bounded && !program.phases.empty())
    load.overrides.emplace_back("train.batch",
                                std::to_string(program.phases.front().capacity * shards_summary(program).shards));
  std::optional<Model> again;
  if (is_bounded) again.emplace(load_model(arguments.model, load)).train.max_memory = 0;
  const Program unfused = plan_program(again ? *again : given, plain);
  fusion.arena_bytes_without = unfused.arena_bytes;
  fusion.bytes_without_both = summary_of(unfused).bytes_without_reuse;
}

int run_plan(const Arguments& arguments, Diagnostics& diagnostics) {
  if (!arguments.plan.buffers.empty()) return plan_buffers(arguments);
  PictureFile file(arguments, "plan.write");
  std::optional<OutputFile> lock;
  if (!arguments.plan.lock.empty()) lock.emplace(arguments.plan.lock, "plan.write");
  LoadOptions load = arguments.load;
  load.data = DataUse::sizes;
  const Model model = read_model(arguments, load, diagnostics);
  const SlowOperationNotice notice(diagnostics, "planning");
  Fusion fusion;
  const Program program = plan_program(model, arguments.session, &fusion);
  const std::string_view executor = arguments.session.executor;
  if (!arguments.plan.check.empty()) {
    if (const std::optional<std::string> difference = difference_from_lock(program, arguments.plan.check)) {
      write_results(*difference);
      throw Error(ErrorKind::check, "lock.differs",
                  fmt::format("'{}' is the snapshot of another plan", arguments.plan.check),
                  "--lock writes a new snapshot");
    }
  }
  if (lock) {
    lock->write(plan_lock(program));
    lock->commit();
  }
  if (arguments.svg) {
    file.write(plan_picture(program, executor));
  } else if (arguments.csv) {
    file.write(plan_csv(program));
  } else if (arguments.program) {
    write_results(to_string(program));
  } else {
    plan_without(model, arguments, load, program, fusion);
    const auto text = [&] {
      return as_text(program, executor, fusion, arguments.at_once, arguments.verbose) + budget_text(program, fusion) +
             regions_text(fusion) + shards_text(shards_summary(program)) + fallbacks_text(fusion);
    };
    if (arguments.html) {
      file.write(plan_page(program, executor, fusion.arena_bytes_without, fusion.bytes_without_both));
    } else {
      write_results(arguments.json ? as_json(program, executor, fusion, arguments.at_once) : text());
    }
  }
  return kDone;
}

}  // namespace

const Verb plan_verb = {
    "plan",
    "",
    Positionals::model,
    "print the memory plan; needs no device",
    R"(Prints the memory that a run needs, by kind, and the number of plan steps of each phase. plan does not run the
model, so you can plan for a GPU that this machine does not have. It reads the data, unless the model file
states the number of rows. It always reads 8-bit images, which take a byte per number, if their files exist.

--at-once=N prints the memory of N networks that train at a time, as by `sweep`. Each has its own copy of the
data in its own arena, and tiles for each of its threads.

--svg draws the offsets in the arena over time. --html writes the whole plan as a page. --csv prints the
buffers as input for other solvers. --buffers packs the buffers of a CSV file. --lock writes a snapshot of the
plan, and --check compares a later plan with it. The exit code is 3 if they differ.)",
    R"(graphrun plan model.json
graphrun plan model.json --executor=cuda --target=h200 --json
graphrun plan model.json --program
graphrun plan model.json --shards=8
graphrun plan model.json --svg -o plan.svg
graphrun plan model.json --html -o plan.html
graphrun plan model.json --lock plan.lock
graphrun plan model.json --check plan.lock
graphrun plan --buffers in.csv --capacity 1048576 -o out.csv)",
    run_plan};

}  // namespace graphrun::cli
