// executor_plugin.h: what a shared library exports to be an executor, and how it is told apart from one that was built
// against other headers or for another C++ library.
// Contract: plug-ins are C++, so both sides must agree on each byte that crosses. kExecutorAbi is a hash of sizes and
// offsets as the compiler of either side sees them; it is compared before any code of the plug-in is called but the one
// that gives this table. ExecutorPlugin itself never changes: an old or foreign one can always be read.
// To add a field to a struct that crosses: name it below. To change a virtual function: count kExecutorInterface up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graphrun/error.h"
#include "graphrun/executor.h"
#include "graphrun/host_executor.h"
#include "graphrun/op.h"
#include "graphrun/params/all.h"

namespace graphrun {

// The virtual functions of Executor and Runnable, and what their arguments mean: nothing that a size would tell.
inline constexpr std::uint32_t kExecutorInterface = 8;

namespace abi {

// FNV-1a over numbers and names.
class Hash {
 public:
  constexpr Hash& add(std::uint64_t number) {
    for (int byte = 0; byte < 8; ++byte) mix(static_cast<std::uint8_t>(number >> (8 * byte)));
    return *this;
  }
  constexpr Hash& add(std::string_view text) {
    for (const char c : text) mix(static_cast<std::uint8_t>(c));
    return *this;
  }
  template <class T>
  constexpr Hash& type(std::string_view name) {
    return add(name).add(sizeof(T)).add(alignof(T));
  }
  constexpr std::uint32_t value() const { return static_cast<std::uint32_t>(hash_ ^ (hash_ >> 32)); }

 private:
  constexpr void mix(std::uint8_t byte) { hash_ = (hash_ ^ byte) * 1099511628211u; }
  std::uint64_t hash_ = 14695981039346656037u;
};

// What does not show in a size: the names of the C++ library's types and the rules of the compiler. g++ and clang++
// follow one ABI of C++ with numbers from 1000 on, and may be mixed.
constexpr void add_library(Hash& hash) {
#ifdef _GLIBCXX_USE_CXX11_ABI
  hash.add("cxx11 strings").add(_GLIBCXX_USE_CXX11_ABI);
#endif
#ifdef _GLIBCXX_DEBUG
  hash.add("debug containers");
#endif
#ifdef _GLIBCXX_INLINE_VERSION
  hash.add("inline version").add(_GLIBCXX_INLINE_VERSION);
#endif
#ifdef _LIBCPP_ABI_VERSION
  hash.add("libc++").add(_LIBCPP_ABI_VERSION);
#endif
#ifdef __GXX_ABI_VERSION
  hash.add("compiler").add(__GXX_ABI_VERSION / 1000);
#endif
  hash.type<std::string>("string").type<std::vector<int>>("vector").type<std::vector<bool>>("bits");
  hash.type<std::unique_ptr<int>>("unique_ptr").type<std::shared_ptr<int>>("shared_ptr");
}

// Containers that check themselves are of no standard layout; g++ and clang++ know their offsets all the same.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
#define GRAPHRUN_TYPE(T) hash.type<T>(#T)
#define GRAPHRUN_FIELD(T, field) hash.add(#field).add(offsetof(T, field)).add(sizeof(T::field))

constexpr void add_params(Hash& hash) {
  GRAPHRUN_TYPE(Params);
  AllParams::each([&hash]<class T>(const T& params) {
    hash.type<T>("params").add(static_cast<std::uint64_t>(T::kKind));
    params.describe([&hash](std::string_view name, const auto& field) { hash.add(name).add(sizeof(field)); });
  });
}

constexpr void add_ops(Hash& hash) {
#define GRAPHRUN_NAME(name, ...) .add(#name)
  hash.add(kOps) GRAPHRUN_OPS(GRAPHRUN_NAME);
#undef GRAPHRUN_NAME
}

constexpr void add_program(Hash& hash) {
  GRAPHRUN_TYPE(Shape).add(kMaxRank);
  GRAPHRUN_TYPE(TensorType).add(static_cast<std::uint64_t>(DType::boolean));
  GRAPHRUN_FIELD(TensorType, dtype), GRAPHRUN_FIELD(TensorType, shape), GRAPHRUN_FIELD(TensorType, rows);
  GRAPHRUN_TYPE(Buffer).add(kAlignment).add(static_cast<std::uint64_t>(BufferKind::tile));
  hash.add(static_cast<std::uint64_t>(BufferKind::activation)).add(static_cast<std::uint64_t>(Layout::strided));
  GRAPHRUN_FIELD(Buffer, name), GRAPHRUN_FIELD(Buffer, type), GRAPHRUN_FIELD(Buffer, kind);
  GRAPHRUN_FIELD(Buffer, storage), GRAPHRUN_FIELD(Buffer, offset), GRAPHRUN_FIELD(Buffer, bytes);
  GRAPHRUN_FIELD(Buffer, poll), GRAPHRUN_FIELD(Buffer, layout), GRAPHRUN_FIELD(Buffer, block);
  GRAPHRUN_FIELD(Buffer, strides);
  GRAPHRUN_TYPE(Step);
  GRAPHRUN_FIELD(Step, op), GRAPHRUN_FIELD(Step, name), GRAPHRUN_FIELD(Step, inputs), GRAPHRUN_FIELD(Step, output);
  GRAPHRUN_FIELD(Step, workspace), GRAPHRUN_FIELD(Step, row_count), GRAPHRUN_FIELD(Step, params);
  GRAPHRUN_TYPE(Combine).add(static_cast<std::uint64_t>(CombineOp::min));
  GRAPHRUN_FIELD(Combine, value), GRAPHRUN_FIELD(Combine, op), GRAPHRUN_FIELD(Combine, offset);
  GRAPHRUN_TYPE(TileMove);
  GRAPHRUN_FIELD(TileMove, arena), GRAPHRUN_FIELD(TileMove, tile);
  GRAPHRUN_TYPE(FusedSteps);
  GRAPHRUN_FIELD(FusedSteps, product), GRAPHRUN_FIELD(FusedSteps, bias), GRAPHRUN_FIELD(FusedSteps, epilogue);
  GRAPHRUN_FIELD(FusedSteps, sum);
  GRAPHRUN_TYPE(Stage);
  GRAPHRUN_FIELD(Stage, first), GRAPHRUN_FIELD(Stage, rows), GRAPHRUN_FIELD(Stage, last);
  GRAPHRUN_FIELD(Stage, loads), GRAPHRUN_FIELD(Stage, stores), GRAPHRUN_FIELD(Stage, combines);
  GRAPHRUN_FIELD(Stage, fused);
  GRAPHRUN_TYPE(HostTiling);
  GRAPHRUN_FIELD(HostTiling, tile_rows), GRAPHRUN_FIELD(HostTiling, partitions);
  GRAPHRUN_FIELD(HostTiling, tile_bytes), GRAPHRUN_FIELD(HostTiling, accumulator_bytes);
  GRAPHRUN_FIELD(HostTiling, lanes);
  GRAPHRUN_TYPE(GpuTiling);
  GRAPHRUN_FIELD(GpuTiling, threads), GRAPHRUN_FIELD(GpuTiling, blocks);
  GRAPHRUN_TYPE(Tiling).add(std::variant_size_v<Tiling>);
  GRAPHRUN_TYPE(Region).add(kTileLanes);
  GRAPHRUN_FIELD(Region, stages), GRAPHRUN_FIELD(Region, last), GRAPHRUN_FIELD(Region, accumulators);
  GRAPHRUN_FIELD(Region, tiling), GRAPHRUN_FIELD(Region, chains);
  GRAPHRUN_TYPE(ElementChain);
  GRAPHRUN_FIELD(ElementChain, first), GRAPHRUN_FIELD(ElementChain, last);
  GRAPHRUN_TYPE(Phase);
  GRAPHRUN_FIELD(Phase, name), GRAPHRUN_FIELD(Phase, capacity), GRAPHRUN_FIELD(Phase, steps);
  GRAPHRUN_FIELD(Phase, regions);
  GRAPHRUN_TYPE(InitialValue);
  GRAPHRUN_FIELD(InitialValue, buffer), GRAPHRUN_FIELD(InitialValue, bytes);
  GRAPHRUN_TYPE(Program);
  GRAPHRUN_FIELD(Program, name), GRAPHRUN_FIELD(Program, target), GRAPHRUN_FIELD(Program, arena_bytes);
  GRAPHRUN_FIELD(Program, lower_bound), GRAPHRUN_FIELD(Program, buffers), GRAPHRUN_FIELD(Program, phases);
  GRAPHRUN_FIELD(Program, initial);
}

constexpr void add_executor(Hash& hash) {
  // Its second field is a reference, which has no offset that may be asked for.
  GRAPHRUN_TYPE(StepSignature).add("op, params, inputs, output, partial_rows, views");
  hash.add(sizeof(StepSignature::op)).add(sizeof(StepSignature::inputs)).add(sizeof(StepSignature::output));
  GRAPHRUN_TYPE(Support);
  GRAPHRUN_FIELD(Support, yes), GRAPHRUN_FIELD(Support, reason), GRAPHRUN_FIELD(Support, workspace_bytes);
  GRAPHRUN_FIELD(Support, fallback);
  GRAPHRUN_TYPE(FusedSignature).add("product, bias, epilogue, input, in_place");
  GRAPHRUN_TYPE(RegionSize);
  GRAPHRUN_FIELD(RegionSize, tile_bytes), GRAPHRUN_FIELD(RegionSize, accumulator_bytes);
  GRAPHRUN_FIELD(RegionSize, work);
  GRAPHRUN_TYPE(RegionSignature).add(static_cast<std::uint64_t>(RegionForm::elements));
  GRAPHRUN_FIELD(RegionSignature, form), GRAPHRUN_FIELD(RegionSignature, rows), GRAPHRUN_FIELD(RegionSignature, once);
  GRAPHRUN_FIELD(RegionSignature, capacity), GRAPHRUN_FIELD(RegionSignature, fused);
  GRAPHRUN_FIELD(RegionSignature, chains), GRAPHRUN_FIELD(RegionSignature, size);
  GRAPHRUN_TYPE(RegionPlan);
  GRAPHRUN_FIELD(RegionPlan, yes), GRAPHRUN_FIELD(RegionPlan, reason), GRAPHRUN_FIELD(RegionPlan, tiling);
  GRAPHRUN_TYPE(RegionCosts);
  GRAPHRUN_FIELD(RegionCosts, most_weights), GRAPHRUN_FIELD(RegionCosts, most_reduced);
  GRAPHRUN_FIELD(RegionCosts, most_row), GRAPHRUN_FIELD(RegionCosts, tile_bytes);
  GRAPHRUN_FIELD(RegionCosts, lane_bytes), GRAPHRUN_FIELD(RegionCosts, partition_work);
  GRAPHRUN_FIELD(RegionCosts, most_partitions), GRAPHRUN_FIELD(RegionCosts, least_rows);
  GRAPHRUN_TYPE(Target);
  GRAPHRUN_FIELD(Target, name), GRAPHRUN_FIELD(Target, executor), GRAPHRUN_FIELD(Target, compute_capability);
  GRAPHRUN_FIELD(Target, multiprocessors), GRAPHRUN_FIELD(Target, max_threads_per_sm);
  GRAPHRUN_FIELD(Target, shared_memory), GRAPHRUN_FIELD(Target, registers), GRAPHRUN_FIELD(Target, cluster_blocks);
  GRAPHRUN_FIELD(Target, library_workspace), GRAPHRUN_FIELD(Target, regions), GRAPHRUN_FIELD(Target, elements);
  GRAPHRUN_TYPE(ElementLimits);
  GRAPHRUN_FIELD(ElementLimits, least), GRAPHRUN_FIELD(ElementLimits, chains), GRAPHRUN_FIELD(ElementLimits, steps);
  GRAPHRUN_FIELD(ElementLimits, operands), GRAPHRUN_FIELD(ElementLimits, numbers);
  GRAPHRUN_TYPE(Device);
  GRAPHRUN_FIELD(Device, id), GRAPHRUN_FIELD(Device, name), GRAPHRUN_FIELD(Device, capability);
  GRAPHRUN_FIELD(Device, units), GRAPHRUN_FIELD(Device, driver), GRAPHRUN_FIELD(Device, memory_free);
  GRAPHRUN_FIELD(Device, memory_total);
  GRAPHRUN_TYPE(DeviceList);
  GRAPHRUN_FIELD(DeviceList, devices), GRAPHRUN_FIELD(DeviceList, missing);
  GRAPHRUN_TYPE(Runnable);
  GRAPHRUN_TYPE(Executor);
  GRAPHRUN_TYPE(KernelArgs).add(kMaxOperands);
  GRAPHRUN_FIELD(KernelArgs, in), GRAPHRUN_FIELD(KernelArgs, in_type), GRAPHRUN_FIELD(KernelArgs, inputs);
  GRAPHRUN_FIELD(KernelArgs, out), GRAPHRUN_FIELD(KernelArgs, out_type), GRAPHRUN_FIELD(KernelArgs, workspace);
  GRAPHRUN_FIELD(KernelArgs, pool), GRAPHRUN_FIELD(KernelArgs, row_count), GRAPHRUN_FIELD(KernelArgs, capacity);
  GRAPHRUN_FIELD(KernelArgs, params);
  GRAPHRUN_TYPE(HostKernel);
  GRAPHRUN_FIELD(HostKernel, run), GRAPHRUN_FIELD(HostKernel, workspace_bytes), GRAPHRUN_FIELD(HostKernel, reason);
  GRAPHRUN_FIELD(HostKernel, fallback);
  GRAPHRUN_TYPE(HostExecutor);
  GRAPHRUN_TYPE(HostRunnable);
}

constexpr void add_reports(Hash& hash) {
  GRAPHRUN_TYPE(Profile).add(static_cast<std::uint64_t>(Profiling::own_clock));
  GRAPHRUN_FIELD(Profile, source), GRAPHRUN_FIELD(Profile, notes), GRAPHRUN_FIELD(Profile, rows);
  GRAPHRUN_FIELD(Profile, events), GRAPHRUN_FIELD(Profile, events_left_out);
  GRAPHRUN_TYPE(ProfileRow);
  GRAPHRUN_FIELD(ProfileRow, group), GRAPHRUN_FIELD(ProfileRow, name), GRAPHRUN_FIELD(ProfileRow, calls);
  GRAPHRUN_FIELD(ProfileRow, total), GRAPHRUN_FIELD(ProfileRow, min), GRAPHRUN_FIELD(ProfileRow, max);
  GRAPHRUN_TYPE(ProfileEvent);
  GRAPHRUN_FIELD(ProfileEvent, row), GRAPHRUN_FIELD(ProfileEvent, start), GRAPHRUN_FIELD(ProfileEvent, duration);
  GRAPHRUN_TYPE(Profiler);
  GRAPHRUN_TYPE(StepClock).add(StepClock::kEvery);
  GRAPHRUN_TYPE(Diagnostic);
  GRAPHRUN_FIELD(Diagnostic, code), GRAPHRUN_FIELD(Diagnostic, message), GRAPHRUN_FIELD(Diagnostic, hint);
  GRAPHRUN_FIELD(Diagnostic, file), GRAPHRUN_FIELD(Diagnostic, line), GRAPHRUN_FIELD(Diagnostic, column);
  GRAPHRUN_FIELD(Diagnostic, pointer), GRAPHRUN_FIELD(Diagnostic, source_line);
  GRAPHRUN_TYPE(Error);
  GRAPHRUN_TYPE(OutOfMemory);
}

#undef GRAPHRUN_FIELD
#undef GRAPHRUN_TYPE
#pragma GCC diagnostic pop

constexpr std::uint32_t executor_abi() {
  Hash hash;
  hash.add(kExecutorInterface);
  add_library(hash);
  add_params(hash);
  add_ops(hash);
  add_program(hash);
  add_executor(hash);
  add_reports(hash);
  return hash.value();
}

}  // namespace abi

inline constexpr std::uint32_t kExecutorAbi = abi::executor_abi();

// What a plug-in library exports: extern "C" const graphrun::ExecutorPlugin* graphrun_executor_plugin();
struct ExecutorPlugin {
  std::uint32_t struct_size = sizeof(ExecutorPlugin);
  std::uint32_t abi = kExecutorAbi;
  // `argument` is what follows the colon: "1" of "cuda:1"; may be empty. Throws Error.
  std::unique_ptr<Executor> (*create)(std::string_view argument) = nullptr;
};

}  // namespace graphrun
