// buffer_table.h: the CSV files of MiniMalloc: a buffer a line, `id,lower,upper,size[,alignment][,offset]`.
// Contract: columns in any order, by the header; others are kept out. Lives are half-open. Every bad line is told with
// its line and column. Leaves to others: offsets (graphrun/packing.h).
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
