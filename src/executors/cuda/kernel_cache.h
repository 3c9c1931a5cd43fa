// kernel_cache.h: compiled kernels in a folder on disk, so that the next process need not compile them again.
// Contract: an entry is found by its complete key, which it contains, never by a hash alone. Entries that are damaged,
// truncated or not this user's count as missing and are replaced. An entry is written under another name and renamed,
// so threads and processes may share a folder. A folder that cannot be read or written is not an error: nothing is
// found. Above 256 entries or 64 MiB, the least recently used ones are removed. Not here: meaning of keys and values
// (nvrtc.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace graphrun::cuda {

class KernelCache {
 public:
  static constexpr std::size_t kEntries = 256;
  static constexpr std::uintmax_t kBytes = std::uintmax_t{64} << 20;

  explicit KernelCache(std::string folder) : folder_(std::move(folder)) {}  // empty: finds and stores nothing
  // $GRAPHRUN_KERNEL_CACHE ("off": no cache), $XDG_CACHE_HOME/graphrun/kernels, $HOME/.cache/graphrun/kernels.
  static KernelCache of_environment();

  std::optional<std::string> find(std::string_view key) const;
  void store(std::string_view key, std::string_view value) const;

 private:
  std::string path_of(std::string_view key) const;
  void trim() const;

  std::string folder_;
};

}  // namespace graphrun::cuda
