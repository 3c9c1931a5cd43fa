#include "executors/cuda/runnable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <stdexcept>

#include "executors/cuda/device.h"
#include "executors/cuda/element_kernels.h"
#include "executors/cuda/failure.h"
#include "executors/cuda/launch_order.h"
#include "executors/cuda_planner/cuda_planner.h"
#include "graphrun/error.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "kernels/cuda/matmul_plan.h"

namespace graphrun::cuda {

namespace {

constexpr std::uint64_t kMaxMirrored = 1 << 14;  // bytes before the polled block
constexpr std::size_t kMaxStart = 1 << 18;       // bytes of states in host memory, for each of hundreds of networks
constexpr std::size_t kCodesAtOnce = 1 << 16;    // on the stack: writing rows allocates nothing

// The polled block; with `slots`, from the first parameter on, if that adds few bytes. A report reads each parameter
// for the hash of the weights, and hundreds of threads would wait for each other in the driver.
PollBlock mirrored_block(const Program& program, bool slots) {
  PollBlock block = poll_block(program);
  std::uint64_t first = block.offset;
  for (const Buffer& buffer : program.buffers)
    if (slots && buffer.kind == BufferKind::parameter && buffer.bytes > 0) first = std::min(first, buffer.offset);
  if (block.bytes > 0 && block.offset - first <= kMaxMirrored) block = {first, block.bytes + (block.offset - first)};
  return block;
}

Machine machine_for(const Program& program) {
  const Target& target = find_target(program.target.empty() ? "h200" : program.target);
  if (target.executor != "cuda") {
    throw Error(ErrorKind::input, "cuda.target",
                fmt::format("program '{}' is planned for '{}', not for a CUDA device", program.name, program.target),
                "plan it with --executor=cuda");
  }
  return machine_of(target);
}

// Combined values up to this size share a message. Larger ones run next to other launches: for smaller ones, events
// between two streams take longer than they save (40 us of a step of 330).
constexpr std::uint64_t kMessageElements = std::uint64_t{4} << 20;

Owned<cudaEvent_t, cudaEventDestroy> make_event(Api& api) {
  cudaEvent_t event = nullptr;
  api.check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  return Owned<cudaEvent_t, cudaEventDestroy>(event);
}

}  // namespace

// Launches on the runnable's stream, with library products through cuBLASLt.
class CudaRunnable::StreamLauncher final : public Launcher {
 public:
  enum class Mode { run, capture, choose };  // choose: launches nothing, but chooses the algorithms of products
  StreamLauncher(CudaRunnable& owner, const BoundStep& step, Mode mode)
      : Launcher(owner.machine_), owner_(owner), step_(step), mode_(mode) {}

  void launch(const void* kernel, const char* name, Grid grid, std::uint32_t threads, void** arguments) override {
    if (mode_ == Mode::choose) return;
    owner_.api_.launch(kernel, name, grid, threads, arguments, owner_.now_, mode_ == Mode::capture);
  }
  void matmul(const LibraryMatmul& product) override {
    const cudaStream_t stream = owner_.now_;
    if (mode_ == Mode::choose)
      return owner_.library_->choose(product, step_.workspace_bytes, owner_.api_, stream, step_.label);
    const DeviceProfile::Work work(owner_.profile_.get(), DeviceProfile::Kind::kernel, "cublasLt", stream,
                                   mode_ == Mode::capture);
    owner_.library_->multiply(product, step_.workspace_bytes, stream, step_.label);
    owner_.api_.count_library_call();
  }

 private:
  CudaRunnable& owner_;
  const BoundStep& step_;
  Mode mode_;
};

CudaRunnable::CudaRunnable(const Program& program, int device, Profiling profiling,
                           std::shared_ptr<SharedLaunches> shared, std::shared_ptr<Communicator> ranks)
    : program_(program),
      device_(device),
      machine_(machine_for(program)),
      use_graphs_(!debug_option("GRAPHRUN_DEBUG_GRAPHS", "off", "cuda.debug_graphs")),
      ranks_(std::move(ranks)) {
  if (profiling != Profiling::off) profile_ = std::make_unique<DeviceProfile>(profiling);
  api_.set_profile(profile_.get());
  double last = Profiler::now();
  const auto took = [&](const char* part) {
    const double before = std::exchange(last, Profiler::now());
    load_times_.emplace_back(part, static_cast<std::uint64_t>((last - before) * 1e9));
  };
  shares_launches_ = shared != nullptr && !profile_ && !Arena::is_split();
  StepCodes steps = shares_launches_ ? shared->codes.find(program_, device_) : compile_steps(program_, device_);
  if (shared) api_.set_pool({shared, &shared->memory});
  open_device(device_);
  took("context_and_modules_ns");
  api_.doing("load");
  cudaStream_t stream = nullptr;
  const auto make_stream = [&] {
    api_.check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    return MemoryPool::Stream(stream, cudaStreamDestroy);
  };
  const bool in_slots = shares_launches_ && std::ranges::all_of(program_.phases, [](const Phase& phase) {
                          return phase.regions.size() == 1 && fits_slots(phase, phase.regions[0]);
                        });
  stream_ = in_slots ? shared->memory.stream(make_stream) : make_stream();
  now_ = stream_.get();
  if (ranks_) {  // with priority: a message waits for the end of a block of another kernel, not of the kernel
    int lowest = 0, highest = 0;
    api_.check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange");
    api_.check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, highest), "cudaStreamCreateWithPriority");
    second_.reset(stream);
    turn_ = make_event(api_);
  }
  polled_ = mirrored_block(program_, shares_launches_);
  arena_.emplace(api_, program_, polled_);
  if (polled_.bytes > 0) pinned_ = api_.allocate_pinned(polled_.bytes);
  took("allocation_ns");
  const std::string source = bind_phases(std::move(steps));
  program_.initial.clear();  // kernels already contain the initial values that they need
  if (!in_slots) in_flight_.emplace(api_);
  choose_algorithms();
  const std::size_t states = shares_launches_ ? arena_->states().size() : 0;
  states > 0 && states <= kMaxStart ? start_.resize(states) : arena_->clear_states(stream_.get());
  for (const InitialValue& value : program.initial) {
    std::byte* const to = arena_->at(value.buffer);
    if (value.bytes.empty()) continue;
    if (program.buffers[value.buffer].layout == Layout::codes)
      write(value.buffer, value.bytes);
    else if (!copy_start(to, value.bytes.data(), value.bytes.size(), cudaMemcpyHostToDevice))
      api_.copy(to, value.bytes.data(), value.bytes.size(), cudaMemcpyHostToDevice, stream_.get());
  }
  took("kernels_and_library_ns");
  compile_kernels(source);
  took("nvrtc_ns");
  capture_phases();
  api_.doing("load");
  api_.synchronize(stream_.get());
  took("capture_ns");
  if (std::ranges::none_of(phases_, &BoundPhase::combines)) return;
  group_.emplace(api_, ranks_, device_, max_elements_, stream_.get());
  took("ranks_ns");
}

CudaRunnable::~CudaRunnable() = default;

CudaRunnable::WaitForLaunches::~WaitForLaunches() {
  if (!owner->stream_) return;
  cudaSetDevice(owner->device_);  // device of the members destroyed next
  if (owner->group_) owner->group_->abort();
  cudaStreamSynchronize(owner->stream_.get());
  if (owner->second_) cudaStreamSynchronize(owner->second_.get());
}

CudaRunnable::BoundStep CudaRunnable::bind(const Phase& phase, std::size_t index) {
  const Step& step = phase.steps[index];
  BoundStep bound;
  bound.label = fmt::format("phase '{}', step {} ({} {})", phase.name, index + 1, name_of(step.op), step.name);
  KernelArgs& args = bound.args;
  for (const BufferId input : step.inputs) {
    const Buffer& buffer = program_.buffers[input];
    args.in[args.inputs] = arena_->at(input);
    if (buffer.layout == Layout::strided) args.in_strides[args.inputs] = buffer.strides.data();
    if (buffer.extents.rank() > 0) args.in_extents[args.inputs] = &buffer.extents;
    args.in_type[args.inputs++] = buffer.type;
  }
  args.out = arena_->at(step.output);
  args.out_type = program_.buffers[step.output].type;
  args.capacity = phase.capacity;
  args.params = step.params;
  if (step.row_count != kNoBuffer) {
    args.row_count = reinterpret_cast<const std::int32_t*>(arena_->at(step.row_count));
  }
  if (step.workspace != kNoBuffer) {
    args.workspace = arena_->at(step.workspace);
    bound.workspace_bytes = program_.buffers[step.workspace].bytes;
  }
  if (step.op == Op::matmul && !library_ &&
      plan_matmul(step.params.as<MatmulParams>(), args.in_type[0], args.in_type[1], machine_,
                  args.in_strides[0] != nullptr)
              .route == MatmulPlan::Route::library) {
    library_.emplace();
  }
  bound.launch = find_kernel(step.op);
  if (bound.launch == nullptr)
    throw std::logic_error(fmt::format("{}: no kernel for an op that is supported", bound.label));
  return bound;
}

SharedValue CudaRunnable::shared_value(const Step& step) const {
  return {reinterpret_cast<const float*>(arena_->at(step.inputs[0])), reinterpret_cast<float*>(arena_->at(step.output)),
          0, program_.buffers[step.output].type.bytes() / sizeof(float), step.params.as<ShardParams>().combine};
}

// Adds the region's kernel to the source of this program.
CudaRunnable::BoundRegion CudaRunnable::bind(const Phase& phase, const Region& region, std::string& source) {
  BoundRegion bound;
  const std::uint32_t first = region.first();
  bound.name = fmt::format("elements_{}_{}", phases_.size(), first + 1);
  bound.label = fmt::format("phase '{}', steps {} to {} ({} {}, ...)", phase.name, first + 1, region.last,
                            name_of(phase.steps[first].op), phase.steps[first].name);
  const ElementKernel kernel = element_kernel(bound.name, program_, phase, region, machine_);
  bound.grid = kernel.grid;
  bound.threads = kernel.threads;
  for (const BufferId operand : kernel.pointers) bound.pointers.push_back(arena_->at(operand));
  source += kernel.source;
  return bound;
}

// A product and the steps of its region that its kernel runs.
CudaRunnable::BoundStep CudaRunnable::bind_product(const Phase& phase, const Region& region) {
  BoundStep bound = bind(phase, region.first());
  ProductEpilogue& epilogue = bound.epilogue;
  epilogue.steps = true;
  for (std::uint32_t i = region.first() + 1; i < region.last; ++i) {
    const Step& step = phase.steps[i];
    const auto is_value = [&](BufferId id) {
      return storage_root(program_, id) == storage_root(program_, phase.steps[i - 1].output);
    };
    const auto other = std::ranges::find_if_not(step.inputs, is_value);
    const float* const operand = other == step.inputs.end() ? nullptr : reinterpret_cast<float*>(arena_->at(*other));
    if ((operand == nullptr) != (step.inputs.size() == 1) || std::ranges::none_of(step.inputs, is_value))
      throw std::logic_error(fmt::format("{}: step {} reads other values", bound.label, i + 1));
    const auto type = [&](BufferId id) { return program_.buffers[id].type; };
    if (operand != nullptr && adds_bias(step.op, type(step.inputs[0]), type(step.inputs[1]), type(step.output))) {
      epilogue.bias = operand;
    } else {
      epilogue.op = step.op;
      epilogue.with = operand;
      epilogue.with_first = other == step.inputs.begin();
    }
  }
  bound.args.out = arena_->at(phase.steps[region.last - 1].output);
  return bound;
}

std::string CudaRunnable::bind_phases(StepCodes steps) {
  std::string source;
  if (steps.valid()) step_kernels_ = std::make_unique<StepKernels>(api_, steps.get(), stream_.get());
  for (const Phase& phase : program_.phases) {
    BoundPhase bound;
    bound.label = fmt::format("phase '{}'", phase.name);
    std::vector<LaunchAccess> accesses;
    auto region = phase.regions.begin();
    for (std::uint32_t step = 0; step < phase.steps.size();) {
      const bool alone = region == phase.regions.end() || step < region->first();
      std::vector<SharedValue> shared;
      std::uint64_t elements = 0;
      for (std::uint32_t i = step; ranks_ && i < phase.steps.size() && phase.steps[i].op == Op::combine_shards; ++i) {
        if (elements >= kMessageElements) break;
        elements += shared.emplace_back(shared_value(phase.steps[i])).count;
      }
      const std::uint32_t last = !shared.empty() ? step + static_cast<std::uint32_t>(shared.size())
                                 : alone         ? step + 1
                                                 : region->last;
      LaunchAccess& access = accesses.emplace_back();
      for (std::uint32_t i = step; i < last; ++i) access.add(program_, phase.steps[i]);
      if (!shared.empty()) {
        SharedSet set(api_, std::move(shared), ranks_->ranks(), machine_, stream_.get());
        max_elements_ = std::max(max_elements_, set.elements());
        bound.launches.push_back({step, last, std::move(set)});
        bound.combines = true;
      } else if (alone) {
        bound.launches.push_back({step, last, bind(phase, step)});
      } else {
        const Region& of = *region++;
        if (std::holds_alternative<StepTiling>(of.tiling)) {
          access.add(program_, of);
          BoundSteps bound_steps = step_kernels_->bind(program_, phase, of, *arena_, pinned_.get());
          api_.count_generated_kernel(bound_steps.compiled);
          bound.launches.push_back({step, last, std::move(bound_steps)});
        } else if (phase.steps[step].op == Op::matmul) {
          bound.launches.push_back({step, last, bind_product(phase, of)});
        } else
          bound.launches.push_back({step, last, bind(phase, of, source)});
      }
      step = last;
    }
    order_launches(phase, bound, launch_order(accesses));
    bound.batching = LaunchBatching(bound.launches.size(), bound.combines);
    phases_.push_back(std::move(bound));
  }
  return source;
}

// Brings the launches into the order of message_order(), in which the host makes them. With large messages, those and
// the launches that make their values are on the second stream, next to the rest of the step. The plan does not know
// that and reuses memory: by `order`, a launch that uses the bytes of another one still comes before or after it.
void CudaRunnable::order_launches(const Phase& phase, BoundPhase& bound,
                                  const std::vector<std::vector<std::uint32_t>>& order) {
  std::vector<bool> messages;
  for (const BoundLaunch& launch : bound.launches) {
    const auto* const set = std::get_if<SharedSet>(&launch.work);
    messages.push_back(set != nullptr);
    bound.aside = bound.aside || (set != nullptr && set->elements() >= kMessageElements);
  }
  std::set<BufferId> sent;
  for (const Step& step : phase.steps)
    if (step.op == Op::combine_shards) sent.insert(step.inputs[0]);
  std::vector<std::uint32_t> place(order.size());
  std::vector<BoundLaunch> ordered;
  for (const std::uint32_t from : message_order(order, messages)) {
    place[from] = static_cast<std::uint32_t>(ordered.size());
    BoundLaunch& launch = ordered.emplace_back(std::move(bound.launches[from]));
    launch.aside = bound.aside && (messages[from] || (std::holds_alternative<BoundStep>(launch.work) &&
                                                      sent.contains(phase.steps[launch.first].output)));
    if (launch.aside) launch.ended = make_event(api_);
    for (const std::uint32_t before : order[from]) launch.after.push_back(place[before]);
    std::ranges::sort(launch.after);
    for (const std::uint32_t before : launch.after)
      if (ordered[before].aside && !launch.aside) launch.waits = ordered[before].ended.get();
  }
  bound.launches = std::move(ordered);
}

void CudaRunnable::compile_kernels(const std::string& source) {
  if (source.empty()) return;
  compiled_ = std::make_unique<CompiledKernels>(KernelSource{kElementPrelude + source});
  for (BoundPhase& phase : phases_) {
    for (BoundLaunch& launch : phase.launches) {
      auto* bound = std::get_if<BoundRegion>(&launch.work);
      if (bound == nullptr) continue;
      bound->kernel = compiled_->find(bound->name);
      api_.count_generated_kernel(compiled_->compiled());
    }
  }
}

void CudaRunnable::enqueue(const BoundStep& step, bool capturing) {
  api_.doing(step.label);
  StreamLauncher launcher(*this, step, capturing ? StreamLauncher::Mode::capture : StreamLauncher::Mode::run);
  if (step.epilogue.steps) return launch_matmul(step.args, step.epilogue, launcher);
  step.launch(step.args, launcher);
}

void CudaRunnable::enqueue(const BoundRegion& region, bool capturing) {
  api_.doing(region.label);
  void* arguments[] = {const_cast<const void**>(region.pointers.data())};
  api_.launch(region.kernel, region.name.c_str(), region.grid, region.threads, arguments, stream_.get(), capturing);
}

void CudaRunnable::enqueue(BoundSteps& steps, bool capturing) {
  api_.doing(steps.label);
  if (steps.slot) return steps.slot->run(api_, stream_.get(), 1, false);
  step_kernels_->launch(steps, 1, capturing);
}

// Not captured: the graph of such a phase only loads the code of its kernels.
void CudaRunnable::enqueue(const SharedSet& set, bool capturing) {
  if (!capturing) group_->combine(set, now_);
}

void CudaRunnable::enqueue(BoundLaunch& launch, bool capturing) {
  const bool aside = launch.aside && !capturing;
  now_ = aside ? second_.get() : stream_.get();
  if (aside) follow(now_, stream_.get());
  if (launch.waits != nullptr && !capturing) api_.wait_on_stream(now_, launch.waits);
  std::visit([&](auto& work) { enqueue(work, capturing); }, launch.work);
  if (aside) api_.record(launch.ended.get(), now_);
}

void CudaRunnable::follow(cudaStream_t stream, cudaStream_t before) {
  api_.record(turn_.get(), before);
  api_.wait_on_stream(stream, turn_.get());
}

void CudaRunnable::enqueue(BoundPhase& phase) {
  for (BoundLaunch& launch : phase.launches) enqueue(launch, false);
  if (phase.aside) follow(stream_.get(), second_.get());
}

// The arena is still empty, so trials fill the operands with random numbers and write results in place.
void CudaRunnable::choose_algorithms() {
  if (!library_) return;
  for (const BoundPhase& phase : phases_) {
    for (const BoundLaunch& launch : phase.launches) {
      const auto* step = std::get_if<BoundStep>(&launch.work);
      if (step == nullptr) continue;
      StreamLauncher launcher(*this, *step, StreamLauncher::Mode::choose);
      step->launch(step->args, launcher);
    }
  }
}

void CudaRunnable::capture_phases() {
  graphs_.reserve(phases_.size());
  for (BoundPhase& phase : phases_) {
    std::vector<StepGraph::Part> parts;
    if (!phase.repeats_itself())
      for (BoundLaunch& launch : phase.launches) parts.push_back({[&] { enqueue(launch, true); }, launch.after});
    graphs_.emplace_back(api_, stream_.get(), slot_.number(), phase.batching.unroll(), parts);
  }
}

const Buffer& CudaRunnable::checked(BufferId buffer, std::size_t bytes, const char* call) const {
  if (buffer >= program_.buffers.size()) throw std::logic_error(fmt::format("{}: there is no buffer {}", call, buffer));
  const Buffer& found = program_.buffers[buffer];
  if (found.type.bytes() != bytes) {
    throw std::logic_error(
        fmt::format("{} of '{}': {} bytes were given, it has {}", call, found.name, bytes, found.type.bytes()));
  }
  return found;
}

void CudaRunnable::write(BufferId buffer, std::span<const std::byte> bytes) {
  const Buffer& to = checked(buffer, bytes.size(), "write");
  if (bytes.empty()) return;
  mirrored_ = false;
  if (to.layout == Layout::strided) {
    std::vector<std::byte> span(to.bytes);
    copy(to, span.data(), arena_->at(buffer), span.size(), cudaMemcpyDeviceToHost);
    scatter(to, bytes, span.data());
    return copy(to, arena_->at(buffer), span.data(), span.size(), cudaMemcpyHostToDevice);
  }
  if (to.layout == Layout::codes) return write_rows(buffer, 0, bytes);
  copy(to, arena_->at(buffer), bytes.data(), bytes.size(), cudaMemcpyHostToDevice);
}

void CudaRunnable::read(BufferId buffer, std::span<std::byte> bytes) {
  const Buffer& from = checked(buffer, bytes.size(), "read");
  if (bytes.empty()) return;
  if (is_mirrored(from)) {
    std::memcpy(bytes.data(), pinned_.get() + (from.offset - polled_.offset), bytes.size());
    return;
  }
  if (from.layout == Layout::strided) {
    std::vector<std::byte> span(from.bytes);
    copy(from, span.data(), arena_->at(buffer), span.size(), cudaMemcpyDeviceToHost);
    return gather(from, span.data(), bytes);
  }
  if (from.layout == Layout::codes) {
    std::byte codes[kCodesAtOnce];
    for (std::size_t first = 0; first < from.bytes; first += kCodesAtOnce) {
      const std::size_t count = std::min(kCodesAtOnce, from.bytes - first);
      copy(from, codes, arena_->at(buffer) + first, count, cudaMemcpyDeviceToHost);
      decode(from, codes, bytes.subspan(first * sizeof(float), count * sizeof(float)));
    }
    return;
  }
  copy(from, bytes.data(), arena_->at(buffer), bytes.size(), cudaMemcpyDeviceToHost);
}

bool CudaRunnable::is_mirrored(const Buffer& buffer) const {
  const std::uint64_t end = buffer.offset + buffer.bytes;
  const bool inside = buffer.offset >= polled_.offset && end <= polled_.offset + polled_.bytes;
  return mirrored_ && buffer.layout != Layout::strided && (buffer.poll || (shares_launches_ && inside));
}

void CudaRunnable::read_range(BufferId buffer, std::uint64_t first, std::span<std::byte> bytes) {
  const Buffer& from = program_.buffers.at(buffer);
  check_range(from, first, bytes.size());
  if (bytes.empty()) return;
  if (is_mirrored(from))
    std::memcpy(bytes.data(), pinned_.get() + (from.offset - polled_.offset) + first, bytes.size());
  else
    copy(from, bytes.data(), arena_->at(buffer) + first, bytes.size(), cudaMemcpyDeviceToHost);
}

void CudaRunnable::write_rows(BufferId buffer, std::int64_t first, std::span<const std::byte> bytes) {
  const Buffer& to = program_.buffers.at(buffer);
  const std::uint64_t row = check_rows(to, first, bytes.size());
  if (bytes.empty()) return;
  mirrored_ = false;
  const std::uint64_t at = static_cast<std::uint64_t>(first) * row;
  if (to.layout == Layout::codes) {
    std::byte codes[kCodesAtOnce];
    for (std::size_t begin = 0; begin < bytes.size(); begin += sizeof(float) * kCodesAtOnce) {
      const auto values = bytes.subspan(begin, std::min(sizeof(float) * kCodesAtOnce, bytes.size() - begin));
      encode(to, values, codes);
      copy(to, arena_->at(buffer) + (at + begin) / sizeof(float), codes, values.size() / sizeof(float),
           cudaMemcpyHostToDevice);
    }
    return;
  }
  copy(to, arena_->at(buffer) + at, bytes.data(), bytes.size(), cudaMemcpyHostToDevice);
}

void CudaRunnable::copy(const Buffer& what, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  api_.doing(what.name);
  api_.use_device(device_);
  api_.set_group(nullptr);
  if (copy_start(to, from, bytes, kind)) return;
  api_.copy(to, from, bytes, kind, stream_.get());
  api_.synchronize(stream_.get());
}

bool CudaRunnable::copy_start(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (start_.empty()) return false;
  const bool to_device = kind == cudaMemcpyHostToDevice;
  const std::byte* const device = static_cast<const std::byte*>(to_device ? to : from);
  const auto offset = static_cast<std::size_t>(device - arena_->states().data());  // before the states: a large number
  if (offset >= start_.size() || bytes > start_.size() - offset) return false;
  to_device ? std::memcpy(start_.data() + offset, from, bytes) : std::memcpy(to, start_.data() + offset, bytes);
  return true;
}

void CudaRunnable::write_start() {
  if (start_.empty()) return;
  api_.copy(arena_->states().data(), start_.data(), start_.size(), cudaMemcpyHostToDevice, stream_.get());
  api_.synchronize(stream_.get());
  start_ = {};
}

void CudaRunnable::run(PhaseId phase, std::uint64_t n) {
  const BoundPhase& bound = phases_.at(phase);
  api_.doing(bound.label);
  api_.use_device(device_);
  mirrored_ = false;
  api_.set_group(bound.combines ? &*group_ : nullptr);
  const std::string& name = program_.phases[phase].name;
  const double start = profile_ ? Profiler::now() : 0;
  std::uint64_t begun = 0;
  write_start();
  if (n > 0 && bound.in_slots()) {
    run_in_slot(phase, n);
    mirrored_ = true;
    return;
  }
  if (profile_ && n > 0 && profile_->sample_due(name)) {
    sample(phase);
    begun = 1;
  }
  if (n - begun <= bound.batching.steps_per_launch()) {
    run_in_one(phase, begun, n - begun);
  } else {
    run_in_several(phase, begun, n);
  }
  mirrored_ = true;
  if (profile_) profile_->add_run(name, n, Profiler::now() - start);
}

void CudaRunnable::run_in_slot(PhaseId phase, std::uint64_t n) {
  BoundPhase& bound = phases_[phase];
  SlotKernel::Member& slot = *std::get<BoundSteps>(bound.launches.front().work).slot;
  for (std::uint64_t begun = 0; begun < n;) {
    begin_step(begun);
    const std::uint64_t steps = std::min(n - begun, bound.batching.steps_per_launch());
    begun += steps;
    const double start = Profiler::now();
    slot.run(api_, stream_.get(), static_cast<std::uint32_t>(steps), begun == n);
    bound.batching.took(steps, Profiler::now() - start);
  }
}

void CudaRunnable::run_in_one(PhaseId phase, std::uint64_t first, std::uint64_t steps) {
  begin_step(first);
  const double start = Profiler::now();
  launch_steps(phase, steps);
  synchronize_run();
  if (steps > 0) phases_[phase].batching.took(steps, Profiler::now() - start);
}

void CudaRunnable::run_in_several(PhaseId phase, std::uint64_t begun, std::uint64_t n) {
  LaunchBatching& batching = phases_[phase].batching;
  InFlight& in_flight = *in_flight_;
  const auto wait = [&] {
    const InFlight::Done done = in_flight.wait_for_oldest();
    batching.took(done.steps, done.seconds);
    if (!in_flight.empty()) begin_step(in_flight.oldest().first);
  };
  in_flight.begin(stream_.get());
  while (begun < n) {
    if (in_flight.full()) wait();
    if (in_flight.empty()) begin_step(begun);
    const std::uint64_t steps = std::min(n - begun, batching.steps_per_launch());
    launch_steps(phase, steps);
    in_flight.add({begun, steps}, stream_.get());
    begun += steps;
  }
  while (!in_flight.empty()) wait();
  synchronize_run();
}

void CudaRunnable::synchronize_run() {
  arena_->copy_polled(pinned_.get(), stream_.get());
  if (step_kernels_) step_kernels_->copy_fault();
  api_.synchronize(stream_.get());
  if (step_kernels_) step_kernels_->check();
}

void CudaRunnable::launch_steps(PhaseId phase, std::uint64_t steps) {
  if (steps == 0) return;
  if (phases_[phase].repeats_itself()) {
    auto& kernel = std::get<BoundSteps>(phases_[phase].launches.front().work);
    return step_kernels_->launch(kernel, steps, false);
  }
  if (!use_graphs_ || phases_[phase].combines) {
    for (; steps > 0; --steps) enqueue(phases_[phase]);
    return;
  }
  const StepGraph& graph = graphs_[phase];
  slot_.arm(api_, stream_.get(), graph.unroll(), steps);
  graph.launch(api_, stream_.get());
}

// Runs a step of the phase launch by launch, so that each can be timed.
void CudaRunnable::sample(PhaseId phase) {
  profile_->begin_sample(program_.phases[phase].name);
  enqueue(phases_[phase]);
  api_.synchronize(stream_.get());
  profile_->end_sample();
  api_.doing(phases_[phase].label);
}

Profile CudaRunnable::profile() {
  if (!profile_) return {};
  api_.use_device(device_);
  return profile_->take();
}

void CudaRunnable::run_steps(PhaseId phase, std::uint32_t first, std::uint32_t last) {
  BoundPhase& bound = phases_.at(phase);
  const std::size_t steps = program_.phases[phase].steps.size();
  if (first > last || last > steps) {
    throw std::logic_error(fmt::format("{} has {} steps, [{}, {}) was asked for", bound.label, steps, first, last));
  }
  api_.use_device(device_);
  mirrored_ = false;
  api_.set_group(bound.combines ? &*group_ : nullptr);
  write_start();
  for (BoundLaunch& launch : bound.launches) {
    if (launch.last <= first || launch.first >= last) continue;
    if (launch.first < first || launch.last > last) {
      throw std::logic_error(fmt::format("{}: steps [{}, {}) cut the region of steps [{}, {})", bound.label, first,
                                         last, launch.first, launch.last));
    }
    enqueue(launch, false);
  }
  if (bound.aside) follow(stream_.get(), second_.get());
  api_.synchronize(stream_.get());
}

std::vector<std::pair<std::string, std::uint64_t>> CudaRunnable::counters() const {
  auto list = api_.counters().list();
  list.insert(list.end(), load_times_.begin(), load_times_.end());
  for (PhaseId id = 0; id < phases_.size(); ++id) {
    list.emplace_back("steps_per_launch." + program_.phases[id].name, phases_[id].batching.steps_per_launch());
  }
  return list;
}

}  // namespace graphrun::cuda
