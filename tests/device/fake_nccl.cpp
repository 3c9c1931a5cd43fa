// fake_nccl.cpp: NCCL as far as the executor calls it, without devices: the members of a group are threads of this
// process, and a call ends when its bytes have arrived. With `busy` (fake_runtime.h) calls do not wait.
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace {

struct Group {
  std::mutex mutex;
  std::condition_variable changed;
  int joined = 0;
  std::map<std::pair<int, int>, std::deque<std::vector<char>>> sent;  // messages, by sender and receiver
};
struct Member {
  std::shared_ptr<Group> group;
  int rank, count;
};
struct Id {
  std::array<char, 128> bytes;
};

bool has(const char* setting) {
  const char* settings = std::getenv("FAKE_CUDA");
  return settings != nullptr && std::string(settings).find(setting) != std::string::npos;
}
bool is_busy() {
  return has("busy");
}

void send(const Member& member, int to, const void* bytes, std::size_t size) {
  const std::lock_guard lock(member.group->mutex);
  const auto* first = static_cast<const char*>(bytes);
  member.group->sent[{member.rank, to}].emplace_back(first, first + size);
  member.group->changed.notify_all();
}
void receive(const Member& member, int from, void* bytes, std::size_t size) {
  std::unique_lock lock(member.group->mutex);
  std::deque<std::vector<char>>& box = member.group->sent[{from, member.rank}];
  while (box.empty() && !is_busy()) member.group->changed.wait(lock);
  if (box.empty()) return;
  std::memcpy(bytes, box.front().data(), size);
  box.pop_front();
}

std::mutex mutex;
std::map<Id, std::shared_ptr<Group>, bool (*)(const Id&, const Id&)> groups([](const Id& a, const Id& b) {
  return a.bytes < b.bytes;
});
thread_local bool grouped = false;
thread_local std::vector<std::function<void()>> waiting;  // receives of a group of calls

}  // namespace

extern "C" {

int ncclGetUniqueId(Id* id) {
  static std::atomic<char> next = 0;
  id->bytes = {++next};
  return 0;
}
int ncclCommInitRank(void** comm, int count, Id id, int rank) {
  if (rank == 1 && has("unjoined")) return 6;
  std::shared_ptr<Group> group;
  {
    const std::lock_guard lock(mutex);
    std::shared_ptr<Group>& shared = groups[id];
    if (!shared) shared = std::make_shared<Group>();
    group = shared;
  }
  std::unique_lock lock(group->mutex);
  ++group->joined;
  group->changed.notify_all();
  while (group->joined < count) group->changed.wait(lock);
  *comm = new Member{group, rank, count};
  return 0;
}
int ncclCommAbort(void* comm) {
  const std::unique_ptr<Member> member(static_cast<Member*>(comm));
  if (is_busy() && member->rank == 0) setenv("FAKE_NCCL_ABORTED", "1", 1);
  return 0;
}
int ncclCommGetAsyncError(void*, int* status) {
  *status = 0;
  return 0;
}
int ncclGroupStart() {
  grouped = true;
  return 0;
}
int ncclGroupEnd() {
  for (const auto& one : waiting) one();
  waiting.clear();
  grouped = false;
  return 0;
}
int ncclSend(const void* from, std::size_t count, int, int peer, void* comm, void*) {
  if (static_cast<Member*>(comm)->rank == 1 && has("unconnected")) return 6;
  send(*static_cast<Member*>(comm), peer, from, count * sizeof(float));
  return 0;
}
int ncclRecv(void* to, std::size_t count, int, int peer, void* comm, void*) {
  const auto now = [=] { receive(*static_cast<Member*>(comm), peer, to, count * sizeof(float)); };
  if (grouped)
    waiting.emplace_back(now);
  else
    now();
  return 0;
}
const char* ncclGetErrorString(int) {
  return "as NCCL puts it";
}

}  // extern "C"
