#include "executors/cuda/slot_kernel.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "executors/cuda/device.h"
#include "executors/cuda/failure.h"
#include "executors/cuda_planner/print/step_kernel.h"

namespace graphrun::cuda {

std::shared_ptr<SlotKernel> SlotKernel::find(Api& api, const std::string& name, const KernelSource& source,
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
    kernel = std::make_shared<SlotKernel>(api, name, source, tiling, stream);
    known = kernel;
  }
  return kernel;
}

SlotKernel::SlotKernel(Api& api, const std::string& name, const KernelSource& source, const StepTiling& tiling,
                       cudaStream_t stream)
    : name_(name), tiling_(tiling), code_(source) {
  kernel_ = code_.find(name);
  fault_ = code_.find_variable("graphrun_fault");
  const Api::Memory pinned = api.allocate_pinned(sizeof(shared_bytes_));
  shared_bytes_ = api.read_word(code_.find_variable(name + "_shared_bytes"), pinned.get(), stream);
  if (shared_bytes_ > 48 * 1024)
    api.check(
        cudaFuncSetAttribute(kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes_)),
        "cudaFuncSetAttribute");
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

void SlotKernel::look_again() {
  if (!waiting_.empty()) waiting_.front()->changed_.notify_one();
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
  while (waits_) {
    const bool late = std::chrono::steady_clock::now() >= deadline;
    const bool complete = kernel.waiting_.size() + kernel.in_launch_ >= kernel.expected_;
    const bool can_launch =
        !in_launch_ && std::ranges::any_of(kernel.tables_, [](const Table& table) { return table.free; });
    if (can_launch && (complete || late)) {
      kernel.launch(lock, api, stream);
    } else if (can_launch && kernel.waiting_.front() == this) {
      changed_.wait_until(lock, deadline);
    } else {
      changed_.wait(lock);
    }
  }
  if (error_) std::rethrow_exception(error_);
}

// Launches for all waiting members, without the lock. Members that neither wait nor run are not waited for again until
// they come.
void SlotKernel::launch(std::unique_lock<std::mutex>& lock, Api& api, cudaStream_t stream) {
  Table& table = *std::ranges::find_if(tables_, &Table::free);
  table.free = false;
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(waiting_.size(), kMaxSlots));
  const std::vector<Member*> members(waiting_.begin(), end);
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
  for (Member* member : members) {
    member->error_ = error;
    member->waits_ = member->in_launch_ = false;
    member->changed_.notify_one();
  }
  look_again();
}

void SlotKernel::launch(Api& api, cudaStream_t stream, const std::vector<Member*>& members, Table& table) {
  const std::size_t bytes = members.front()->arguments_.size() * sizeof(std::uint64_t), all = bytes * members.size();
  for (std::size_t i = 0; i < members.size(); ++i)
    std::memcpy(table.pinned.get() + i * bytes, members[i]->arguments_.data(), bytes);
  std::byte* const fault = table.pinned.get() + kMaxSlots * bytes;
  api.copy(table.device.get(), table.pinned.get(), all, cudaMemcpyHostToDevice, stream);
  void* slots = table.device.get();
  void* arguments[] = {&slots};
  api.launch_together(kernel_, name_.c_str(), tiling_.blocks(), tiling_.cluster, tiling_.threads, shared_bytes_,
                      arguments, stream, false, static_cast<std::uint32_t>(members.size()));
  if (api.read_word(fault_, fault, stream) != 0) fail_wait();
}

std::size_t networks_at_once(const Program& program, int device) {
  const Phase& training = program.phases.at(0);
  if (training.regions.size() != 1) return 1;
  const auto* tiling = std::get_if<StepTiling>(&training.regions[0].tiling);
  if (tiling == nullptr || !fits_slots(training, training.regions[0])) return 1;
  // Threads that wait for the device sleep: the others need the processor. Before the context exists.
  if (cudaSetDevice(device) == cudaSuccess) cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync);
  cudaGetLastError();  // open_device() reports any error
  open_device(device);
  cudaDeviceProp properties{};
  std::size_t unused = 0, total = 0;
  if (cudaGetDeviceProperties(&properties, device) != cudaSuccess || cudaMemGetInfo(&unused, &total) != cudaSuccess)
    return 1;
  // Two blocks per multiprocessor, and half of the memory: other programs may need some.
  const auto blocks = 2 * static_cast<std::size_t>(properties.multiProcessorCount);
  const std::uint64_t memory = unused / 2 / std::max<std::uint64_t>(program.arena_bytes, 1);
  return std::max<std::size_t>(1, std::min<std::uint64_t>(blocks / tiling->cluster, memory));
}

}  // namespace graphrun::cuda
