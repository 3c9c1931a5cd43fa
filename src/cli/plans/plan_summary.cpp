#include "cli/plans/plan_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "cli/plans/buffer_uses.h"
#include "cli/terminal/csv_cell.h"

namespace graphrun::cli {
namespace {

constexpr std::array kClasses = {BufferKind::data,       BufferKind::constant, BufferKind::parameter,
                                 BufferKind::slot,       BufferKind::counter,  BufferKind::metric,
                                 BufferKind::activation, BufferKind::workspace};

std::uint64_t place_of(const Buffer& buffer) {
  constexpr std::uint64_t kPlaces = 256;  // alignment of offsets (architecture.md, "Memory")
  return (buffer.bytes + kPlaces - 1) / kPlaces * kPlaces;
}

bool in_arena(const Program& program, BufferId id) {
  return owns_bytes(program, id) && program.buffers[id].kind != BufferKind::tile;
}

MemoryPeak peak_of(const Program& program) {
  const std::vector<Taken> taken = taken_bytes(program);
  std::size_t times = 0;
  for (const Phase& phase : program.phases) times += phase.steps.size();
  std::vector<std::uint64_t> begins(times + 1), ends(times + 1);  // bytes that become live or dead, by time
  MemoryPeak peak;
  for (const Taken& t : taken) {
    const Buffer& buffer = program.buffers[t.buffer];
    if (is_state(buffer.kind)) {
      peak.state_bytes += place_of(buffer);
    } else {
      begins[std::min(t.lower, times)] += place_of(buffer);
      ends[std::min(t.upper, times)] += place_of(buffer);
    }
  }
  std::uint64_t live = 0, most = 0;
  std::size_t when = 0;
  for (std::size_t time = 0; time < times; ++time) {
    live += begins[time] - ends[time];
    if (live <= most) continue;
    most = live;
    when = time;
  }
  peak.bytes = peak.state_bytes + most;
  std::size_t base = 0;
  for (const Phase& phase : program.phases) {
    if (when < base + phase.steps.size()) {
      peak.phase = phase.name;
      peak.at = when - base;
      peak.step = phase.steps[peak.at].name;
      break;
    }
    base += phase.steps.size();
  }
  for (const Taken& t : taken) {
    if (!is_state(program.buffers[t.buffer].kind) && t.lower <= when && when < t.upper) peak.live.push_back(t.buffer);
  }
  std::stable_sort(peak.live.begin(), peak.live.end(),
                   [&](BufferId a, BufferId b) { return program.buffers[a].bytes > program.buffers[b].bytes; });
  return peak;
}

}  // namespace

std::vector<Taken> taken_bytes(const Program& program) {
  std::vector<std::size_t> base;
  std::size_t times = 0;
  for (const Phase& phase : program.phases) {
    base.push_back(times);
    times += phase.steps.size();
  }
  const std::vector<std::optional<Use>> uses = storage_uses(program);
  std::vector<Taken> taken;
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    if (!in_arena(program, id) || program.buffers[id].bytes == 0) continue;
    const std::optional<Use>& use = uses[id];
    if (use) {
      taken.push_back({id, base[use->phase] + use->first, base[use->phase] + use->last + 1});
    } else {
      taken.push_back({id, 0, std::max<std::size_t>(times, 1)});
    }
  }
  return taken;
}

PlanSummary summary_of(const Program& program) {
  PlanSummary summary;
  for (const BufferKind kind : kClasses) {
    ClassTotal total{kind};
    for (BufferId id = 0; id < program.buffers.size(); ++id) {
      if (program.buffers[id].kind != kind || !owns_bytes(program, id)) continue;
      total.bytes += program.buffers[id].bytes;
      ++total.buffers;
    }
    summary.classes.push_back(total);
  }
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    if (!in_arena(program, id)) continue;
    summary.largest.push_back(id);
    summary.bytes_without_reuse += place_of(program.buffers[id]);
  }
  std::stable_sort(summary.largest.begin(), summary.largest.end(),
                   [&](BufferId a, BufferId b) { return program.buffers[a].bytes > program.buffers[b].bytes; });
  summary.peak = peak_of(program);
  summary.poll_bytes = poll_block(program).bytes;
  for (const Phase& phase : program.phases) {
    for (const Region& region : phase.regions) {
      if (const auto* host = std::get_if<HostTiling>(&region.tiling))
        summary.tile_bytes = std::max(summary.tile_bytes, host->tile_bytes);
    }
  }
  return summary;
}

double over_lower_bound(const Program& program) {
  if (program.lower_bound == 0) return 1;
  return static_cast<double>(program.arena_bytes) / static_cast<double>(program.lower_bound);
}

std::string plan_csv(const Program& program) {
  std::string text = "id,lower,upper,size,offset\n";
  std::set<std::string> known;
  for (const Taken& t : taken_bytes(program)) {
    const Buffer& buffer = program.buffers[t.buffer];
    std::string name = buffer.name;
    if (!known.insert(name).second) name = fmt::format("{}#{}", buffer.name, t.buffer);
    text += fmt::format("{},{},{},{},{}\n", csv_cell(name), t.lower, t.upper, buffer.bytes, buffer.offset);
  }
  return text;
}

}  // namespace graphrun::cli
