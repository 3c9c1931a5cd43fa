// rearrange.cpp: broadcast_to, transpose, slice, pad, concat, one_hot, gather: copies of elements, in runs where both
// sides are contiguous.
#include <algorithm>
#include <cstring>
#include <utility>

#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "kernels/cpu/batch/families.h"

namespace graphrun::cpu {
namespace {

// (rows, columns) to (columns, rows), in blocks that fit the L1 cache; strides are those between rows.
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

template <class T>
using MatrixFn = void (*)(T* to, std::int64_t to_stride, const T* from, std::int64_t from_stride, std::int64_t rows,
                          std::int64_t columns);

// Copies runs where both sides are contiguous or one element is repeated; otherwise transposes matrices over the axis
// along which `to` is contiguous and the one along which `from` is.
template <class T>
void copy_elements(const KernelArgs& args, const T* in, const View& from, T* out, const View& to, MatrixFn<T> matrix) {
  constexpr std::int64_t kColumns = 32;
  in += from.offset;
  out += to.offset;
  Dims<2> dims = merged<2>({from, to});
  if (dims.count == 0) return;
  const int parts = parts_for(2 * dims.count);
  Dim<2> rows = dims.remove_last(), columns;
  bool runs = rows.extent == 1 || (rows.stride[0] <= 1 && rows.stride[1] == 1);
  if (!runs && rows.stride[1] != 1 && rows.stride[0] != 1) {  // neither side is contiguous: element by element
    dims.add(std::exchange(rows, {}));
    runs = true;
  } else if (!runs && rows.stride[1] != 1) {
    std::swap(rows, columns);
  } else if (!runs) {
    for (int d = dims.rank - 1; d >= 0 && columns.extent == 1; --d)
      if (dims.dim[d].stride[0] == 1) columns = dims.remove(d);
  }
  if (std::min(rows.extent, columns.extent) < 4) matrix = transpose_matrix<T>;

  const std::int64_t length = runs ? rows.extent : columns.extent;
  const std::int64_t cuts = std::max<std::int64_t>(parts / dims.count, 1);
  const std::int64_t width = runs ? ((length + cuts - 1) / cuts + kGrain - 1) / kGrain * kGrain : kColumns;
  const std::int64_t pieces = (length + width - 1) / width;
  for_ranges(args.pool, parts, dims.count * pieces, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t item = first; item < last;) {
      const std::int64_t index = pieces == 1 ? item : item / pieces, piece = item - index * pieces;
      const std::int64_t count = std::min(pieces - piece, last - item);
      const std::int64_t begin = piece * width, n = std::min(count * width, length - begin);
      const Offsets<2> at = dims.offsets(index);
      if (!runs)
        matrix(out + at[1] + begin * columns.stride[1], columns.stride[1], in + at[0] + begin, rows.stride[0],
               rows.extent, n);
      else if (rows.stride[0] == 0)
        std::fill_n(out + at[1] + begin, n, in[at[0]]);
      else
        std::memcpy(out + at[1] + begin, in + at[0] + begin, static_cast<std::size_t>(n) * sizeof(T));
      item += count;
    }
  });
}

void copy(const KernelArgs& args, const IsaTable& table, const void* in, const View& from, const View& to) {
  const auto of = [&](auto zero, auto matrix) {
    using T = decltype(zero);
    copy_elements<T>(args, static_cast<const T*>(in), from, args.output<T>(), to, matrix);
  };
  switch (size_of(args.out_type.dtype)) {
    case 1:
      return of(std::uint8_t{}, transpose_matrix<std::uint8_t>);
    case 4:
      return of(float{}, table.transpose);
    default:
      return of(std::uint64_t{}, transpose_matrix<std::uint64_t>);
  }
}

void rearrange(const KernelArgs& args, const IsaTable& table) {
  const auto* pad = args.params.get_if<PadParams>();
  const float number = pad != nullptr ? static_cast<float>(pad->value) : 0;
  for_each_copy(
      args.params, args.inputs, [&](int k) { return args.input_view(k); }, args.output_view(),
      [&](int k, const View& from, const View& to) { copy(args, table, k < 0 ? &number : args.in[k], from, to); });
}

void one_hot(const KernelArgs& args, const IsaTable&) {
  const std::int64_t classes = args.out_type.shape[args.out_type.shape.rank() - 1];
  const std::int64_t n = args.valid_elements(args.in_type[0]);
  const std::int32_t* in = args.input<std::int32_t>(0);
  float* out = args.output<float>();
  for_ranges(args.pool, parts_for(n * classes), n, 1, [&](std::int64_t first, std::int64_t last) {
    std::fill_n(out + first * classes, (last - first) * classes, 0.0f);
    for (std::int64_t i = first; i < last; ++i) {
      if (in[i] >= 0 && in[i] < classes) out[i * classes + in[i]] = 1;
    }
  });
}

void gather(const KernelArgs& args, const IsaTable&) {
  const Shape& table = args.in_type[0].shape;
  const std::size_t row = static_cast<std::size_t>(table[1]) * size_of(args.out_type.dtype);
  const std::int64_t n = args.valid_elements(args.in_type[1]);
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
}

constexpr Entry kRearrangeKernels[] = {entry<rearrange>(Op::broadcast_to), entry<rearrange>(Op::transpose),
                                       entry<rearrange>(Op::slice),        entry<rearrange>(Op::pad),
                                       entry<rearrange>(Op::concat),       entry<one_hot>(family_op::one_hot),
                                       entry<gather>(family_op::gather)};

}  // namespace

constinit const std::span<const Entry> rearrange_kernels = kRearrangeKernels;

}  // namespace graphrun::cpu
