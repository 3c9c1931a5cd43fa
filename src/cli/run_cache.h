// run_cache.h: read_runs() for somebody who asks again and again: a run that has ended is read once.
// Contract: what read() gives is what read_runs() would. A run is read again when one of its files is another or has
// another time or size; a file that is replaced twice within the clock's resolution by one as large is not seen.
// Belongs to one thread. Throws Error as read_runs().
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graphrun/run_folder.h"

namespace graphrun::cli {

class RunCache {
 public:
  std::vector<RunRecord> read(const std::string& folder);

 private:
  struct Kept {
    std::string stamp;  // of its files
    RunRecord record;
  };
  std::string folder_;
  std::map<std::string, Kept> runs_;  // by name
};

}  // namespace graphrun::cli
