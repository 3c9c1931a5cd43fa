// run_cache.h: read_runs() for somebody who asks again and again: a run that has ended is read once.
// Contract: after refresh(), runs() is what read_runs() would give. A run is read again when one of its files is
// another or has another time or size; a file that is replaced twice within the clock's resolution by one as large is
// not seen. Belongs to one thread. Throws Error as read_runs().
#pragma once

#include <string>
#include <vector>

#include "graphrun/run_folder.h"

namespace graphrun::cli {

class RunCache {
 public:
  bool refresh(const std::string& folder);  // whether anything is new
  const std::vector<RunRecord>& runs() const { return runs_; }

 private:
  std::string folder_;
  std::vector<RunRecord> runs_;      // by name
  std::vector<std::string> stamps_;  // of their files; as many, else nothing is known
};

}  // namespace graphrun::cli
