// members.h: runs a Program whose batches have shards (compiler/share_rows.cpp) as one Runnable.
// Contract: executor.h. A rank has shards / ranks members: Runnables of the same Program, one per shard. A step runs on
// each member up to a combine_shards, whose values are then combined over all shards in a fixed tree, over neighbours
// first: results depend on the number of shards, but not on the number of ranks. States are equal on all members, so
// they are read from the first; phases without shards run only there. Without shards, or if the executor combines them
// itself (Executor::load_shard), returns the executor's Runnable.
// Not here: moving bytes between ranks (communicator.h), the same decisions on all ranks (trainer.cpp).
#pragma once

#include <cstdint>
#include <memory>

#include "graphrun/communicator.h"
#include "graphrun/executor.h"
#include "graphrun/program.h"

namespace graphrun {

std::int64_t shards_of(const Program& program);  // 1: none

// `communicator` may be null. Throws Error if the ranks cannot share the shards equally.
std::unique_ptr<Runnable> load_members(Executor& executor, const Program& program,
                                       std::shared_ptr<Communicator> communicator);

}  // namespace graphrun
