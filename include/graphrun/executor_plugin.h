// executor_plugin.h: what a shared library exports to be an executor, and how it is told apart from one that was built
// against other headers or for another C++ library.
// Contract: plug-ins are C++, so both sides must agree on each byte that crosses. kExecutorAbi is a hash of sizes and
// offsets as the compiler of either side sees them; it is compared before any code of the plug-in is called but the one
// that gives this table. ExecutorPlugin itself never changes: an old or foreign one can always be read.
// To add a field to a struct that crosses: name it below, or this does not compile. To change a virtual function: count
// kExecutorInterface up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graphrun/error.h"
#include "graphrun/executor.h"
#include "graphrun/family_op.h"
#include "graphrun/host_executor.h"
#include "graphrun/params/all.h"
#include "graphrun/partial_results.h"
#include "graphrun/scalar_op.h"

namespace graphrun {

// The virtual functions of Executor and Runnable, and what their arguments mean: nothing that a size would tell.
inline constexpr std::uint32_t kExecutorInterface = 9;

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

// A struct and its fields, all of them: a list of others does not compile. Containers that check themselves are of no
// standard layout; g++ and clang++ know their offsets all the same.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
#define GRAPHRUN_TYPE(T) hash.type<T>(#T)
#define GRAPHRUN_STRUCT(T, ...)                      \
  (void)[](const T& of) {                            \
    [[maybe_unused]] const auto& [__VA_ARGS__] = of; \
  };                                                 \
  GRAPHRUN_TYPE(T) GRAPHRUN_MORE(GRAPHRUN_MORE(GRAPHRUN_MORE(GRAPHRUN_FIELD(T, __VA_ARGS__))))
#define GRAPHRUN_MORE(...) GRAPHRUN_AGAIN(GRAPHRUN_AGAIN(GRAPHRUN_AGAIN(__VA_ARGS__)))
#define GRAPHRUN_AGAIN(...) __VA_ARGS__
#define GRAPHRUN_PARENS ()
#define GRAPHRUN_FIELD(T, field, ...) \
  .add(#field).add(offsetof(T, field)).add(sizeof(T::field)) __VA_OPT__(GRAPHRUN_NEXT GRAPHRUN_PARENS(T, __VA_ARGS__))
#define GRAPHRUN_NEXT() GRAPHRUN_FIELD

constexpr void add_params(Hash& hash) {
  GRAPHRUN_TYPE(Params);
  AllParams::each([&hash]<class T>(const T& params) {
    hash.type<T>("params").add(static_cast<std::uint64_t>(T::kKind));
    params.describe([&hash](std::string_view name, const auto& field) { hash.add(name).add(sizeof(field)); });
  });
}

constexpr void add_ops(Hash& hash) {
#define GRAPHRUN_NAME(name, ...) .add(#name)
  hash GRAPHRUN_SOURCE_OPS(GRAPHRUN_NAME) GRAPHRUN_STRUCTURED_OPS(GRAPHRUN_NAME)
      .add(kFirstFamilyOp) GRAPHRUN_FAMILY_OPS(GRAPHRUN_NAME)
      .add(kFirstScalarOp) GRAPHRUN_SCALAR_OPS(GRAPHRUN_NAME);
#undef GRAPHRUN_NAME
}

// The last of each enumeration.
constexpr void add_enumerations(Hash& hash) {
  const auto add = [&hash](auto last) { hash.add(static_cast<std::uint64_t>(last)); };
  add(DType::boolean), add(BufferKind::tile), add(BufferKind::activation), add(Layout::strided), add(CombineOp::min);
  add(RegionForm::elements), add(Profiling::own_clock), add(MathMode::fast), add(RowTile::split);
  hash.add(min_sets(64));  // with which regions on hosts run
  hash.add(kMaxRank).add(kMaxOperands).add(kAlignment).add(kTileLanes).add(std::variant_size_v<Tiling>);
}

// NOLINTBEGIN(bugprone-sizeof-container,bugprone-sizeof-expression): the sizes of the objects are meant
constexpr void add_program(Hash& hash) {
  GRAPHRUN_TYPE(Shape);
  GRAPHRUN_STRUCT(TensorType, dtype, shape, rows);
  GRAPHRUN_STRUCT(View, extents, strides, offset);
  GRAPHRUN_STRUCT(Buffer, name, type, kind, storage, offset, bytes, poll, layout, block, strides);
  GRAPHRUN_STRUCT(Step, op, name, inputs, output, workspace, row_count, params);
  GRAPHRUN_STRUCT(Combine, value, op, offset);
  GRAPHRUN_STRUCT(TileMove, arena, tile);
  GRAPHRUN_STRUCT(FusedSteps, product, bias, epilogue, sum);
  GRAPHRUN_STRUCT(Stage, first, rows, last, loads, stores, combines, fused);
  GRAPHRUN_STRUCT(HostTiling, tile_rows, partitions, tile_bytes, accumulator_bytes, lanes);
  GRAPHRUN_STRUCT(GpuTiling, threads, blocks);
  GRAPHRUN_STRUCT(StepTiling, threads, cluster, clusters, scratch_bytes, groups, tile);
  GRAPHRUN_TYPE(Tiling);
  GRAPHRUN_STRUCT(Region, stages, last, accumulators, tiling, chains);
  GRAPHRUN_STRUCT(ElementChain, first, last);
  GRAPHRUN_STRUCT(Phase, name, capacity, steps, regions);
  GRAPHRUN_STRUCT(InitialValue, buffer, bytes);
  GRAPHRUN_STRUCT(Program, name, target, arena_bytes, lower_bound, buffers, phases, initial, math);
}

constexpr void add_executor(Hash& hash) {
  // These have a field that is a reference, or hold one, which has no offset that may be asked for.
  GRAPHRUN_TYPE(StepSignature).add("op, params, inputs, output, partial_rows, views, in_chain");
  GRAPHRUN_TYPE(FusedSignature).add("product, bias, epilogue, input, in_place");
  GRAPHRUN_STRUCT(Support, yes, reason, workspace_bytes, fallback, spare_workspace_bytes);
  GRAPHRUN_STRUCT(RegionSize, tile_bytes, accumulator_bytes, work);
  GRAPHRUN_STRUCT(RegionSignature, form, rows, once, capacity, fused, chains, size, makers, stages);
  GRAPHRUN_STRUCT(RegionChoice, tiling, cost);
  GRAPHRUN_STRUCT(RegionPlan, yes, reason, tiling, choices);
  GRAPHRUN_STRUCT(RegionCosts, max_weights, max_reduced, max_row, tile_bytes, lane_bytes, partition_work,
                  max_partitions, min_rows);
  GRAPHRUN_STRUCT(ElementLimits, least, chains, steps, operands, numbers);
  GRAPHRUN_STRUCT(Target, name, executor, compute_capability, multiprocessors, max_threads_per_sm, shared_memory,
                  registers, cluster_blocks, library_workspace, apart, regions, elements);
  GRAPHRUN_STRUCT(Device, id, name, capability, units, driver, memory_free, memory_total);
  GRAPHRUN_STRUCT(DeviceList, devices, missing);
  GRAPHRUN_TYPE(Runnable);
  GRAPHRUN_TYPE(Executor);
  GRAPHRUN_STRUCT(KernelArgs, in, in_type, in_strides, inputs, out, out_type, workspace, workspace_bytes, pool,
                  row_count, capacity, params);
  GRAPHRUN_STRUCT(HostKernel, run, workspace_bytes, reason, fallback, spare_workspace_bytes);
  GRAPHRUN_TYPE(HostExecutor);
  GRAPHRUN_TYPE(HostRunnable);
}

constexpr void add_reports(Hash& hash) {
  GRAPHRUN_STRUCT(Profile, source, notes, rows, events, events_left_out);
  GRAPHRUN_STRUCT(ProfileRow, group, name, calls, total, min, max);
  GRAPHRUN_STRUCT(ProfileEvent, row, start, duration);
  GRAPHRUN_TYPE(Profiler);
  GRAPHRUN_TYPE(StepClock).add(StepClock::kEvery);
  GRAPHRUN_STRUCT(Diagnostic, code, message, hint, file, line, column, pointer, source_line);
  GRAPHRUN_TYPE(Error);
  GRAPHRUN_TYPE(OutOfMemory);
}
// NOLINTEND(bugprone-sizeof-container,bugprone-sizeof-expression)

#undef GRAPHRUN_NEXT
#undef GRAPHRUN_PARENS
#undef GRAPHRUN_AGAIN
#undef GRAPHRUN_MORE
#undef GRAPHRUN_STRUCT
#undef GRAPHRUN_FIELD
#undef GRAPHRUN_TYPE
#pragma GCC diagnostic pop

constexpr std::uint32_t executor_abi() {
  Hash hash;
  hash.add(kExecutorInterface);
  add_library(hash);
  add_params(hash);
  add_ops(hash);
  add_enumerations(hash);
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
