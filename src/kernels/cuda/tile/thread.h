// thread.h: the thread tile: a thread holds the values of one row (sample) in registers.
// Contract: a Row has as many numbers as a value has for one sample. Every index is known at compile time, so none of
// it is placed in memory. Products add in the order of the weights in memory, with fused multiply-adds. `w` is shared
// by all rows: in the block's shared memory, 16-byte aligned. Leaves to others: the choice of steps
// (executors/cuda_planner/print/step_kernel.h), sums over other threads' rows (exchange.h).
#pragma once

#include "kernels/cuda/tile/lanes.h"
#include "kernels/scalar_ops.h"

namespace graphrun::cuda::tile {

// Scalar op: its functor on floats, or on a type with its own functions.
template <class Functor, class Number>
GRAPHRUN_TILE_FN float unary(float x, float a, float b) {
  return static_cast<float>(Functor::template apply<Number>(Number(x), Number(a), Number(b)));
}

template <class T, int N>
struct Row {
  T v[N > 0 ? N : 1];
  GRAPHRUN_TILE_FN T operator[](int i) const { return v[i]; }
};

// Row whose feature i is f(i).
template <int N, class F>
GRAPHRUN_TILE_FN auto map(F f) {
  Row<decltype(f(0)), N> out;
  GRAPHRUN_TILE_FOR (i, N) out.v[i] = f(i);
  return out;
}

// Loads consecutive features from memory.
template <int N, class T>
GRAPHRUN_TILE_FN Row<T, N> load(const T* from) {
  return map<N>([&](int i) { return from[i]; });
}
template <int N, class T>
GRAPHRUN_TILE_FN void store(T* to, const Row<T, N>& x) {
  GRAPHRUN_TILE_FOR (i, N) to[i] = x[i];
}
template <int N, class T>
GRAPHRUN_TILE_FN void clear(T* to) {
  GRAPHRUN_TILE_FOR (i, N) to[i] = T(0);
}

// ---- products

// Calls f(index, weight) for each weight in order; loads four at a time.
template <int N, class F>
GRAPHRUN_TILE_FN void each_weight(const float* w, F f) {
  GRAPHRUN_TILE_UNROLL
  for (int i = 0; i + 4 <= N; i += 4) {
    const Floats<4> four = *reinterpret_cast<const Floats<4>*>(w + i);
    GRAPHRUN_TILE_FOR (k, 4) f(i + k, four.value[k]);
  }
  GRAPHRUN_TILE_UNROLL
  for (int i = N / 4 * 4; i < N; ++i) f(i, w[i]);
}

// x (Q, K) times w (K, N), or times the transpose of w (N, K).
template <int Q, int K, int N, bool kTransposed = false>
GRAPHRUN_TILE_FN Row<float, Q * N> matmul(const Row<float, Q * K>& x, const float* w) {
  Row<float, Q* N> out = map<Q * N>([](int) { return 0.0f; });
  each_weight<K * N>(w, [&](int i, float weight) {
    const int k = kTransposed ? i % K : i / N, n = kTransposed ? i / K : i % N;
    GRAPHRUN_TILE_FOR (q, Q) out.v[q * N + n] = scalar::fma(x[q * K + k], weight, out[q * N + n]);
  });
  return out;
}
template <int Q, int K, int N>
GRAPHRUN_TILE_FN Row<float, Q * N> matmul_transposed(const Row<float, Q * K>& x, const float* w) {
  return matmul<Q, K, N, true>(x, w);
}

// ---- sums over rows: this row's contribution, added to sums kAt, kAt + 1, … of the thread. A row that is not `live`
// repeats another and contributes nothing: cheaper than a branch, which would keep rows from overlapping.

// The transpose of x (Q, K) times y (Q, N).
template <int kAt, int Q, int K, int N, int V>
GRAPHRUN_TILE_FN void add_product(float (&sums)[V], const Row<float, Q * K>& all_x, const Row<float, Q * N>& all_y,
                                  bool live) {
  const auto x = map<Q * K>([&](int i) { return live ? all_x[i] : 0.0f; });
  const auto y = map<Q * N>([&](int i) { return live ? all_y[i] : 0.0f; });
  GRAPHRUN_TILE_FOR (q, Q) {
    GRAPHRUN_TILE_FOR (k, K) {
      GRAPHRUN_TILE_FOR (n, N) {
        float& sum = sums[kAt + k * N + n];
        sum = scalar::fma(x[q * K + k], y[q * N + n], sum);
      }
    }
  }
}
// Each of N sums becomes combine(sum, term(n, m)) for M terms in order; `nothing` is the neutral element.
template <int kAt, int N, int M, int V, class Term, class Combine>
GRAPHRUN_TILE_FN void combine(float (&sums)[V], float nothing, Term term, Combine combine, bool live) {
  GRAPHRUN_TILE_FOR (n, N)
    GRAPHRUN_TILE_FOR (m, M) sums[kAt + n] = combine(sums[kAt + n], live ? term(n, m) : nothing);
}

// ---- along features

// N results of M terms each: fold(fold(start, term(n, 0)), term(n, 1)), …
template <int N, int M, class T, class Term, class Fold>
GRAPHRUN_TILE_FN Row<T, N> reduce(T start, Term term, Fold fold) {
  return map<N>([&](int n) {
    T sum = start;
    GRAPHRUN_TILE_FOR (m, M) sum = fold(sum, term(n, m));
    return sum;
  });
}
GRAPHRUN_TILE_FN float larger(float x, float y) {
  return scalar::Maximum::apply<float>(x, y);
}
GRAPHRUN_TILE_FN float smaller(float x, float y) {
  return scalar::Minimum::apply<float>(x, y);
}
GRAPHRUN_TILE_FN float infinity() {
  return scalar::from_bits(0x7f800000);
}

// Index of the first largest (sign 1) or smallest (-1) term; NaN counts as both.
template <int N, int M, class Term>
GRAPHRUN_TILE_FN Row<int, N> position(float sign, Term term) {
  return map<N>([&](int n) {
    int best = 0;
    float value = sign * term(n, 0);
    GRAPHRUN_TILE_UNROLL
    for (int m = 1; m < M; ++m) {
      const float x = sign * term(n, m);
      if (value == value && !(x <= value)) best = m, value = x;
    }
    return best;
  });
}

// Maximum of M terms, exponentials of term - maximum, and their sum, for softmax and related ops.
template <class Number, int M, class Term>
struct Exponentials {
  float top, sum;
  float values[M];
  GRAPHRUN_TILE_FN explicit Exponentials(Term term) {
    top = -infinity();
    GRAPHRUN_TILE_FOR (m, M) top = larger(top, term(m));
    sum = 0;
    GRAPHRUN_TILE_FOR (m, M) {
      values[m] = unary<scalar::Exp, Number>(term(m) - top, 0.0f, 0.0f);
      sum += values[m];
    }
  }
  GRAPHRUN_TILE_FN float log_sum() const { return unary<scalar::Log, Number>(sum, 0.0f, 0.0f); }
};
template <class Number, int M, class Term>
GRAPHRUN_TILE_FN Exponentials<Number, M, Term> exponentials(Term term) {
  return Exponentials<Number, M, Term>(term);
}

// x has (A, M, B) features; M is the axis.
template <class Number, int A, int M, int B, bool kLog = false>
GRAPHRUN_TILE_FN Row<float, A * M * B> softmax(const Row<float, A * M * B>& x) {
  Row<float, A * M * B> out;
  GRAPHRUN_TILE_FOR (line, A * B) {
    const int base = line / B * M * B + line % B;
    const auto e = exponentials<Number, M>([&](int m) { return x[base + m * B]; });
    const float log_sum = kLog ? e.log_sum() : 0.0f;
    GRAPHRUN_TILE_FOR (m, M)
      out.v[base + m * B] = kLog ? x[base + m * B] - e.top - log_sum : float(Number(e.values[m]) / Number(e.sum));
  }
  return out;
}
template <class Number, int A, int M, int B>
GRAPHRUN_TILE_FN Row<float, A * M * B> log_softmax(const Row<float, A * M * B>& x) {
  return softmax<Number, A, M, B, true>(x);
}
// -sum(target * log_softmax(x)) of A lines; a class with target 0 adds nothing, however small its probability.
template <class Number, int A, int M>
GRAPHRUN_TILE_FN Row<float, A> softmax_cross_entropy(const Row<float, A * M>& x, const Row<float, A * M>& target) {
  return map<A>([&](int line) {
    const auto e = exponentials<Number, M>([&](int m) { return x[line * M + m]; });
    const float log_sum = e.log_sum();
    float loss = 0;
    GRAPHRUN_TILE_FOR (m, M) {
      const float t = target[line * M + m];
      loss = t != 0 ? scalar::fma(t, log_sum - (x[line * M + m] - e.top), loss) : loss;
    }
    return loss;
  });
}
// With class indices; an invalid index gives NaN.
template <class Number, int A, int M>
GRAPHRUN_TILE_FN Row<float, A> softmax_cross_entropy(const Row<float, A * M>& x, const Row<int, A>& target) {
  return map<A>([&](int line) {
    const auto e = exponentials<Number, M>([&](int m) { return x[line * M + m]; });
    float loss = scalar::from_bits(0x7fc00000), log_sum = e.log_sum();
    GRAPHRUN_TILE_FOR (m, M) loss = target[line] == m ? log_sum - (x[line * M + m] - e.top) : loss;
    return loss;
  });
}
template <class Number, int N, int M, class Term>
GRAPHRUN_TILE_FN Row<float, N> logsumexp(Term term) {
  return map<N>([&](int n) {
    const auto e = exponentials<Number, M>([&](int m) { return term(n, m); });
    const float top = e.top < 0 ? -e.top : e.top;
    return top == infinity() ? e.top : e.top + e.log_sum();
  });
}

}  // namespace graphrun::cuda::tile
