// warp_case.h: the rows of a training step of an 8-16-8-1 tanh network, written with the warp tile like generated code.
// Contract: gradients() stores the 290 sums over rows of one pass in `sums`: squared errors, then the gradients of
// out.b, out.W (8, 1), h2.b, h1.b, h1.W (8, 16), h2.W (16, 8). Leaves to others: expected sums (warp_test.cpp).
#pragma once

#include "kernels/cuda/tile/exchange.h"
#include "kernels/cuda/tile/warp_sums.h"

namespace graphrun::cuda::tile::by_warp {

struct WarpCaseArgs {
  const float *x, *y;                   // (kRows, 8), (kRows, 1)
  const float *w1, *b1, *w2, *b2, *w3;  // 16-byte aligned
  float b3;
  float* sums;
};

template <unsigned kRows, unsigned kThreads>
struct WarpCase {
  struct Combine {
    GRAPHRUN_TILE_FN static float apply(int, float x, float y) { return x + y; }
  };
  static constexpr int kSums = 290;
  static constexpr unsigned kWarps = kThreads / 32;
  using Reduce = AllReduce<kSums, kThreads, 1, 1, Combine>;
  using RowSums =
      Sums<Sum<0, 1, 1>, Sum<1, 1, 1>, Sum<2, 8, 1>, Sum<10, 1, 8>, Sum<18, 1, 16>, Sum<34, 8, 16>, Sum<162, 16, 8>>;
  struct Shared {
    typename Reduce::Shared reduce;
    alignas(16) float scratch[kWarps][RowSums::kScratch];
  };
  struct Data {
    Row<float, 8> x;
    Row<float, 1> y;
  };

  GRAPHRUN_TILE_FN static void gradients(const WarpCaseArgs& a, Shared& s) {
    Reduce reduce(s.reduce, nullptr, nullptr);
    const unsigned warp = thread_index() / 32;
    RowSums sums(s.scratch[warp]);
    const auto w1 = held(weights<8, 16>(a.w1));
    const auto w2 = held(weights<16, 8>(a.w2));
    const auto w3 = held(weights<8, 1>(a.w3));
    const auto tanh = [](float x) { return scalar::Tanh::apply<float>(x, 0.0f, 0.0f); };
    const auto tanh_gradient = [](float x, float y) { return scalar::TanhGradient::apply<float>(x, y); };
    const auto fetch = [&](const auto& r) { return Data{load<8>(a.x, r), load<1>(a.y, r)}; };
    const auto row = [&](const auto& r, const Data& data) {
      const auto z1 = matmul(data.x, w1);
      const auto h1 = map<16>([&](Index i) { return tanh(z1[i] + a.b1[i]); });
      const auto z2 = matmul(h1, w2);
      const auto h2 = map<8>([&](Index i) { return tanh(z2[i] + a.b2[i]); });
      const auto out = matmul(h2, w3);
      const auto error = map<1>([&](Index i) { return out[at(i, 0)] + a.b3 - data.y[at(i, 0)]; });
      sums.template add<0>(map<1>([&](Index i) { return error[at(i, 0)] * error[at(i, 0)]; }), r);
      const auto d = map<1>([&](Index i) { return 2.0f / kRows * error[at(i, 0)]; });
      sums.template add<1>(d, r);
      sums.template add_product<2>(h2, d, r);
      const auto dh2 = matmul(d, weights_transposed<1, 8>(a.w3));
      const auto d2 = map<8>([&](Index i) { return tanh_gradient(h2[i], dh2[i]); });
      sums.template add<10>(d2, r);
      sums.template add_product<162>(h1, d2, r);
      const auto dh1 = matmul(d2, weights_transposed<8, 16>(a.w2));
      const auto d1 = map<16>([&](Index i) { return tanh_gradient(h1[i], dh1[i]); });
      sums.template add<18>(d1, r);
      sums.template add_product<34>(data.x, d1, r);
    };
    by_warp::for_rows<kRows, kWarps, false>(warp, kRows, fetch, row);
    sums.finish(reduce.row());
    reduce.run(1);
    for (int v = static_cast<int>(thread_index()); v < kSums; v += static_cast<int>(kThreads))
      a.sums[v] = reduce.total(v);
    reduce.end();
  }
};

}  // namespace graphrun::cuda::tile::by_warp
