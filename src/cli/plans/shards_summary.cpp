#include "cli/plans/shards_summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/terminal/terminal.h"
#include "graphrun/op.h"
#include "graphrun/target.h"

namespace graphrun::cli {
namespace {

// A round in shared memory between two processes with a core each, or between two GPUs (docs/guide/ranks.md), and a
// byte that is sent and added: between processes an estimate.
struct MessageCost {
  double seconds, seconds_per_byte;
};
constexpr MessageCost kBetweenProcesses = {2e-6, 1e-9}, kBetweenGpus = {30e-6, 7e-12};
// For the host, which launches each step of a shard on a GPU: digits_cnn and forecast on two H200.
constexpr double kSecondsPerLaunch = 1.1e-6;

}  // namespace

ShardsSummary shards_summary(const Program& program) {
  ShardsSummary summary;
  summary.member_bytes = program.arena_bytes;
  summary.on_gpus = find_target(program.target).multiprocessors > 0;
  double launching = 0;
  for (const Phase& phase : program.phases) {
    bool follows = false;  // another combined value, in the same message
    for (const Step& step : phase.steps) {
      const bool combines = step.op == Op::combine_shards;
      if (combines) {
        summary.shards = step.params.as<ShardParams>().shards;
        summary.rows = phase.capacity;
        launching = summary.on_gpus ? static_cast<double>(phase.steps.size()) * kSecondsPerLaunch : 0;
        summary.message_bytes += program.buffers[step.output].type.bytes();
        summary.messages += follows ? 0 : 1;
      }
      follows = combines;
    }
  }
  if (summary.on_gpus) summary.member_bytes += 2 * summary.message_bytes;  // two blocks, if all values share a message
  // Two ranks halve the time of a step and add that of the messages; a GPU computes one shard.
  const MessageCost& cost = summary.on_gpus ? kBetweenGpus : kBetweenProcesses;
  const double ranks = summary.on_gpus ? static_cast<double>(summary.shards) : 2;
  summary.pays_from = std::max(launching, ranks / std::max(ranks - 1, 1.0) *
                                              (static_cast<double>(summary.messages) * cost.seconds +
                                               static_cast<double>(summary.message_bytes) * cost.seconds_per_byte));
  return summary;
}

std::string shards_text(const ShardsSummary& summary) {
  if (summary.shards == 1) return {};
  std::string text =
      paint(stdout, Style::bold, fmt::format("\n{:<24}{:>6}{:>18}\n", "ranks", "shards", "bytes of a rank"));
  for (std::int64_t ranks = summary.on_gpus ? summary.shards : 1; ranks <= summary.shards; ranks *= 2) {
    const auto members = static_cast<std::uint64_t>(summary.shards / ranks);
    text += fmt::format("{:<24}{:>6}{:>18}\n", ranks, members, grouped(summary.member_bytes * members));
  }
  return text + fmt::format(
                    "{} shards of up to {} rows; {} of {} bytes together per step.\n"
                    "{} if its step (graphrun bench) takes at "
                    "least\n{}; for shorter steps, sweep trains several networks at a time instead.\n",
                    summary.shards, summary.rows,
                    fmt::format("{}{} message{}", summary.on_gpus ? "at least " : "", summary.messages,
                                summary.messages == 1 ? "" : "s"),
                    grouped(summary.message_bytes),
                    summary.on_gpus ? fmt::format("{} GPUs are faster than one", summary.shards)
                                    : "Two ranks are faster than one with as many cores as each",
                    human_time(summary.pays_from));
}

}  // namespace graphrun::cli
