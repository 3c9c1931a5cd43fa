// rearrange.cpp: transpose, slice, pad, concat, one_hot, gather: elements put elsewhere, as runs of bytes where they
// stay together.
#include <algorithm>
#include <cstring>

#include "graphrun/op.h"
#include "graphrun/params/axes.h"
#include "graphrun/params/movement.h"
#include "kernels/cpu/batch/families.h"

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

// Calls f(i) for each block i of the result.
template <class F>
void for_blocks(const KernelArgs& args, const Along& out, F&& f) {
  const auto words = static_cast<std::int64_t>(out.block() / 4) + 16;
  for_ranges(args, parts_for(out.outer * words), out.outer, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) f(static_cast<std::size_t>(i));
  });
}

void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

void slice(const KernelArgs& args) {
  const auto& params = args.params.as<SliceParams>();
  const Along in(args, args.in_type[0], params.axis);
  const Along out(args, args.out_type, params.axis);
  const std::byte* from = args.input<std::byte>(0) + static_cast<std::size_t>(params.start) * in.inner;
  std::byte* to = args.output<std::byte>();
  for_blocks(args, out, [&](std::size_t i) { copy(to + i * out.block(), from + i * in.block(), out.block()); });
  clear_invalid_rows(args);
}

void pad(const KernelArgs& args) {
  const auto& params = args.params.as<PadParams>();
  const Along in(args, args.in_type[0], params.axis);
  const Along out(args, args.out_type, params.axis);
  const auto value = static_cast<float>(params.value);
  const std::int64_t before = params.before * static_cast<std::int64_t>(in.inner / sizeof(float));
  const std::int64_t inside = static_cast<std::int64_t>(in.block() / sizeof(float));
  const std::int64_t whole = static_cast<std::int64_t>(out.block() / sizeof(float));
  const float* from = args.input<float>(0);
  float* to = args.output<float>();
  for_blocks(args, out, [&](std::size_t i) {
    float* const begin = to + static_cast<std::int64_t>(i) * whole;
    std::fill(begin, begin + before, value);
    std::copy_n(from + static_cast<std::int64_t>(i) * inside, inside, begin + before);
    std::fill(begin + before + inside, begin + whole, value);
  });
  clear_invalid_rows(args);
}

void concat(const KernelArgs& args) {
  const int axis = args.params.as<AxisParams>().axis;
  const Along out(args, args.out_type, axis);
  std::byte* column = args.output<std::byte>();
  for (int k = 0; k < args.inputs; ++k) {
    const Along in(args, args.in_type[k], axis);
    const std::byte* from = args.input<std::byte>(k);
    for_blocks(args, in, [&](std::size_t i) { copy(column + i * out.block(), from + i * in.block(), in.block()); });
    column += in.block();
  }
  clear_invalid_rows(args);
}

// ---- transpose ----------------------------------------------------------------------------------------------------

// (rows, columns) to (columns, rows), in blocks that the nearest cache holds; strides are those from a row to the next.
template <class T>
void transpose_matrix(T* to, std::int64_t to_stride, const T* from, std::int64_t from_stride, std::int64_t rows,
                      std::int64_t columns) {
  constexpr std::int64_t kBlock = 32;
  for (std::int64_t r0 = 0; r0 < rows; r0 += kBlock) {
    const std::int64_t r1 = std::min(r0 + kBlock, rows);
    for (std::int64_t c0 = 0; c0 < columns; c0 += kBlock) {
      const std::int64_t c1 = std::min(c0 + kBlock, columns);
      for (std::int64_t c = c0; c < c1; ++c)
        for (std::int64_t r = r0; r < r1; ++r) to[c * to_stride + r] = from[r * from_stride + c];
    }
  }
}

// The axes of the result, those of extent 1 left out and those that stay neighbours as one.
struct Permuted {
  int rank = 0;
  std::int64_t extent[kMaxRank], from[kMaxRank], to[kMaxRank];  // steps in the operand and in the result
  std::int64_t total = 1;

  explicit Permuted(const KernelArgs& args) {
    const auto& params = args.params.as<PermuteParams>();
    const Shape& in = args.in_type[0].shape;
    std::int64_t of_axis[kMaxRank + 1];
    std::int64_t step = 1;
    for (int d = in.rank() - 1; d >= 0; --d) {
      of_axis[d] = step;
      step *= in[d];
    }
    for (int d = 0; d < in.rank(); ++d) {
      const std::int64_t n = d == 0 ? args.rows_of(args.out_type) : args.out_type.shape[d];
      total *= n;
      if (n == 1) continue;
      const std::int64_t stride = of_axis[params.axes[d]];
      if (rank > 0 && from[rank - 1] == stride * n) {
        extent[rank - 1] *= n;
        from[rank - 1] = stride;
      } else {
        extent[rank] = n;
        from[rank++] = stride;
      }
    }
    step = 1;
    for (int d = rank - 1; d >= 0; --d) {
      to[d] = step;
      step *= extent[d];
    }
  }
  void leave_out(int axis) {
    --rank;
    for (int d = axis; d < rank; ++d) {
      extent[d] = extent[d + 1];
      from[d] = from[d + 1];
      to[d] = to[d + 1];
    }
  }
  struct Offsets {
    std::int64_t from = 0, to = 0;
  };
  Offsets at(std::int64_t index) const {
    Offsets offsets;
    for (int d = rank - 1; d >= 0; --d) {
      const std::int64_t i = index % extent[d];
      index /= extent[d];
      offsets.from += i * from[d];
      offsets.to += i * to[d];
    }
    return offsets;
  }
};

// Runs where the last axis stays; else matrices: of the last axis and the one that was the last.
template <class T>
void transpose_elements(const KernelArgs& args,
                        void (*matrix)(T*, std::int64_t, const T*, std::int64_t, std::int64_t, std::int64_t)) {
  Permuted axes(args);
  const T* const from = args.input<T>(0);
  T* const to = args.output<T>();
  const int parts = parts_for(2 * axes.total);
  if (axes.total > 0 && axes.rank == 0) {
    *to = *from;
  } else if (axes.total > 0 && axes.from[axes.rank - 1] == 1) {
    const std::int64_t run = axes.extent[axes.rank - 1];
    axes.leave_out(axes.rank - 1);
    for_ranges(args, parts, axes.total / run, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        const Permuted::Offsets at = axes.at(i);
        std::memcpy(to + at.to, from + at.from, static_cast<std::size_t>(run) * sizeof(T));
      }
    });
  } else if (axes.total > 0) {
    constexpr std::int64_t kColumns = 32;
    int was_last = 0;
    while (axes.from[was_last] != 1) ++was_last;
    const std::int64_t columns = axes.extent[was_last], to_stride = axes.to[was_last];
    const std::int64_t rows = axes.extent[axes.rank - 1], from_stride = axes.from[axes.rank - 1];
    axes.leave_out(axes.rank - 1);
    axes.leave_out(was_last);
    if (std::min(rows, columns) < 4) matrix = transpose_matrix<T>;
    const std::int64_t blocks = (columns + kColumns - 1) / kColumns;
    for_ranges(args, parts, axes.total / (rows * columns) * blocks, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t item = first; item < last;) {
        const Permuted::Offsets at = axes.at(item / blocks);
        const std::int64_t column = item % blocks * kColumns;
        const std::int64_t count = std::min(blocks - item % blocks, last - item);
        matrix(to + at.to + column * to_stride, to_stride, from + at.from + column, from_stride, rows,
               std::min(count * kColumns, columns - column));
        item += count;
      }
    });
  }
  clear_invalid_rows(args);
}

template <Isa isa>
void transpose(const KernelArgs& args) {
  switch (size_of(args.out_type.dtype)) {
    case 1:
      return transpose_elements<std::uint8_t>(args, transpose_matrix<std::uint8_t>);
    case 4:
      return transpose_elements<float>(args, table_of<isa>().transpose);
    default:
      return transpose_elements<std::uint64_t>(args, transpose_matrix<std::uint64_t>);
  }
}

void one_hot(const KernelArgs& args) {
  const std::int64_t classes = args.out_type.shape[args.out_type.shape.rank() - 1];
  const std::int64_t n = valid_elements(args, args.in_type[0]);
  const std::int32_t* in = args.input<std::int32_t>(0);
  float* out = args.output<float>();
  for_ranges(args, parts_for(n * classes), n, 1, [&](std::int64_t first, std::int64_t last) {
    std::fill_n(out + first * classes, (last - first) * classes, 0.0f);
    for (std::int64_t i = first; i < last; ++i) {
      if (in[i] >= 0 && in[i] < classes) out[i * classes + in[i]] = 1;
    }
  });
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

KernelFn rearrange_kernel(Op op, Isa isa) {
  if (op == Op::transpose) return for_isa(isa, []<Isa i>() -> KernelFn { return transpose<i>; });
  if (op == Op::slice) return slice;
  if (op == Op::pad) return pad;
  if (op == Op::concat) return concat;
  if (op == Op::one_hot) return one_hot;
  if (op == Op::gather) return gather;
  return nullptr;
}

}  // namespace graphrun::cpu
