// buffer_table.h: MiniMalloc's CSV format: one buffer per line, `id,lower,upper,size[,alignment][,offset]`.
// Contract: the header determines the column order; unknown columns are ignored. Live ranges are half-open. Every
// invalid line is reported with its line and column. Not handled here: offsets (graphrun/packing.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graphrun/packing.h"

namespace graphrun::cli {

struct BufferTable {
  std::vector<std::string> ids;
  std::vector<BlockLife> blocks;
  bool has_alignments = false;
};

BufferTable read_buffers(const std::string& path);

std::string as_csv(const BufferTable& table, std::span<const std::uint64_t> offsets);

}  // namespace graphrun::cli
