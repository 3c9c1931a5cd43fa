// run_cache.h: read_runs() for somebody who asks again and again: a run that has ended is read once.
// Contract: refresh() takes up to so many seconds, the last names first; once it has been whole, runs() is what
// read_runs() would give, but one that is broken hides no other. A run is read again when one of its files is another
// or has another time or size; a file that is replaced twice within the clock's resolution by one as large is not seen.
// Belongs to one thread. Throws Error where there is no such folder.
#pragma once

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "graphrun/run_folder.h"

namespace graphrun::cli {

class RunCache {
 public:
  // Whether anything is new. At least one run that is not known is read.
  bool refresh(const std::string& folder, double seconds = std::numeric_limits<double>::infinity());
  std::size_t unread() const { return unread_; }  // there was no time for these, or to see whether they changed
  std::vector<RunRecord> runs() const;            // by name

 private:
  struct Known {
    std::string stamp;  // of its files
    RunRecord run;
  };
  std::string folder_;
  std::map<std::string, Known> known_;
  std::size_t unread_ = 0;
};

}  // namespace graphrun::cli
