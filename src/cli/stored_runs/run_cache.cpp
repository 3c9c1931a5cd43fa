#include "cli/stored_runs/run_cache.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

// Times and sizes of what read_run() reads; empty where the folder is none of a run.
std::string stamp_of(const std::string& folder) {
  std::string stamp;
  for (const char* name : {"run.json", "result.json", "model.json", "changes.json"}) {
    struct stat file {};
    const bool is_there = ::stat((folder + "/" + name).c_str(), &file) == 0 && S_ISREG(file.st_mode);
    if (!is_there && stamp.empty()) return stamp;  // run.json
    stamp += is_there
                 ? fmt::format("{}.{}.{}.{};", file.st_ino, file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec)
                 : ";";
  }
  return stamp;
}

}  // namespace

bool RunCache::refresh(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  if (open == nullptr)
    throw Error(ErrorKind::input, "runs.folder",
                fmt::format("cannot read the folder '{}': {}", folder, std::strerror(errno)));
  std::vector<std::pair<std::string, std::string>> present;  // name and stamp
  while (const dirent* entry = ::readdir(open.get())) {
    std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    std::string stamp = stamp_of(folder + "/" + name);
    if (!stamp.empty()) present.emplace_back(std::move(name), std::move(stamp));
  }
  std::sort(present.begin(), present.end());
  std::vector<RunRecord> known = std::exchange(runs_, {});
  const std::vector<std::string> stamps = std::exchange(stamps_, {});
  if (folder != folder_ || stamps.size() != known.size()) known.clear();
  folder_ = folder;
  bool is_new = present.size() != known.size();
  std::size_t old = 0;
  std::vector<std::string> fresh_stamps;
  for (auto& [name, stamp] : present) {
    while (old < known.size() && known[old].name < name) ++old;
    if (old < known.size() && known[old].name == name && stamps[old] == stamp) {
      runs_.push_back(std::move(known[old]));
      known[old].name = name;  // which the order goes by
    } else {
      is_new = true;
      runs_.push_back(read_run(folder + "/" + name));
    }
    fresh_stamps.push_back(std::move(stamp));
  }
  stamps_ = std::move(fresh_stamps);
  return is_new;
}

}  // namespace graphrun::cli
