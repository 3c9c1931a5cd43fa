// run_cache.h: cached read_runs() for repeated calls: reads each finished run only once.
// Contract: refresh() takes up to `seconds`, in descending order of names. Once it completes, runs() equals
// read_runs(), except that a broken run does not hide the others. A run is read again if one of its files changes
// identity, time or size; a second replacement by a file of equal size within the clock's resolution is missed. Belongs
// to one thread. Throws Error if the folder does not exist.
#pragma once

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "graphrun/run_folder.h"

namespace graphrun::cli {

class RunCache {
 public:
  // Returns whether anything changed. Reads at least one unknown run.
  bool refresh(const std::string& folder, double seconds = std::numeric_limits<double>::infinity());
  std::size_t unread() const { return unread_; }  // runs not read or checked for lack of time
  std::vector<RunRecord> runs() const;            // sorted by name

 private:
  struct Known {
    std::string stamp;  // identity, time and size of its files
    RunRecord run;
  };
  std::string folder_;
  std::map<std::string, Known> known_;
  std::size_t unread_ = 0;
};

}  // namespace graphrun::cli
