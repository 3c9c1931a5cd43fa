// idx.h: the IDX format of the MNIST files: two zero bytes, a type, a rank, big-endian extents, big-endian values.
// Contract: plain or gzip. Throws Error that names the file. Allocations are bounded by the length of the file and by
// input_limit.h.
#pragma once

#include <string>

#include "data/array.h"

namespace graphrun::data {

Array read_idx_file(const std::string& path);

}  // namespace graphrun::data
