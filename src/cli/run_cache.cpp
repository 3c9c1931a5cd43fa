#include "run_cache.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>

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

std::vector<RunRecord> RunCache::read(const std::string& folder) {
  if (folder != folder_) runs_.clear();
  folder_ = folder;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  if (open == nullptr)
    throw Error(ErrorKind::input, "runs.folder",
                fmt::format("cannot read the folder '{}': {}", folder, std::strerror(errno)));
  std::map<std::string, Kept> present;
  while (const dirent* entry = ::readdir(open.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    const std::string path = folder + "/" + name;
    std::string stamp = stamp_of(path);
    if (stamp.empty()) continue;
    const auto kept = runs_.find(name);
    if (kept != runs_.end() && kept->second.stamp == stamp)
      present.emplace(name, std::move(kept->second));
    else
      present.emplace(name, Kept{std::move(stamp), read_run(path)});
  }
  runs_ = std::move(present);
  std::vector<RunRecord> runs;
  runs.reserve(runs_.size());
  for (const auto& [name, kept] : runs_) runs.push_back(kept.record);
  return runs;
}

}  // namespace graphrun::cli
