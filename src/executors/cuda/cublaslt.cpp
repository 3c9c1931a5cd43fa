#include "executors/cuda/cublaslt.h"

#include <cublasLt.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "executors/cuda/autotune.h"
#include "executors/cuda/event.h"
#include "executors/cuda/once_per_key.h"
#include "graphrun/error.h"

namespace graphrun::cuda {
namespace {

// The functions used, by their own names and types.
struct Functions {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtGetStatusString) status_string;
  decltype(&cublasLtMatmulDescCreate) desc_create;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set;
  decltype(&cublasLtMatrixLayoutCreate) layout_create;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
  decltype(&cublasLtMatrixLayoutSetAttribute) layout_set;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&cublasLtMatmul) matmul;
};

template <class F>
void find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (function == nullptr) {
    throw Error(ErrorKind::device, "cuda.library", fmt::format("libcublasLt has no function '{}'", name));
  }
}

Functions open_library() {
  const std::string name = fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR);
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    throw Error(ErrorKind::device, "cuda.library",
                fmt::format("this model has wide matrix products, which need {}: {}", name, why != nullptr ? why : "?"),
                "it is part of the CUDA Toolkit; LD_LIBRARY_PATH can name its folder");
  }
  Functions f{};
  find(library, "cublasLtCreate", f.create);
  find(library, "cublasLtDestroy", f.destroy);
  find(library, "cublasLtGetStatusString", f.status_string);
  find(library, "cublasLtMatmulDescCreate", f.desc_create);
  find(library, "cublasLtMatmulDescDestroy", f.desc_destroy);
  find(library, "cublasLtMatmulDescSetAttribute", f.desc_set);
  find(library, "cublasLtMatrixLayoutCreate", f.layout_create);
  find(library, "cublasLtMatrixLayoutDestroy", f.layout_destroy);
  find(library, "cublasLtMatrixLayoutSetAttribute", f.layout_set);
  find(library, "cublasLtMatmulPreferenceCreate", f.preference_create);
  find(library, "cublasLtMatmulPreferenceDestroy", f.preference_destroy);
  find(library, "cublasLtMatmulPreferenceSetAttribute", f.preference_set);
  find(library, "cublasLtMatmulAlgoGetHeuristic", f.heuristic);
  find(library, "cublasLtMatmul", f.matmul);
  return f;
}

// Opened once and kept: handles of several runnables use it.
const Functions& functions() {
  static const Functions loaded = open_library();
  return loaded;
}

void check(cublasStatus_t status, const char* call, std::string_view doing) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(ErrorKind::device, "cuda.call",
              fmt::format("{}: {} failed: {}", doing, call, functions().status_string(status)));
}

// Descriptors of one call; destroyed with it.
struct Descriptors {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, out = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;

  Descriptors() = default;
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;
  ~Descriptors() {
    const Functions& f = functions();
    if (preference != nullptr) f.preference_destroy(preference);
    if (out != nullptr) f.layout_destroy(out);
    if (b != nullptr) f.layout_destroy(b);
    if (a != nullptr) f.layout_destroy(a);
    if (operation != nullptr) f.desc_destroy(operation);
  }
};

// A row-major matrix of `columns` is, for a library that counts by columns, its transpose. `stride` elements on comes
// the next of `matrices`.
void layout(cublasLtMatrixLayout_t& to, std::int64_t rows, std::int64_t columns, std::int64_t matrices,
            std::int64_t stride, std::string_view doing) {
  const Functions& f = functions();
  check(
      f.layout_create(&to, CUDA_R_32F, static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(rows), columns),
      "cublasLtMatrixLayoutCreate", doing);
  if (matrices == 1) return;
  const auto count = static_cast<std::int32_t>(matrices);
  check(f.layout_set(to, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)), "cublasLtMatrixLayoutSetAttribute",
        doing);
  check(f.layout_set(to, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof(stride)),
        "cublasLtMatrixLayoutSetAttribute", doing);
}

template <class T>
void prefer(Descriptors& d, cublasLtMatmulPreferenceAttributes_t what, const T& value, std::string_view doing) {
  check(functions().preference_set(d.preference, what, &value, sizeof(value)), "cublasLtMatmulPreferenceSetAttribute",
        doing);
}

// The largest power of two, up to 256, that divides the addresses of all matrices.
std::uint32_t alignment_of(const void* address, std::int64_t stride) {
  const auto number = reinterpret_cast<std::uintptr_t>(address) | static_cast<std::uintptr_t>(stride) * 4 | 256u;
  return static_cast<std::uint32_t>(number & (~number + 1));
}

// out^T = op(b)^T op(a)^T by columns is out = op(a) op(b) by rows.
void describe(Descriptors& d, const LibraryMatmul& p, std::string_view doing) {
  const Functions& f = functions();
  const bool tf32 = p.precision == Precision::tf32;
  check(f.desc_create(&d.operation, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescCreate", doing);
  const cublasOperation_t first = p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t second = p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  check(f.desc_set(d.operation, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof(first)), "cublasLtMatmulDescSetAttribute",
        doing);
  check(f.desc_set(d.operation, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof(second)), "cublasLtMatmulDescSetAttribute",
        doing);
  layout(d.a, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.matrices, p.a_stride, doing);
  layout(d.b, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.matrices, p.b_stride, doing);
  layout(d.out, p.m, p.n, p.matrices, p.out_stride, doing);
}

// What the library offers, best first by its own account: at least one.
std::vector<cublasLtMatmulAlgo_t> offers(cublasLtHandle_t handle, Descriptors& d, const LibraryMatmul& p,
                                         std::uint64_t workspace_bytes, std::string_view doing) {
  constexpr int kMost = 12;
  const Functions& f = functions();
  check(f.preference_create(&d.preference), "cublasLtMatmulPreferenceCreate", doing);
  prefer(d, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes, doing);
  const std::uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;  // not in place: that one uses atomics
  prefer(d, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes, doing);
  prefer(d, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(p.b, p.b_stride), doing);
  prefer(d, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(p.a, p.a_stride), doing);
  prefer(d, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(p.out, p.out_stride), doing);
  prefer(d, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(p.out, p.out_stride), doing);
  std::vector<cublasLtMatmulHeuristicResult_t> found(kMost);
  int count = 0;
  check(f.heuristic(handle, d.operation, d.b, d.a, d.out, d.out, d.preference, kMost, found.data(), &count),
        "cublasLtMatmulAlgoGetHeuristic", doing);
  found.resize(static_cast<std::size_t>(count));
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (const cublasLtMatmulHeuristicResult_t& one : found) {
    if (one.state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(one.algo);
  }
  if (algorithms.empty()) {
    check(found.empty() ? CUBLAS_STATUS_NOT_SUPPORTED : found.front().state, "cublasLtMatmulAlgoGetHeuristic", doing);
  }
  return algorithms;
}

cublasStatus_t run(cublasLtHandle_t handle, const Descriptors& d, const LibraryMatmul& p, std::uint64_t workspace_bytes,
                   const cublasLtMatmulAlgo_t& algorithm, cudaStream_t stream) {
  const float one = 1.0f, zero = 0.0f;
  return functions().matmul(handle, d.operation, &one, p.b, d.b, p.a, d.a, &zero, p.out, d.out, p.out, d.out,
                            &algorithm, p.workspace, workspace_bytes, stream);
}

int current_device() {
  int device = 0;
  cudaGetDevice(&device);
  return device;
}

// Products of one key have the same algorithm.
std::string key_of(const LibraryMatmul& p, std::uint64_t workspace_bytes) {
  return fmt::format("{}: {} {} {} {}{} {} {} {} {} {} {} {} {} {}", current_device(), p.m, p.n, p.k,
                     int{p.transpose_a}, int{p.transpose_b}, p.matrices, p.a_stride, p.b_stride, p.out_stride,
                     alignment_of(p.a, p.a_stride), alignment_of(p.b, p.b_stride), alignment_of(p.out, p.out_stride),
                     static_cast<int>(p.precision), workspace_bytes);
}

// Held while times are taken: programs that are loaded at once on one device would slow each other down.
std::mutex& clock_of_device() {
  static OncePerKey<int, std::unique_ptr<std::mutex>> all;
  return *all.get(current_device(), [] { return std::make_unique<std::mutex>(); });
}

constexpr int kRepeats = 3;
constexpr double kWorthwhile = 0.98;  // of the time of the library's own first

// What one algorithm did: the bits that it left, and how long it took.
struct Trial {
  std::uint64_t bits = 0;
  double seconds = std::numeric_limits<double>::infinity();
};

// The first that runs says which bits are right; of those that leave the same, the fastest. `trial` gives nothing for
// one that does not run after all; `limit` is the time that it has to beat. Null: none runs.
template <class Try>
const cublasLtMatmulAlgo_t* fastest(const std::vector<cublasLtMatmulAlgo_t>& algorithms, Try trial) {
  const cublasLtMatmulAlgo_t* best = nullptr;
  std::uint64_t bits = 0;
  double limit = std::numeric_limits<double>::infinity();
  for (const cublasLtMatmulAlgo_t& algorithm : algorithms) {
    const std::optional<Trial> seen = trial(algorithm, limit);
    if (!seen || seen->seconds >= limit || (best != nullptr && seen->bits != bits)) continue;
    limit = best == nullptr ? seen->seconds * kWorthwhile : seen->seconds;
    bits = seen->bits;
    best = &algorithm;
  }
  return best;
}

// Tries the library's offers on random numbers.
cublasLtMatmulAlgo_t choose_by_time(cublasLtHandle_t handle, const LibraryMatmul& p, std::uint64_t workspace_bytes,
                                    Api& api, cudaStream_t stream, std::string_view doing) {
  const std::lock_guard lock(clock_of_device());
  Descriptors d;
  describe(d, p, doing);
  const auto floats = [](std::int64_t matrix, std::int64_t stride, std::int64_t matrices) {
    return static_cast<std::uint64_t>(stride > 0 ? stride * (matrices - 1) + matrix : matrix);
  };
  const std::uint64_t results = floats(p.m * p.n, p.out_stride, p.matrices);
  api.doing(doing);
  fill_trial(api, const_cast<void*>(p.a), floats(p.m * p.k, p.a_stride, p.matrices), 1, stream);
  fill_trial(api, const_cast<void*>(p.b), floats(p.k * p.n, p.b_stride, p.matrices), 2, stream);
  Event begin(api), end(api);
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;  // of the last that did not run
  const auto runs = [&](const cublasLtMatmulAlgo_t& algorithm) {
    const cublasStatus_t now = run(handle, d, p, workspace_bytes, algorithm, stream);
    if (now != CUBLAS_STATUS_SUCCESS) status = now;
    return now == CUBLAS_STATUS_SUCCESS;
  };
  const auto trial = [&](const cublasLtMatmulAlgo_t& algorithm, double limit) -> std::optional<Trial> {
    Trial seen;
    fill_trial(api, p.out, results, 3, stream);
    if (!runs(algorithm)) return std::nullopt;
    checksum_trial(api, p.out, results, p.workspace, stream);
    api.copy_to_host(&seen.bits, p.workspace, sizeof(seen.bits), stream);
    api.synchronize(stream);
    for (int i = 0; i < kRepeats; ++i) {
      begin.record(stream);
      if (!runs(algorithm)) return std::nullopt;
      end.record(stream);
      end.wait();
      seen.seconds = std::min(seen.seconds, end.seconds_since(begin));
      if (seen.seconds > 2 * limit) break;  // out of the race
    }
    return seen;
  };
  const auto algorithms = offers(handle, d, p, workspace_bytes, doing);
  const cublasLtMatmulAlgo_t* best = fastest(algorithms, trial);
  if (best == nullptr) check(status, "cublasLtMatmul", doing);
  return *best;
}

}  // namespace

struct MatmulLibrary::State {
  cublasLtHandle_t handle = nullptr;
  std::map<std::string, cublasLtMatmulAlgo_t> chosen;  // of products like those of this program
};

MatmulLibrary::MatmulLibrary() : state_(std::make_unique<State>()) {
  check(functions().create(&state_->handle), "cublasLtCreate", "load");
}

MatmulLibrary::~MatmulLibrary() {
  functions().destroy(state_->handle);
}

void MatmulLibrary::choose(const LibraryMatmul& p, std::uint64_t workspace_bytes, Api& api, cudaStream_t stream,
                           std::string_view doing) {
  if (workspace_bytes < sizeof(std::uint64_t) || p.m * p.n * p.k == 0) return;
  static OncePerKey<std::string, cublasLtMatmulAlgo_t> choices;  // of the process
  const std::string key = key_of(p, workspace_bytes);
  state_->chosen[key] =
      choices.get(key, [&] { return choose_by_time(state_->handle, p, workspace_bytes, api, stream, doing); });
}

void MatmulLibrary::multiply(const LibraryMatmul& p, std::uint64_t workspace_bytes, cudaStream_t stream,
                             std::string_view doing) {
  Descriptors d;
  describe(d, p, doing);
  const auto chosen = state_->chosen.find(key_of(p, workspace_bytes));
  const cublasLtMatmulAlgo_t algorithm =
      chosen != state_->chosen.end() ? chosen->second : offers(state_->handle, d, p, workspace_bytes, doing).front();
  check(run(state_->handle, d, p, workspace_bytes, algorithm, stream), "cublasLtMatmul", doing);
}

}  // namespace graphrun::cuda
