// idx.h: the IDX format of the MNIST files: two zero bytes, a type, a rank, big-endian extents, big-endian values.
// Contract: plain or gzip. Throws Error that names the file; nothing is allocated that the file's length does not bear
// out, or that is beyond the limit of input_limit.h.
#pragma once

#include <string>

#include "data/array.h"

namespace graphrun::data {

Array read_idx_file(const std::string& path);

}  // namespace graphrun::data
