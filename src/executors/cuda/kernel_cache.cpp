#include "executors/cuda/kernel_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkostemp
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

namespace graphrun::cuda {
namespace {

namespace fs = std::filesystem;

// An entry consists of the magic, the sizes, the key and the value.
constexpr std::string_view kMagic = "graphrun kernels 2\n";
struct Sizes {
  std::uint64_t key, value;
  std::uint64_t checksum;  // checksum of key and value
};
constexpr std::string_view kSuffix = ".kernels", kUnfinished = "unfinished.";

// FNV-1a. Each step is a bijection, so a change of one byte always changes the hash. It names entries and detects
// damage; a key that collides with another costs a compilation and never gives a wrong kernel.
std::uint64_t fnv1a(std::string_view bytes, std::uint64_t hash = 0xcbf29ce484222325u) {
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  return hash;
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Writes every byte, or returns false.
bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// Reads no file that another user owns or may write, since it contains code.
std::optional<std::string> read_all(int file) {
  struct stat about;
  if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) return std::nullopt;
  if (about.st_uid != geteuid() || (about.st_mode & (S_IWGRP | S_IWOTH)) != 0) return std::nullopt;
  if (static_cast<std::uintmax_t>(about.st_size) > KernelCache::kBytes) return std::nullopt;
  std::string bytes(static_cast<std::size_t>(about.st_size), '\0');
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t some = ::read(file, bytes.data() + done, bytes.size() - done);
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) return std::nullopt;
    done += static_cast<std::size_t>(some);
  }
  return bytes;
}

// Opens the file once, because another file may take its name at any time.
std::optional<std::string> read_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // O_NONBLOCK: does not wait for a pipe
  if (file < 0) return std::nullopt;
  std::optional<std::string> bytes = read_all(file);
  ::close(file);
  return bytes;
}

}  // namespace

KernelCache KernelCache::of_environment() {
  if (const std::string own = variable("GRAPHRUN_KERNEL_CACHE"); !own.empty())
    return KernelCache(own == "off" ? "" : own);
  if (const std::string caches = variable("XDG_CACHE_HOME"); caches.starts_with('/'))
    return KernelCache(caches + "/graphrun/kernels");
  if (const std::string home = variable("HOME"); home.starts_with('/'))
    return KernelCache(home + "/.cache/graphrun/kernels");
  return KernelCache("");
}

std::string KernelCache::path_of(std::string_view key) const {
  return fmt::format("{}/{:016x}{}", folder_, fnv1a(key), kSuffix);
}

std::optional<std::string> KernelCache::find(std::string_view key) const {
  if (folder_.empty()) return std::nullopt;
  const std::string path = path_of(key);
  const std::optional<std::string> entry = read_file(path);
  if (!entry || !entry->starts_with(kMagic) || entry->size() < kMagic.size() + sizeof(Sizes) + key.size())
    return std::nullopt;
  Sizes sizes;
  std::memcpy(&sizes, entry->data() + kMagic.size(), sizeof sizes);
  const std::string_view body = std::string_view(*entry).substr(kMagic.size() + sizeof sizes);
  if (sizes.key != key.size() || sizes.value != body.size() - key.size() || !body.starts_with(key) ||
      fnv1a(body) != sizes.checksum) {
    return std::nullopt;
  }
  std::error_code error;
  fs::last_write_time(path, fs::file_time_type::clock::now(), error);  // marks it as used, for trim()
  return std::string(body.substr(key.size()));
}

void KernelCache::store(std::string_view key, std::string_view value) const {
  if (folder_.empty()) return;
  const Sizes sizes{key.size(), value.size(), fnv1a(value, fnv1a(key))};
  std::string head(kMagic);
  head.append(reinterpret_cast<const char*>(&sizes), sizeof sizes);
  if (head.size() + key.size() + value.size() > kBytes) return;

  std::error_code error;
  if (fs::create_directories(folder_, error)) fs::permissions(folder_, fs::perms::owner_all, error);
  std::string unfinished = fmt::format("{}/{}XXXXXX", folder_, kUnfinished);
  const int file = mkostemp(unfinished.data(), O_CLOEXEC);
  if (file < 0) return;
  const bool written = write_all(file, head) && write_all(file, key) && write_all(file, value);
  const bool closed = ::close(file) == 0;
  if (!written || !closed || std::rename(unfinished.c_str(), path_of(key).c_str()) != 0) {
    ::unlink(unfinished.c_str());
    return;
  }
  trim();
}

// Removes excess entries, and unfinished files of processes that were killed.
void KernelCache::trim() const {
  struct Entry {
    fs::file_time_type used;
    std::uintmax_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  const auto hour_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  std::error_code error, ignored;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;  // set if another process has removed it
    const Entry entry{at->last_write_time(gone), at->file_size(gone), at->path()};
    if (gone) continue;
    const std::string name = entry.path.filename().string();
    if (name.ends_with(kSuffix)) entries.push_back(entry);
    if (name.starts_with(kUnfinished) && entry.used < hour_ago) fs::remove(entry.path, ignored);
  }
  std::ranges::sort(entries, std::ranges::greater(), &Entry::used);
  std::uintmax_t bytes = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    bytes += entries[i].bytes;
    if (i >= kEntries || bytes > kBytes) fs::remove(entries[i].path, ignored);
  }
}

}  // namespace graphrun::cuda
