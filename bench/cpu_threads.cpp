// Loops of the cpu executor in one thread and in N, each on a core of its own; the shortest of many calls.
// Build graphrun (target graphrun_inside) into build/, then:
//   g++ -O2 -std=c++20 -Iinclude -Isrc bench/cpu_threads.cpp build/src/libgraphrun_inside.a -lfmt -lz -o threads
//   ./threads 2
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "graphrun/params.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/threads/parallel.h"

using namespace graphrun;
using Clock = std::chrono::steady_clock;

namespace {

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

template <class F>
double shortest(F&& call, double seconds) {
  double best = 1e30;
  for (const auto start = Clock::now(); microseconds_since(start) < seconds * 1e6;) {
    const auto before = Clock::now();
    call();
    best = std::min(best, microseconds_since(before));
  }
  return best;
}

// On a busy machine two threads would else share a core for seconds.
void pin_threads() {
  int core = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core++, &cores);
    sched_setaffinity(std::stoi(task.path().filename().string()), sizeof cores, &cores);
  }
}

double process_microseconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

// Additions with a dependency chain.
void chain(void*, int) {
  volatile float sum = 0;
  for (int i = 0; i < 500; ++i) sum = sum + 1.0f;
}

// Overhead of a parallel loop with one short task per thread: dispatch and join.
void hand_over(cpu::Pool& pool) {
  constexpr int kCalls = 500;
  double one = 1e30, all = 1e30;
  for (int block = 0; block < 100; ++block) {
    auto before = Clock::now();
    for (int i = 0; i < kCalls; ++i) chain(nullptr, 0);
    one = std::min(one, microseconds_since(before) / kCalls);
    before = Clock::now();
    for (int i = 0; i < kCalls; ++i) pool.run(pool.threads(), chain, nullptr);
    all = std::min(all, microseconds_since(before) / kCalls);
  }
  std::printf("handing over parts of %.2f us: %.2f us\n", one, all - one);
}

struct Loop {
  const char* name;
  const char* op;
  Params params;
  std::vector<Shape> inputs;
  Shape output;
};
const Loop kLoops[] = {
    {"product 1000 x 256 x 784", "matmul", MatmulParams{false, false}, {{1000, 784}, {784, 256}}, {1000, 256}},
    {"dW 784 x 256 x 1000", "matmul", MatmulParams{true, false}, {{1000, 784}, {1000, 256}}, {784, 256}},
    {"product 100 x 256 x 784", "matmul", MatmulParams{false, false}, {{100, 784}, {784, 256}}, {100, 256}},
    {"product 40000 x 20 x 2", "matmul", MatmulParams{false, false}, {{40000, 2}, {2, 20}}, {40000, 20}},
    {"dW 2 x 20 x 40000", "matmul", MatmulParams{true, false}, {{40000, 2}, {40000, 20}}, {2, 20}},
    {"dW 8 x 16 x 800000", "matmul", MatmulParams{true, false}, {{800000, 8}, {800000, 16}}, {8, 16}},
    {"tanh 40000 x 20", "tanh", NoParams{}, {{40000, 20}}, {40000, 20}},
    {"add bias 1000 x 256", "add", NoParams{}, {{1000, 256}, {256}}, {1000, 256}},
    {"sum of rows 40000 x 20", "sum", ReduceParams{1, false}, {{40000, 20}}, {20}},
    {"sum 800000", "sum", ReduceParams{1, false}, {{800000}}, {}},
    {"softmax 1000 x 10", "softmax", AxisParams{1}, {{1000, 10}}, {1000, 10}}};

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  cpu::Pool pool(threads);
  pin_threads();
  hand_over(pool);
  double woken = 1e30;
  for (int i = 0; i < 200; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const auto before = Clock::now();
    pool.run(
        threads,
        [](void*, int) {
          for (const auto start = Clock::now(); microseconds_since(start) < 100;) {
          }
        },
        nullptr);
    woken = std::min(woken, microseconds_since(before) - 100);
  }
  std::printf("waking the others: %.0f us\n", woken);
  const double before = process_microseconds();
  for (int i = 0; i < 20; ++i) {
    pool.run(
        threads, [](void*, int) {}, nullptr);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  std::printf("one empty loop in 20 ms: %.0f us of processor time\n", (process_microseconds() - before) / 20);
  for (const Loop& loop : kLoops) {
    KernelArgs args;
    std::vector<std::vector<float>> values;
    for (const Shape& shape : loop.inputs) {
      values.emplace_back(static_cast<std::size_t>(shape.elements()), 0.5f);
      args.in[args.inputs] = values.back().data();
      args.in_type[args.inputs++] = {DType::f32, shape, 0};
    }
    std::vector<float> out(static_cast<std::size_t>(loop.output.elements()));
    args.out = out.data();
    args.out_type = {DType::f32, loop.output, 0};
    args.params = loop.params;
    const std::span<const TensorType> types(args.in_type, static_cast<std::size_t>(args.inputs));
    std::vector<float> workspace(cpu_workspace(loop.op, loop.params, types, args.out_type) / sizeof(float));
    if (!workspace.empty()) args.workspace = workspace.data();
    const KernelFn kernel = cpu_kernel(loop.op, default_isa());
    const double one = shortest([&] { kernel(args); }, 1);
    args.pool = &pool;
    const double all = shortest([&] { kernel(args); }, 2);
    std::printf("%-26s %9.1f us, %d threads %9.1f us: %.2f\n", loop.name, one, threads, all, one / all);
  }
}
