// frame_loop.cpp: learning inside a loop that has 2 ms for a frame, as a controller or a game has. Each frame puts 32
// new rows into a ring of 1,024, trains four steps on the rows there are, asks for one prediction and reads the loss.
// Every other frame does nothing: its times show what the machine's clock and other programs add.
//   frame_loop [FRAMES]
#include <graphrun/graph_builder.h>
#include <graphrun/session.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {
std::atomic<std::uint64_t> allocations{0};
}

// All that asks the C library for memory, operator new included, is counted.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t number, std::size_t size);
void* __libc_realloc(void* pointer, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void* malloc(std::size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
void* calloc(std::size_t number, std::size_t size) {
  ++allocations;
  return __libc_calloc(number, size);
}
void* realloc(void* pointer, std::size_t size) {
  ++allocations;
  return __libc_realloc(pointer, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  ++allocations;
  return __libc_memalign(alignment, size);
}
}

using namespace graphrun;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::int64_t kRing = 1024, kFresh = 32, kInputs = 8;
constexpr std::chrono::milliseconds kFrame{2};

Session learner() {
  GraphBuilder graph(128);  // rows of a step
  const Value x = graph.input("x", {kBatch, kInputs});
  graph.input("y", {kBatch, 1});
  const Value answer = graph.dense("answer", graph.dense("h", x, 32, "tanh"), 1);
  Model model(std::move(graph));
  model.outputs = {{answer, "answer", "y"}};
  model.train.minimize = model.graph.expression("loss = mean(square(answer - y))");
  model.train.optimizer = {"adam", {{"lr", 0.01}}, {}, {"lr"}};  // the loop may change lr: the state "train:lr"
  model.train.shuffle = true;
  Split ring{"train", {{"x", HostTensor(DType::f32, {kRing, kInputs})}, {"y", HostTensor(DType::f32, {kRing, 1})}}};
  ring.rows_vary = true;
  model.data.splits.push_back(std::move(ring));
  SessionOptions options;
  options.threads = 1;
  return Session(std::move(model), options);
}

// What a sensor would say: y follows from x.
void measure(std::int64_t frame, std::vector<float>& x, std::vector<float>& y) {
  for (std::size_t row = 0; row < y.size(); ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < kInputs; ++i) {
      const double value = std::sin(0.37 * static_cast<double>(frame * kFresh) + static_cast<double>(row * (i + 1)));
      x[row * kInputs + i] = static_cast<float>(value);
      sum += value / static_cast<double>(i + 1);
    }
    y[row] = static_cast<float>(std::tanh(sum));
  }
}

void tell(const char* what, std::vector<double>& us) {
  std::sort(us.begin(), us.end());
  const auto at = [&](double share) {
    return us[static_cast<std::size_t>(share * static_cast<double>(us.size() - 1))];
  };
  std::printf("%-16s p50 %7.1f us   p99.9 %7.1f us   most %7.1f us\n", what, at(0.5), at(0.999), us.back());
}

}  // namespace

int main(int count, char** arguments) {
  const std::int64_t frames = count > 1 ? std::max(2L, std::atol(arguments[1])) : 4000;
  Session session = learner();
  const ValueId to_x = session.find("data/train/x"), to_y = session.find("data/train/y");
  std::vector<float> x(kFresh * kInputs), y(kFresh), asked(kInputs, 0.5F);
  float answer = 0;
  const std::span<const std::byte> in[] = {std::as_bytes(std::span(asked))};
  const std::span<std::byte> out[] = {std::as_writable_bytes(std::span(&answer, 1))};
  std::vector<double> empty, full;
  empty.reserve(static_cast<std::size_t>(frames));
  full.reserve(static_cast<std::size_t>(frames));
  double loss = 0;

  const std::uint64_t before = allocations;
  auto next = Clock::now() + kFrame;
  for (std::int64_t frame = 0; frame < frames; ++frame, next += kFrame) {
    std::this_thread::sleep_until(next);
    const bool works = frame % 2 == 1;
    if (works) {
      const std::int64_t number = frame / 2;
      measure(number, x, y);
      session.write_rows(to_x, number * kFresh % kRing, std::as_bytes(std::span(x)));
      session.write_rows(to_y, number * kFresh % kRing, std::as_bytes(std::span(y)));
      session.set_rows("train", std::min(kRing, (number + 1) * kFresh));
      if (!session.advance(4)) break;
      session.predict(in, out);
      loss = session.loss();
    }
    (works ? full : empty).push_back(std::chrono::duration<double, std::micro>(Clock::now() - next).count());
  }
  const std::uint64_t made = allocations - before;
  tell("empty frames", empty);
  tell("learning frames", full);
  std::printf("loss %.6f, answer %.6f\n%llu allocations in %lld frames\n", loss, static_cast<double>(answer),
              static_cast<unsigned long long>(made), static_cast<long long>(frames));
  return made == 0 && std::isfinite(loss) ? 0 : 1;
}
