// once_per_key.h: values that are made once for a key and kept.
// Contract: thread-safe. Who asks for a value that is being made waits for it, and for no other; a maker that throws
// leaves nothing behind, and the next who asks makes it. References stay valid.
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
    Entry& entry = entry_of(key);
    const std::lock_guard lock(entry.mutex);
    if (!entry.value) entry.value.emplace(make());
    return *entry.value;
  }

 private:
  struct Entry {
    std::mutex mutex;
    std::optional<Value> value;
  };
  Entry& entry_of(const Key& key) {
    const std::lock_guard lock(mutex_);
    return entries_[key];
  }

  std::mutex mutex_;  // of the map, held for a moment
  std::map<Key, Entry> entries_;
};

}  // namespace graphrun::cuda
