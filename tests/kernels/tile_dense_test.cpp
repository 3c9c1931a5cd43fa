// Products on tiles: with a bias and the step that follows in one, against the steps one by one, bit for bit.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>

#include "graphrun/op.h"
#include "graphrun/params.h"
#include "graphrun/tensor.h"
#include "kernels/cpu/tiles/tile.h"

namespace graphrun::cpu {
namespace {

constexpr std::int64_t kRows = 100, kStride = 112;
constexpr std::size_t kGuard = 64;  // numbers

// The tile has x, `with` and the result; what is beyond them must stay as it is.
template <class Real>
struct Product {
  std::int64_t k, n;
  bool transposed = false;
  std::vector<Real> x, with, w, bias;

  Product(std::int64_t k_, std::int64_t n_) : k(k_), n(n_) {
    std::mt19937 random(static_cast<unsigned>(k * 1000 + n));
    std::uniform_real_distribution<Real> real(-1, 1);
    const auto fill = [&](std::vector<Real>& to, std::int64_t count) {
      to.resize(static_cast<std::size_t>(count));
      for (Real& value : to) value = real(random);
    };
    fill(x, k * kStride);
    fill(with, n * kStride);
    fill(w, k * n);
    fill(bias, n);
    constexpr Real kTiny = std::numeric_limits<Real>::min() / 128;
    const Real odd[] = {Real{0},
                        -Real{0},
                        std::numeric_limits<Real>::infinity(),
                        -std::numeric_limits<Real>::infinity(),
                        std::numeric_limits<Real>::quiet_NaN(),
                        kTiny,
                        -kTiny,
                        Real{1},
                        Real{2}};
    for (std::size_t i = 0; i < std::size(odd); ++i) with[i] = odd[i];
    // Some rows of x are zero, so that sums and signs of zero are compared too, and one is not a number.
    for (std::int64_t f = 0; f < k; ++f) {
      const auto row = static_cast<std::size_t>(f * kStride);
      x[row + 1] = Real{0};
      x[row + 2] = -Real{0};
      x[row + 3] = Real(-1e-30);
      x[row + 4] = f == 0 ? std::numeric_limits<Real>::quiet_NaN() : x[row + 4];
    }
    w[0] = Real(1e-30);
    bias[0] = -Real{0};
  }

  // All features of the result, and all of the tile beside it.
  std::vector<Real> run(Isa isa, bool with_bias, std::string_view op, bool fused, bool over_with) const {
    const std::size_t values = x.size() + 2 * with.size();
    std::vector<Real> tile(values + kGuard, Real{77});
    std::copy(x.begin(), x.end(), tile.begin());
    std::copy(with.begin(), with.end(), tile.begin() + static_cast<std::ptrdiff_t>(x.size()));
    TileContext context;
    context.tile = reinterpret_cast<std::byte*>(tile.data());
    context.rows = kRows;
    context.stride = kStride;
    const auto row = [&](std::int64_t width, std::size_t at) {
      return TileOperand{{dtype_of<Real>(), {kRows, width}, 1}, at * sizeof(Real)};
    };
    const auto shared = [](const Shape& shape, const std::vector<Real>& values_of) {
      return TileOperand{{dtype_of<Real>(), shape, 0}, 0, reinterpret_cast<const std::byte*>(values_of.data())};
    };
    MatmulParams matmul{};
    matmul.transpose_b = transposed;
    const TileOperand other = row(n, x.size());
    const TileOperand out = row(n, over_with ? x.size() : x.size() + with.size());
    // One by one the product needs a place of its own.
    const TileOperand product = fused ? out : row(n, x.size() + with.size());
    const auto make = [&](const TileCall& call) {
      std::string reason;
      const auto step = make_tile_step(call, isa, reason);
      ASSERT_NE(step, nullptr) << reason;
      step(context);
    };
    const Params matmul_params = matmul, none{};
    TileCall call;
    call.op = Op::matmul;
    call.params = &matmul_params;
    call.inputs = {row(k, 0), shared(transposed ? Shape{n, k} : Shape{k, n}, w)};
    call.output = product;
    if (fused) {
      if (with_bias) call.epilogue.bias = reinterpret_cast<const std::byte*>(bias.data());
      call.epilogue.op = find_op(op);
      if (op != "relu") call.epilogue.with = other;
      make(call);
    } else {
      make(call);
      if (with_bias) {
        TileCall add{Op::add, &none, {product, shared({n}, bias)}, product};
        make(add);
      }
      if (!op.empty()) {
        TileCall then{find_op(op).value(), &none, {product}, out};
        if (op != "relu") then.inputs.insert(then.inputs.begin() + 1 - epilogue_input(then.op), other);
        make(then);
      } else if (over_with) {
        std::copy_n(tile.begin() + static_cast<std::ptrdiff_t>(x.size() + with.size()), with.size(),
                    tile.begin() + static_cast<std::ptrdiff_t>(x.size()));
      }
    }
    if (over_with)
      std::fill_n(tile.begin() + static_cast<std::ptrdiff_t>(x.size() + with.size()), with.size(), Real{0});
    return tile;
  }
};

template <class Real>
std::size_t first_difference(const std::vector<Real>& a, const std::vector<Real>& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(&a[i], &b[i], sizeof(Real)) != 0) return i;
  return a.size();
}

class Epilogues : public ::testing::TestWithParam<Isa> {};

template <class Real>
void expect_bits_of_the_step(Isa isa) {
  for (const std::string_view op :
       {"", "relu", "relu_gradient", "tanh_gradient", "sigmoid_gradient", "add", "sub", "mul"}) {
    for (const std::int64_t k : {0, 1, 2, 5, 20, 256}) {
      for (const std::int64_t n : {1, 2, 3, 4, 5, 6, 7, 11, 20}) {
        Product<Real> product(std::max<std::int64_t>(k, 1), n);
        product.k = k;
        for (int variant = 0; variant < 8; ++variant) {
          product.transposed = (variant & 1) != 0;
          const bool bias = (variant & 2) != 0, over_with = (variant & 4) != 0;
          const std::vector<Real> one = product.run(isa, bias, op, true, over_with);
          const std::vector<Real> steps = product.run(isa, bias, op, false, over_with);
          ASSERT_EQ(first_difference(one, steps), one.size())
              << op << ", k " << k << ", n " << n << ", variant " << variant;
        }
      }
    }
  }
}

template <class Real>
void expect_after_the_last_block(Isa isa) {
  for (const std::string_view op : {"", "relu", "tanh_gradient", "sub"}) {
    const Product<Real> product(600, 7);
    EXPECT_EQ(first_difference(product.run(isa, true, op, true, false), product.run(isa, true, op, false, false)),
              product.x.size() + 2 * product.with.size() + kGuard)
        << op;
  }
}

TEST_P(Epilogues, HaveTheBitsOfTheStep) {
  expect_bits_of_the_step<float>(GetParam());
  expect_bits_of_the_step<double>(GetParam());
}

TEST_P(Epilogues, ComeAfterTheLastBlockOfALongProduct) {
  expect_after_the_last_block<float>(GetParam());
  expect_after_the_last_block<double>(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Isas, Epilogues, ::testing::ValuesIn(available_isas()),
                         [](const auto& isa) { return std::string(name_of(isa.param)); });

TEST(EpilogueInput, NamesThePlaceOfTheProduct) {
  EXPECT_EQ(epilogue_input(*find_op("relu")), 0);
  EXPECT_EQ(epilogue_input(Op::sub), 0);
  EXPECT_EQ(epilogue_input(*find_op("tanh_gradient")), 1);
  EXPECT_EQ(epilogue_input(*find_op("tanh")), -1);
  EXPECT_EQ(epilogue_input(static_cast<Op>(9999)), -1);
}

}  // namespace
}  // namespace graphrun::cpu
