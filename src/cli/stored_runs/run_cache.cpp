#include "cli/stored_runs/run_cache.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "graphrun/error.h"
#include "graphrun/profile.h"

namespace graphrun::cli {
namespace {

// Identity, times and sizes of the files that read_run() reads; empty if the folder is not a run.
std::string stamp_of(const std::string& folder) {
  std::string stamp;
  for (const char* name : {"run.json", "result.json", "model.json", "changes.json"}) {
    struct stat file {};
    const bool is_there = ::stat((folder + "/" + name).c_str(), &file) == 0 && S_ISREG(file.st_mode);
    if (!is_there && stamp.empty()) return stamp;  // no run.json
    stamp += is_there
                 ? fmt::format("{}.{}.{}.{};", file.st_ino, file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec)
                 : ";";
  }
  return stamp;
}

}  // namespace

bool RunCache::refresh(const std::string& folder, double seconds) {
  const std::size_t were_unread = std::exchange(unread_, 0);
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  if (open == nullptr)
    throw Error(ErrorKind::input, "runs.folder",
                fmt::format("cannot read the folder '{}': {}", folder, std::strerror(errno)));
  const double until = Profiler::now() + seconds;
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(open.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::sort(names.rbegin(), names.rend());
  std::map<std::string, Known> before = std::exchange(known_, {});
  if (folder != folder_) before.clear();
  folder_ = folder;
  bool is_new = false, has_read = false;
  for (std::string& name : names) {
    const auto old = before.find(name);
    if (has_read && Profiler::now() > until) {  // keeps the old state of the rest
      ++unread_;
      if (old != before.end()) known_.insert(before.extract(old));
      continue;
    }
    std::string stamp = stamp_of(folder + "/" + name);
    if (stamp.empty()) continue;
    if (old != before.end() && old->second.stamp == stamp) {
      known_.insert(before.extract(old));
      continue;
    }
    has_read = is_new = true;
    RunRecord run = read_run_or_error(folder + "/" + name);
    known_.emplace(std::move(name), Known{std::move(stamp), std::move(run)});
    if (old != before.end()) before.erase(old);
  }
  return is_new || unread_ != were_unread || !before.empty();  // runs left in `before` were removed from the folder
}

std::vector<RunRecord> RunCache::runs() const {
  std::vector<RunRecord> runs;
  for (const auto& [name, known] : known_) runs.push_back(known.run);
  return runs;
}

}  // namespace graphrun::cli
