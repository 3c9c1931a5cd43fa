// once_per_key.h: values that are computed once per key and kept.
// Contract: thread-safe. A caller waits only for the value that it asks for. If its computation throws, nothing is
// stored and the next caller computes it again. References stay valid.
#pragma once

#include <map>
#include <mutex>
#include <optional>

namespace graphrun::cuda {

template <class Key, class Value>
class OncePerKey {
 public:
  template <class Make>
  const Value& get(const Key& key, Make make) {
    std::unique_lock lookup(mutex_);
    Entry& entry = entries_[key];
    lookup.unlock();
    const std::lock_guard lock(entry.mutex);
    if (!entry.value) entry.value.emplace(make());
    return *entry.value;
  }

 private:
  struct Entry {
    std::mutex mutex;
    std::optional<Value> value;
  };

  std::mutex mutex_;  // protects the map; locked only for the lookup
  std::map<Key, Entry> entries_;
};

}  // namespace graphrun::cuda
