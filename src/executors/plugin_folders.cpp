#include "executors/plugin_folders.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace graphrun {
namespace {

namespace paths = std::filesystem;

constexpr std::string_view kPrefix = "libgraphrun_", kSuffix = ".so";

// Reason why code from this place must not be loaded; "" if it may.
std::string fault_of_place(const paths::path& place, bool folder) {
  std::error_code error;
  const paths::path real = paths::canonical(place, error);
  if (error) return error.message();
  for (paths::path at = real;; at = at.parent_path()) {
    struct stat about {};
    if (::stat(at.c_str(), &about) != 0) return fmt::format("{}: {}", at.string(), std::strerror(errno));
    const bool itself = at == real;
    if (itself && folder && !S_ISDIR(about.st_mode)) return "it is not a folder";
    if (itself && !folder && !S_ISREG(about.st_mode)) return "it is not a regular file";
    const std::string which = itself ? "it" : at.string();
    if (about.st_uid != 0 && about.st_uid != ::geteuid())
      return fmt::format("{} belongs to another user (number {})", which, about.st_uid);
    const bool sticky = !itself && (about.st_mode & S_ISVTX) != 0;
    if ((about.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !sticky) return fmt::format("others may write {}", which);
    if (at == at.root_path()) return {};
  }
}

// "npu" for "libgraphrun_npu.so"; "" for other files.
std::string name_in(const std::string& file) {
  if (!file.starts_with(kPrefix) || !file.ends_with(kSuffix) || file.size() <= kPrefix.size() + kSuffix.size())
    return {};
  return file.substr(kPrefix.size(), file.size() - kPrefix.size() - kSuffix.size());
}

void look_into(const std::string& folder, const std::vector<std::string>& taken, PluginFiles& files) {
  const auto refuse = [&](const std::string& path, std::string reason) {
    files.rejected.push_back({path, std::move(reason)});
  };
  if (!folder.starts_with('/')) return refuse(folder, "GRAPHRUN_PLUGIN_PATH takes absolute folders");
  if (std::string fault = fault_of_place(folder, true); !fault.empty()) return refuse(folder, std::move(fault));
  std::error_code error;
  std::vector<PluginFile> here;
  for (paths::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = name_in(at->path().filename().string());
    if (!name.empty()) here.push_back({name, at->path().string()});
  }
  if (error) return refuse(folder, error.message());
  std::ranges::sort(here, {}, &PluginFile::name);
  for (PluginFile& file : here) {
    const auto before = std::ranges::find(files.found, file.name, &PluginFile::name);
    std::string fault = fault_of_place(file.path, false);
    if (!has_name_characters(file.name)) fault = "the name of an executor has lower-case letters, digits, _ and - only";
    if (std::ranges::find(taken, file.name) != taken.end())
      fault = fmt::format("there is an executor '{}' already", file.name);
    if (before != files.found.end()) fault = fmt::format("'{}' is {} already", file.name, before->path);
    if (fault.empty())
      files.found.push_back(std::move(file));
    else
      refuse(file.path, std::move(fault));
  }
}

}  // namespace

bool has_name_characters(std::string_view name) {
  return std::ranges::all_of(
      name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-'; });
}

PluginFiles plugin_files(const std::vector<std::string>& taken) {
  PluginFiles files;
  const char* value = secure_getenv("GRAPHRUN_PLUGIN_PATH");
  std::string_view rest = value == nullptr ? "" : value;
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    if (colon > 0) look_into(std::string(rest.substr(0, colon)), taken, files);
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return files;
}

}  // namespace graphrun
