// shards_summary.h: memory and messages of a plan with shards, and from which step time more ranks pay.
// Contract: a pure function of the Program, which is that of one member.
#pragma once

#include <cstdint>
#include <string>

#include "graphrun/program.h"

namespace graphrun::cli {

struct ShardsSummary {
  std::int64_t shards = 1;          // 1: the plan has none
  std::int64_t rows = 0;            // per shard
  std::uint64_t member_bytes = 0;   // arena of one shard, on GPUs with its messages; a rank has shards / ranks
  std::uint64_t messages = 0;       // per step and rank, at least: GPUs send large values alone
  std::uint64_t message_bytes = 0;  // in all messages of a step, in each direction
  bool on_gpus = false;
  // Seconds per step of one rank from which two with as many cores each, or a GPU for each shard, are faster.
  double pays_from = 0;
};

ShardsSummary shards_summary(const Program& program);
std::string shards_text(const ShardsSummary& summary);

}  // namespace graphrun::cli
