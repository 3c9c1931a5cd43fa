#include "executors/cuda/cublaslt.h"

#include <cublasLt.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "executors/cuda/dynamic_library.h"
#include "executors/cuda/event.h"
#include "executors/cuda/once_per_key.h"
#include "kernels/cuda/autotune.h"

namespace graphrun::cuda {
namespace {

// Functions of the library, which is opened once and kept: handles of several runnables use it.
struct Functions {
  DynamicLibrary library{fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR),
                         "this model has large matrix products, which need"};
#define X(name) decltype(&cublasLt##name) name = library.find<decltype(name)>("cublasLt" #name);
  // clang-format off
  X(Create) X(Destroy) X(GetStatusString) X(Matmul) X(MatmulAlgoGetHeuristic)
  X(MatmulDescCreate) X(MatmulDescDestroy) X(MatmulDescSetAttribute)
  X(MatrixLayoutCreate) X(MatrixLayoutDestroy) X(MatrixLayoutSetAttribute)
  X(MatmulPreferenceCreate) X(MatmulPreferenceDestroy) X(MatmulPreferenceSetAttribute)
  // clang-format on
#undef X
};
const Functions& functions() {
  static const Functions* const loaded = new Functions;
  return *loaded;
}

void check(cublasStatus_t status, const char* call, std::string_view doing) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(ErrorKind::device, "cuda.call",
              fmt::format("{}: {} failed: {}", doing, call, functions().GetStatusString(status)));
}

// Descriptors of one call; destroys them.
struct Descriptors {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, out = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;

  Descriptors() = default;
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;
  ~Descriptors() {
    const Functions& f = functions();
    if (preference != nullptr) f.MatmulPreferenceDestroy(preference);
    if (out != nullptr) f.MatrixLayoutDestroy(out);
    if (b != nullptr) f.MatrixLayoutDestroy(b);
    if (a != nullptr) f.MatrixLayoutDestroy(a);
    if (operation != nullptr) f.MatmulDescDestroy(operation);
  }
};

void set(cublasLtMatmulDesc_t to, cublasLtMatmulDescAttributes_t what, const auto& value, std::string_view doing) {
  check(functions().MatmulDescSetAttribute(to, what, &value, sizeof(value)), "cublasLtMatmulDescSetAttribute", doing);
}
void set(cublasLtMatrixLayout_t to, cublasLtMatrixLayoutAttribute_t what, const auto& value, std::string_view doing) {
  check(functions().MatrixLayoutSetAttribute(to, what, &value, sizeof(value)), "cublasLtMatrixLayoutSetAttribute",
        doing);
}
void set(cublasLtMatmulPreference_t to, cublasLtMatmulPreferenceAttributes_t what, const auto& value,
         std::string_view doing) {
  check(functions().MatmulPreferenceSetAttribute(to, what, &value, sizeof(value)),
        "cublasLtMatmulPreferenceSetAttribute", doing);
}

// Creates a layout. A row-major matrix is its own transpose for a column-major library. The next of `matrices` begins
// `stride` elements later.
void layout(cublasLtMatrixLayout_t& to, std::int64_t rows, std::int64_t columns, std::int64_t matrices,
            std::int64_t stride, std::string_view doing) {
  check(functions().MatrixLayoutCreate(&to, CUDA_R_32F, static_cast<std::uint64_t>(columns),
                                       static_cast<std::uint64_t>(rows), columns),
        "cublasLtMatrixLayoutCreate", doing);
  if (matrices == 1) return;
  set(to, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(matrices), doing);
  set(to, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride, doing);
}

// Launch shape of the kernels of kernels/cuda/autotune.h, which run on memory without contents.
constexpr Grid kTrialGrid{1024, 1, 1};
constexpr std::uint32_t kTrialThreads = 256;

void fill_trial(Api& api, void* to, std::uint64_t floats, std::uint32_t seed, cudaStream_t stream) {
  void* arguments[] = {&to, &floats, &seed};
  api.launch(autotune_kernels().fill, "trial_fill", kTrialGrid, kTrialThreads, arguments, stream, false);
}

// Adds up the result in `sum`, which is eight bytes of device memory.
void checksum_trial(Api& api, const void* from, std::uint64_t floats, void* sum, cudaStream_t stream) {
  void* clear[] = {&sum};
  api.launch(autotune_kernels().clear, "trial_clear", Grid{}, 1, clear, stream, false);
  void* add[] = {&from, &floats, &sum};
  api.launch(autotune_kernels().checksum, "trial_checksum", kTrialGrid, kTrialThreads, add, stream, false);
}

// Largest power of two, up to 256, that divides the addresses of all matrices.
std::uint32_t alignment_of(const void* address, std::int64_t stride) {
  const auto number = reinterpret_cast<std::uintptr_t>(address) | static_cast<std::uintptr_t>(stride) * 4 | 256u;
  return static_cast<std::uint32_t>(number & (~number + 1));
}

// Uses column-major out^T = op(b)^T op(a)^T, which is row-major out = op(a) op(b).
void describe(Descriptors& d, const LibraryMatmul& p, std::string_view doing) {
  const bool tf32 = p.precision == Precision::tf32;
  check(
      functions().MatmulDescCreate(&d.operation, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
      "cublasLtMatmulDescCreate", doing);
  set(d.operation, CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, doing);
  set(d.operation, CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, doing);
  layout(d.a, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.matrices, p.a_stride, doing);
  layout(d.b, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.matrices, p.b_stride, doing);
  layout(d.out, p.m, p.n, p.matrices, p.out_stride, doing);
}

// Algorithms that the library proposes, in its own order of preference; at least one.
std::vector<cublasLtMatmulAlgo_t> offers(cublasLtHandle_t handle, Descriptors& d, const LibraryMatmul& p,
                                         std::uint64_t workspace_bytes, std::string_view doing) {
  constexpr int kMax = 12;
  const Functions& f = functions();
  check(f.MatmulPreferenceCreate(&d.preference), "cublasLtMatmulPreferenceCreate", doing);
  set(d.preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes, doing);
  const std::uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;  // the in-place scheme uses atomics
  set(d.preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes, doing);
  set(d.preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(p.b, p.b_stride), doing);
  set(d.preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(p.a, p.a_stride), doing);
  set(d.preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(p.out, p.out_stride), doing);
  set(d.preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(p.out, p.out_stride), doing);
  std::vector<cublasLtMatmulHeuristicResult_t> found(kMax);
  int count = 0;
  check(f.MatmulAlgoGetHeuristic(handle, d.operation, d.b, d.a, d.out, d.out, d.preference, kMax, found.data(), &count),
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
  return functions().Matmul(handle, d.operation, &one, p.b, d.b, p.a, d.a, &zero, p.out, d.out, p.out, d.out,
                            &algorithm, p.workspace, workspace_bytes, stream);
}

int current_device() {
  int device = 0;
  cudaGetDevice(&device);
  return device;
}

// Key of a product; products with equal keys use the same algorithm.
std::string key_of(const LibraryMatmul& p, std::uint64_t workspace_bytes) {
  return fmt::format("{}: {} {} {} {}{} {} {} {} {} {} {} {} {} {}", current_device(), p.m, p.n, p.k,
                     int{p.transpose_a}, int{p.transpose_b}, p.matrices, p.a_stride, p.b_stride, p.out_stride,
                     alignment_of(p.a, p.a_stride), alignment_of(p.b, p.b_stride), alignment_of(p.out, p.out_stride),
                     static_cast<int>(p.precision), workspace_bytes);
}

// Mutex of the current device, locked during timing: programs that load at the same time would slow each other down.
std::mutex& clock_of_device() {
  static OncePerKey<int, std::unique_ptr<std::mutex>> all;
  return *all.get(current_device(), [] { return std::make_unique<std::mutex>(); });
}

constexpr int kRepeats = 3;
constexpr double kWorthwhile = 0.98;  // ratio to the time of the library's first choice

// Tries the proposed algorithms on random numbers. Returns the fastest one that leaves the same bits as the first one
// that runs.
cublasLtMatmulAlgo_t choose_by_time(cublasLtHandle_t handle, const LibraryMatmul& p, std::uint64_t workspace_bytes,
                                    Api& api, cudaStream_t stream, std::string_view doing) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
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
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;  // status of the last algorithm that did not run
  const auto runs = [&](const cublasLtMatmulAlgo_t& algorithm) {
    const cublasStatus_t now = run(handle, d, p, workspace_bytes, algorithm, stream);
    if (now != CUBLAS_STATUS_SUCCESS) status = now;
    return now == CUBLAS_STATUS_SUCCESS;
  };
  std::optional<cublasLtMatmulAlgo_t> best;
  std::uint64_t bits = 0;  // checksum of the best one's result
  double limit = kNever;   // time to beat
  for (const cublasLtMatmulAlgo_t& algorithm : offers(handle, d, p, workspace_bytes, doing)) {
    fill_trial(api, p.out, results, 3, stream);
    if (!runs(algorithm)) continue;
    std::uint64_t seen = 0;
    checksum_trial(api, p.out, results, p.workspace, stream);
    api.copy(&seen, p.workspace, sizeof(seen), cudaMemcpyDeviceToHost, stream);
    api.synchronize(stream);
    double seconds = kNever;
    for (int i = 0; i < kRepeats && (i == 0 || seconds <= 2 * limit); ++i) {  // beyond, it is too slow to win
      begin.record(stream);
      if (!runs(algorithm)) {
        seconds = kNever;
        break;
      }
      end.record(stream);
      end.wait();
      seconds = std::min(seconds, end.seconds_since(begin));
    }
    if (seconds >= limit || (best && seen != bits)) continue;
    limit = best ? seconds : seconds * kWorthwhile;
    bits = seen;
    best = algorithm;
  }
  if (!best) check(status, "cublasLtMatmul", doing);
  return best.value();
}

}  // namespace

struct MatmulLibrary::State {
  cublasLtHandle_t handle = nullptr;
  std::map<std::string, cublasLtMatmulAlgo_t> chosen;  // algorithms by key_of() a product of this program
};

MatmulLibrary::MatmulLibrary() : state_(std::make_unique<State>()) {
  check(functions().Create(&state_->handle), "cublasLtCreate", "load");
}

MatmulLibrary::~MatmulLibrary() {
  functions().Destroy(state_->handle);
}

void MatmulLibrary::choose(const LibraryMatmul& p, std::uint64_t workspace_bytes, Api& api, cudaStream_t stream,
                           std::string_view doing) {
  if (workspace_bytes < sizeof(std::uint64_t) || p.m * p.n * p.k == 0) return;
  static OncePerKey<std::string, cublasLtMatmulAlgo_t> choices;  // shared by the process
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
