// kernel_cache.h: compiled kernels in a folder on disk, so that the next process need not compile them again.
// Contract: an entry is found by its whole key, which it holds, never by a hash of it alone. What is damaged, cut or
// not this user's counts as not there and is replaced. An entry appears whole or not at all (a file of another name,
// renamed), so any number of threads and processes may share a folder. A folder that cannot be read or written is no
// error: then nothing is found. The least recently used entries go when there are more than 256, or 64 MiB. Leaves to
// others: what a key and a value are (nvrtc.cpp).
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

  explicit KernelCache(std::string folder) : folder_(std::move(folder)) {}  // empty: finds and keeps nothing
  // $GRAPHRUN_KERNEL_CACHE ("off": none), $XDG_CACHE_HOME/graphrun/kernels, $HOME/.cache/graphrun/kernels.
  static KernelCache of_environment();

  std::optional<std::string> find(std::string_view key) const;
  void store(std::string_view key, std::string_view value) const;

 private:
  std::string path_of(std::string_view key) const;
  void trim() const;

  std::string folder_;
};

}  // namespace graphrun::cuda
