// The cpu executor's matrix product against OpenBLAS and oneDNN, one thread each, on the shapes of the models.
// Build graphrun (target graphrun_inside) into build/, install libopenblas-dev and libdnnl-dev, then:
//   g++ -O2 -std=c++20 -Iinclude -Isrc bench/cpu_products.cpp build/src/libgraphrun_inside.a
//       -lopenblas -ldnnl -lfmt -lz -o products
//   OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 ./products
#include <cblas.h>
#include <dnnl.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "graphrun/op.h"
#include "graphrun/params.h"
#include "kernels/cpu/cpu_kernels.h"

namespace {

struct Product {
  const char* name;
  long m, n, k;
  bool transpose_a = false, transpose_b = false;
};
constexpr Product kProducts[] = {{"784-256-100-10, layer 1", 1000, 256, 784},
                                 {"dW", 784, 256, 1000, true},
                                 {"layer 2", 1000, 100, 256},
                                 {"gradient of its input", 1000, 256, 100, false, true},
                                 {"dW", 256, 100, 1000, true},
                                 {"layer 3", 1000, 10, 100},
                                 {"dW", 100, 10, 1000, true},
                                 {"layer 1, batch 100", 100, 256, 784},
                                 {"2 to 20", 40000, 20, 2},
                                 {"dW", 2, 20, 40000, true},
                                 {"20 to 20", 40000, 20, 20},
                                 {"dW", 20, 20, 40000, true},
                                 {"20 to 1", 40000, 1, 20},
                                 {"dW", 20, 1, 40000, true},
                                 {"8 to 16", 800000, 16, 8},
                                 {"dW", 8, 16, 800000, true},
                                 {"16 to 16", 800000, 16, 16},
                                 {"dW", 16, 16, 800000, true},
                                 {"square", 512, 512, 512},
                                 {"square", 1024, 1024, 1024}};

double now() {  // CPU time of this thread: less affected by other processes
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

template <class F>
double shortest(F&& call) {
  call();
  double best = 1e30;
  const double start = now();
  for (int n = 0; n < 7 || (now() - start < 0.6 && n < 400); ++n) {
    const double before = now();
    call();
    best = std::min(best, now() - before);
  }
  return best;
}

std::vector<float> numbers(long n) {
  static std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> x(static_cast<std::size_t>(n));
  for (float& v : x) v = uniform(random);
  return x;
}

}  // namespace

int main() {
  const graphrun::Isa isa = graphrun::default_isa();
  const graphrun::KernelFn kernel = graphrun::cpu_kernel(graphrun::Op::matmul, isa);
  std::printf("%-26s %22s %10s %14s %12s\n", "product", "m x n x k", "GFLOP/s", "/ OpenBLAS", "/ oneDNN");
  for (const Product& p : kProducts) {
    const std::vector<float> a = numbers(p.m * p.k);
    const std::vector<float> b = numbers(p.k * p.n);
    std::vector<float> ours(static_cast<std::size_t>(p.m * p.n));
    std::vector<float> theirs = ours;
    const long lda = p.transpose_a ? p.m : p.k;
    const long ldb = p.transpose_b ? p.k : p.n;
    graphrun::KernelArgs args;  // as a step calls it, without threads
    args.in[0] = a.data();
    args.in[1] = b.data();
    args.in_type[0] = {graphrun::DType::f32, p.transpose_a ? graphrun::Shape{p.k, p.m} : graphrun::Shape{p.m, p.k}, 0};
    args.in_type[1] = {graphrun::DType::f32, p.transpose_b ? graphrun::Shape{p.n, p.k} : graphrun::Shape{p.k, p.n}, 0};
    args.inputs = 2;
    args.out = ours.data();
    args.out_type = {graphrun::DType::f32, {p.m, p.n}, 0};
    args.params = graphrun::MatmulParams{p.transpose_a, p.transpose_b};
    std::vector<float> scratch(graphrun::cpu_workspace("matmul", args.params, {args.in_type, 2}, args.out_type) / 4);
    if (!scratch.empty()) args.workspace = scratch.data();
    const double own = shortest([&] { kernel(args); });
    const double openblas = shortest([&] {
      cblas_sgemm(CblasRowMajor, p.transpose_a ? CblasTrans : CblasNoTrans, p.transpose_b ? CblasTrans : CblasNoTrans,
                  static_cast<int>(p.m), static_cast<int>(p.n), static_cast<int>(p.k), 1, a.data(),
                  static_cast<int>(lda), b.data(), static_cast<int>(ldb), 0, theirs.data(), static_cast<int>(p.n));
    });
    const double onednn = shortest([&] {
      dnnl_sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', p.m, p.n, p.k, 1, a.data(), lda, b.data(), ldb,
                 0, theirs.data(), p.n);
    });
    for (std::size_t i = 0; i < ours.size(); ++i) {
      if (std::abs(ours[i] - theirs[i]) > 1e-6f * static_cast<float>(p.k)) {
        std::printf("element %zu: %g, not %g\n", i, static_cast<double>(ours[i]), static_cast<double>(theirs[i]));
        return 1;
      }
    }
    char shape[40];
    std::snprintf(shape, sizeof shape, "%ld x %ld x %ld", p.m, p.n, p.k);
    const double flops = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
    std::printf("%-26s %22s %10.0f %14.2f %12.2f\n", p.name, shape, flops / own * 1e-9, own / openblas, own / onednn);
  }
}
