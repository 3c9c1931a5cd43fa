#include "executors/cuda/slot_kernel.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "executors/cuda/device.h"
#include "executors/cuda/failure.h"
#include "executors/cuda_planner/print/step_kernel.h"

namespace graphrun::cuda {
namespace {

constexpr std::size_t kBlocksPerProcessor = 2;  // at a time
constexpr std::size_t kWakes = 16;              // threads that a thread wakes

}  // namespace

std::shared_ptr<SlotKernel> SlotKernel::find(Api& api, const StepKernel& source, const StepKernel* in_one_block,
                                             const StepTiling& tiling, cudaStream_t stream) {
  static std::mutex mutex;
  static std::map<std::pair<int, std::string>, std::weak_ptr<SlotKernel>> kernels;
  int device = 0;
  api.check(cudaGetDevice(&device), "cudaGetDevice");
  const std::lock_guard lock(mutex);
  std::erase_if(kernels, [](const auto& one) { return one.second.expired(); });
  std::weak_ptr<SlotKernel>& known = kernels[{device, source.text}];
  std::shared_ptr<SlotKernel> kernel = known.lock();
  if (!kernel) {
    kernel = std::make_shared<SlotKernel>(api, source, in_one_block, tiling, stream);
    known = kernel;
  }
  return kernel;
}

SlotKernel::Code::Code(Api& api, const StepKernel& source, std::uint32_t blocks_of_cluster, cudaStream_t stream)
    : name(source.name), blocks(blocks_of_cluster), threads(source.threads), compiled(source) {
  kernel = compiled.find(name);
  const Api::Memory pinned = api.allocate_pinned(sizeof(shared_bytes));
  shared_bytes = api.read_word(compiled.find_variable(name + "_shared_bytes"), pinned.get(), stream);
  if (shared_bytes > 48 * 1024)
    api.check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)),
              "cudaFuncSetAttribute");
}

SlotKernel::SlotKernel(Api& api, const StepKernel& source, const StepKernel* in_one_block, const StepTiling& tiling,
                       cudaStream_t stream)
    : code_(api, source, tiling.cluster, stream), fault_(code_.compiled.find_variable("graphrun_fault")) {
  if (in_one_block == nullptr) return;
  in_one_block_.emplace(api, *in_one_block, 1, stream);
  int device = 0, processors = 0;
  api.check(cudaGetDevice(&device), "cudaGetDevice");
  api.check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
  max_clusters_ = kBlocksPerProcessor * static_cast<std::size_t>(processors) / tiling.cluster;
}

SlotKernel::~SlotKernel() = default;

SlotKernel::Member::Member(std::shared_ptr<SlotKernel> kernel, const std::vector<void*>& pointers,
                           std::span<const std::byte> polled, std::byte* mirror, const std::vector<std::uint64_t>& keys)
    : kernel_(std::move(kernel)), polled_words_(static_cast<std::uint32_t>(polled.size() / sizeof(std::uint32_t))) {
  const auto add = [&](const void* address) { arguments_.push_back(reinterpret_cast<std::uintptr_t>(address)); };
  for (const void* pointer : pointers) add(pointer);
  if (pointers.empty()) add(nullptr);
  add(kernel_->fault_);
  steps_at_ = arguments_.size();
  arguments_.push_back(0);
  add(polled.data());
  add(mirror);
  arguments_.insert(arguments_.end(), keys.begin(), keys.end());
  if (keys.empty()) arguments_.push_back(0);
  const std::lock_guard lock(kernel_->mutex_);
  const std::size_t bytes = kMaxSlots * arguments_.size() * sizeof(arguments_[0]);
  for (Table& table : kernel_->tables_) {
    if (table.device) continue;
    table.pinned = kernel_->table_api_.allocate_pinned(bytes + sizeof(std::uint32_t));
    table.device = kernel_->table_api_.allocate(bytes);
  }
  kernel_->members_.push_back(this);  // last: there is no destructor after an exception
}

SlotKernel::Member::~Member() {
  const std::lock_guard lock(kernel_->mutex_);
  std::erase(kernel_->members_, this);
  if (expected_) --kernel_->expected_;
  kernel_->look_again();
}

bool SlotKernel::can_launch(const Member& member) const {
  return member.waits_ && !member.in_launch_ && std::ranges::any_of(tables_, &Table::free);
}

void SlotKernel::look_again() {
  if (!waiting_.empty()) waiting_.front()->wake(Member::Wake::decide);
}

void SlotKernel::Member::run(Api& api, cudaStream_t stream, std::uint32_t steps, bool mirrored) {
  SlotKernel& kernel = *kernel_;
  std::unique_lock lock(kernel.mutex_);
  const auto deadline = std::chrono::steady_clock::now() + kernel.patience_;
  arguments_[steps_at_] = steps | std::uint64_t{mirrored ? polled_words_ : 0} << 32;
  error_ = nullptr;
  waits_ = true;
  if (!expected_) ++kernel.expected_;
  expected_ = true;
  kernel.waiting_.push_back(this);
  for (bool done = false; !done; done = sleep(lock, deadline)) {
    if (!lock.owns_lock()) lock.lock();
    const bool late = std::chrono::steady_clock::now() >= deadline;
    const bool complete = kernel.waiting_.size() + kernel.in_launch_ >= kernel.expected_;
    if (kernel.can_launch(*this) && (complete || late)) kernel.launch(lock, api, stream);
  }
  wake_next(*together_, kWakes * (index_ + 1));
  if (error_) std::rethrow_exception(error_);
}

bool SlotKernel::Member::sleep(std::unique_lock<std::mutex>& kernel_lock, Deadline deadline) {
  const bool decides = kernel_->can_launch(*this) && kernel_->waiting_.front() == this;
  kernel_lock.unlock();
  std::unique_lock lock(wake_mutex_);
  const auto is_woken = [&] { return wake_ != Wake::none; };
  if (decides)
    woken_.wait_until(lock, deadline, is_woken);
  else
    woken_.wait(lock, is_woken);
  return std::exchange(wake_, Wake::none) == Wake::done;
}

// The thread that is woken may destroy this member as soon as it has the mutex.
void SlotKernel::Member::wake(Wake why) {
  const std::lock_guard lock(wake_mutex_);
  if (wake_ != Wake::done) wake_ = why;
  woken_.notify_one();
}

void SlotKernel::wake_next(const std::vector<Member*>& members, std::size_t first) {
  for (std::size_t i = first; i < std::min(first + kWakes, members.size()); ++i) members[i]->wake(Member::Wake::done);
}

// Launches for all waiting members, without the lock. Members that neither wait nor run are not waited for again until
// they come.
void SlotKernel::launch(std::unique_lock<std::mutex>& lock, Api& api, cudaStream_t stream) {
  Table& table = *std::ranges::find_if(tables_, &Table::free);
  table.free = false;
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(waiting_.size(), kMaxSlots));
  const auto together = std::make_shared<const std::vector<Member*>>(waiting_.begin(), end);
  const std::vector<Member*>& members = *together;
  waiting_.erase(waiting_.begin(), end);
  for (Member* member : members) member->in_launch_ = true;
  in_launch_ += members.size();
  for (Member* member : members_) {
    if (!member->expected_ || member->waits_) continue;
    member->expected_ = false;
    --expected_;
  }
  lock.unlock();
  const auto start = std::chrono::steady_clock::now();
  std::exception_ptr error;
  try {
    launch(api, stream, members, table);
  } catch (...) {
    error = std::current_exception();
    cudaStreamSynchronize(stream);  // the members may free their memory
  }
  lock.lock();
  patience_ = (std::chrono::steady_clock::now() - start) / 5;
  table.free = true;
  in_launch_ -= members.size();
  for (std::size_t i = 0; i < members.size(); ++i) {
    members[i]->error_ = error;
    members[i]->together_ = together;
    members[i]->index_ = i;
    members[i]->waits_ = members[i]->in_launch_ = false;
  }
  look_again();
  lock.unlock();
  wake_next(members, 0);
  lock.lock();
}

void SlotKernel::launch(Api& api, cudaStream_t stream, const std::vector<Member*>& members, Table& table) {
  const std::size_t bytes = members.front()->arguments_.size() * sizeof(std::uint64_t), all = bytes * members.size();
  for (std::size_t i = 0; i < members.size(); ++i)
    std::memcpy(table.pinned.get() + i * bytes, members[i]->arguments_.data(), bytes);
  std::byte* const fault = table.pinned.get() + kMaxSlots * bytes;
  api.copy(table.device.get(), table.pinned.get(), all, cudaMemcpyHostToDevice, stream);
  void* slots = table.device.get();
  void* arguments[] = {&slots};
  const Code& code = in_one_block_ && members.size() > max_clusters_ ? *in_one_block_ : code_;
  api.launch_together(code.kernel, code.name.c_str(), code.blocks, code.blocks, code.threads, code.shared_bytes,
                      arguments, stream, false, static_cast<std::uint32_t>(members.size()));
  if (api.read_word(fault_, fault, stream) != 0) fail_wait();
}

std::size_t networks_at_once(const Program& program, int device) {
  const Phase& training = program.phases.at(0);
  if (training.regions.size() != 1 || !fits_slots(training, training.regions[0])) return 1;
  // Threads that wait for the device sleep: the others need the processor. Before the context exists.
  if (cudaSetDevice(device) == cudaSuccess) cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync);
  cudaGetLastError();  // open_device() reports any error
  open_device(device);
  cudaDeviceProp properties{};
  std::size_t unused = 0, total = 0;
  if (cudaGetDeviceProperties(&properties, device) != cudaSuccess || cudaMemGetInfo(&unused, &total) != cudaSuccess)
    return 1;
  // Half of the memory: other programs may need some.
  const auto blocks = kBlocksPerProcessor * static_cast<std::size_t>(properties.multiProcessorCount);
  const std::uint64_t memory = unused / 2 / std::max<std::uint64_t>(program.arena_bytes, 1);
  const std::uint32_t cluster = std::get<StepTiling>(training.regions[0].tiling).cluster;
  const std::string name = step_kernel_name(program, training, training.regions[0]) + kInOneBlock;
  const bool in_one_block = std::ranges::count(step_sources(program, true), name, &StepKernel::name) > 0;
  return std::max<std::size_t>(1, std::min<std::uint64_t>(in_one_block ? blocks : blocks / cluster, memory));
}

}  // namespace graphrun::cuda
