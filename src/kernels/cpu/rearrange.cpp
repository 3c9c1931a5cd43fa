// rearrange.cpp: transpose, slice, pad, concat, one_hot, gather: elements put elsewhere, as runs of bytes where they
// stay together.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/families.h"

namespace graphrun::cpu {
namespace {

// An operand seen along one axis: `outer` blocks of `extent` entries of `inner` bytes each.
struct Along {
  std::int64_t outer, extent;
  std::size_t inner;

  Along(const KernelArgs& args, const TensorType& type, int axis) : outer(1), extent(0), inner(size_of(type.dtype)) {
    const auto valid = [&](int d) { return d == 0 ? args.rows_of(type) : type.shape[d]; };
    for (int d = 0; d < axis; ++d) outer *= valid(d);
    extent = valid(axis);
    for (int d = axis + 1; d < type.shape.rank(); ++d) inner *= static_cast<std::size_t>(type.shape[d]);
  }
  std::size_t block() const { return static_cast<std::size_t>(extent) * inner; }
};

void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

void slice(const KernelArgs& args) {
  const auto& params = std::get<SliceParams>(args.params);
  const Along in(args, args.in_type[0], params.axis);
  const Along out(args, args.out_type, params.axis);
  const std::byte* from = args.input<std::byte>(0) + static_cast<std::size_t>(params.start) * in.inner;
  std::byte* to = args.output<std::byte>();
  for (std::int64_t i = 0; i < out.outer; ++i, from += in.block(), to += out.block()) copy(to, from, out.block());
  clear_invalid_rows(args);
}

void pad(const KernelArgs& args) {
  const auto& params = std::get<PadParams>(args.params);
  const Along in(args, args.in_type[0], params.axis);
  const Along out(args, args.out_type, params.axis);
  const auto value = static_cast<float>(params.value);
  const std::int64_t before = params.before * static_cast<std::int64_t>(in.inner / sizeof(float));
  const std::int64_t inside = static_cast<std::int64_t>(in.block() / sizeof(float));
  const std::int64_t whole = static_cast<std::int64_t>(out.block() / sizeof(float));
  const float* from = args.input<float>(0);
  float* to = args.output<float>();
  for (std::int64_t i = 0; i < out.outer; ++i, from += inside, to += whole) {
    std::fill(to, to + before, value);
    std::copy_n(from, inside, to + before);
    std::fill(to + before + inside, to + whole, value);
  }
  clear_invalid_rows(args);
}

void concat(const KernelArgs& args) {
  const int axis = std::get<AxisParams>(args.params).axis;
  const Along out(args, args.out_type, axis);
  std::byte* column = args.output<std::byte>();
  for (int k = 0; k < args.inputs; ++k) {
    const Along in(args, args.in_type[k], axis);
    const std::byte* from = args.input<std::byte>(k);
    std::byte* to = column;
    for (std::int64_t i = 0; i < in.outer; ++i, from += in.block(), to += out.block()) copy(to, from, in.block());
    column += in.block();
  }
  clear_invalid_rows(args);
}

template <class T>
void transpose_elements(const KernelArgs& args) {
  const auto& params = std::get<PermuteParams>(args.params);
  const Shape& in = args.in_type[0].shape;
  const int rank = in.rank();
  std::int64_t of_axis[kMaxRank + 1];
  std::int64_t step = 1;
  for (int d = rank - 1; d >= 0; --d) {
    of_axis[d] = step;
    step *= in[d];
  }
  std::int64_t extent[kMaxRank];
  std::int64_t stride[kMaxRank];
  std::int64_t total = 1;
  for (int d = 0; d < rank; ++d) {
    extent[d] = d == 0 ? args.rows_of(args.out_type) : args.out_type.shape[d];
    stride[d] = of_axis[params.axes[d]];
    total *= extent[d];
  }
  const T* from = args.input<T>(0);
  T* to = args.output<T>();
  if (rank == 0 && total == 1) *to = *from;
  if (rank > 0 && total > 0) {
    const std::int64_t width = extent[rank - 1];
    std::int64_t index[kMaxRank] = {};
    for (std::int64_t done = 0; done < total; done += width, to += width) {
      for (std::int64_t j = 0; j < width; ++j) to[j] = from[j * stride[rank - 1]];
      for (int d = rank - 2; d >= 0; --d) {
        from += stride[d];
        if (++index[d] < extent[d]) break;
        from -= stride[d] * extent[d];
        index[d] = 0;
      }
    }
  }
  clear_invalid_rows(args);
}

void transpose(const KernelArgs& args) {
  switch (size_of(args.out_type.dtype)) {
    case 1:
      return transpose_elements<std::uint8_t>(args);
    case 4:
      return transpose_elements<std::uint32_t>(args);
    default:
      return transpose_elements<std::uint64_t>(args);
  }
}

void one_hot(const KernelArgs& args) {
  const std::int64_t classes = args.out_type.shape[args.out_type.shape.rank() - 1];
  const std::int64_t n = valid_elements(args, args.in_type[0]);
  const std::int32_t* in = args.input<std::int32_t>(0);
  float* out = args.output<float>();
  std::fill_n(out, n * classes, 0.0f);
  for (std::int64_t i = 0; i < n; ++i) {
    if (in[i] >= 0 && in[i] < classes) out[i * classes + in[i]] = 1;
  }
  clear_invalid_rows(args);
}

void gather(const KernelArgs& args) {
  const Shape& table = args.in_type[0].shape;
  const std::size_t row = static_cast<std::size_t>(table[1]) * size_of(args.out_type.dtype);
  const std::int64_t n = valid_elements(args, args.in_type[1]);
  const std::int32_t* indices = args.input<std::int32_t>(1);
  std::byte* to = args.output<std::byte>();
  for (std::int64_t i = 0; i < n; ++i, to += row) {
    if (row == 0) continue;
    const bool known = indices[i] >= 0 && indices[i] < table[0];
    if (known) {
      std::memcpy(to, args.input<std::byte>(0) + static_cast<std::size_t>(indices[i]) * row, row);
    } else {
      std::memset(to, 0, row);
    }
  }
  clear_invalid_rows(args);
}

}  // namespace

KernelFn rearrange_kernel(std::string_view op) {
  if (op == "transpose") return transpose;
  if (op == "slice") return slice;
  if (op == "pad") return pad;
  if (op == "concat") return concat;
  if (op == "one_hot") return one_hot;
  if (op == "gather") return gather;
  return nullptr;
}

}  // namespace graphrun::cpu
