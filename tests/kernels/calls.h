// calls.h: calls a kernel on tensors made on the spot, for the tests of kernels.
// Contract: operands are filled with reproducible numbers, rows past the valid ones with zeros; outputs start as
// garbage, so that an element that is not written shows.
// Leaves to others: what to expect.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "graphrun/tensor.h"
#include "kernels/kernel.h"

namespace graphrun::test {

inline TensorType type_of(Shape shape, DType dtype = DType::f32, std::int64_t rows = 0) {
  return {dtype, shape, rows};
}

struct Call {
  std::vector<TensorType> types;
  std::vector<HostTensor> operands;
  TensorType out_type;
  Params params;
  std::int64_t capacity = 0;
  std::int32_t samples = 0;
  std::size_t workspace = 0;  // bytes; they start as garbage too
  cpu::Pool* pool = nullptr;

  std::int64_t valid_elements(const TensorType& type) const {
    if (type.rows == 0 || type.shape[0] == 0) return type.shape.elements();
    return type.shape.elements() / type.shape[0] * type.rows * samples;
  }

  // Adds an operand with numbers in [low, high]; booleans are coin tosses.
  HostTensor& operand(const TensorType& type, std::mt19937& random, float low = -2, float high = 2) {
    HostTensor tensor(type.dtype, type.shape);
    const auto valid = static_cast<std::size_t>(valid_elements(type));
    std::uniform_real_distribution<float> real(low, high);
    for (std::size_t i = 0; i < valid; ++i) {
      switch (type.dtype) {
        case DType::f32:
          tensor.elements<float>()[i] = real(random);
          break;
        case DType::f64:
          tensor.elements<double>()[i] = static_cast<double>(real(random));
          break;
        case DType::i32:
          tensor.elements<std::int32_t>()[i] = static_cast<std::int32_t>(random() % 100) - 50;
          break;
        case DType::u64:
          tensor.elements<std::uint64_t>()[i] = random() % 100;
          break;
        case DType::boolean:
          tensor.elements<std::uint8_t>()[i] = static_cast<std::uint8_t>(random() % 2);
          break;
      }
    }
    types.push_back(type);
    operands.push_back(std::move(tensor));
    return operands.back();
  }

  // The output of `kernel`. With in_place it starts as operand 0 and lies in its place.
  HostTensor run(KernelFn kernel, bool in_place = false) const {
    HostTensor out(out_type.dtype, out_type.shape);
    std::fill(out.bytes().begin(), out.bytes().end(), std::byte{0x5a});
    KernelArgs args;
    for (const HostTensor& operand : operands) {
      args.in[args.inputs] = operand.bytes().data();
      args.in_type[args.inputs] = types[static_cast<std::size_t>(args.inputs)];
      ++args.inputs;
    }
    if (in_place) {
      std::copy(operands[0].bytes().begin(), operands[0].bytes().end(), out.bytes().begin());
      args.in[0] = out.bytes().data();
    }
    args.out = out.bytes().data();
    args.out_type = out_type;
    args.row_count = capacity != 0 ? &samples : nullptr;
    args.capacity = capacity;
    args.params = params;
    args.pool = pool;
    std::vector<std::byte> scratch(workspace, std::byte{0xff});
    if (workspace > 0) args.workspace = scratch.data();
    args.workspace_bytes = workspace;
    kernel(args);
    return out;
  }
};

inline bool same_bits(const HostTensor& a, const HostTensor& b) {
  return std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin(), b.bytes().end());
}

inline double element(const HostTensor& tensor, std::size_t i) {
  switch (tensor.dtype()) {
    case DType::f32:
      return static_cast<double>(tensor.elements<float>()[i]);
    case DType::f64:
      return tensor.elements<double>()[i];
    case DType::i32:
      return tensor.elements<std::int32_t>()[i];
    case DType::u64:
      return static_cast<double>(tensor.elements<std::uint64_t>()[i]);
    case DType::boolean:
      return tensor.elements<std::uint8_t>()[i];
  }
  return 0;
}

// |got - want| <= relative * |want| + absolute for each element; what lies past the valid ones is exactly zero.
inline void expect_close(const Call& call, const HostTensor& got, const HostTensor& want, double relative,
                         double absolute, const std::string& what) {
  const auto n = static_cast<std::size_t>(call.out_type.shape.elements());
  const auto valid = static_cast<std::size_t>(call.valid_elements(call.out_type));
  for (std::size_t i = 0; i < n; ++i) {
    const double g = element(got, i);
    const double w = element(want, i);
    if (i >= valid) {
      ASSERT_EQ(g, 0) << what << ": element " << i << " of an invalid row";
      ASSERT_EQ(w, 0) << what << ": element " << i << " of an invalid row of the reference";
    } else if (g != g || w != w) {
      ASSERT_EQ(g != g, w != w) << what << ": element " << i;
    } else {
      ASSERT_LE(g == w ? 0 : std::abs(g - w), relative * std::abs(w) + absolute) << what << ": element " << i;
    }
  }
}

}  // namespace graphrun::test
