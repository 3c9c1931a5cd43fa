// movement.cpp: copies of elements, in runs where both sides are contiguous; batches; random samples, whose bits
// base/random_bits.h defines.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/random_bits.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
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
void copy_run(T* to, std::int64_t to_step, const T* from, std::int64_t from_step, std::int64_t n) {
  if (to_step == 1 && from_step == 1 && n > 16) {  // a call costs more than a short run
    std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
  } else if (to_step == 1 && from_step == 0) {
    std::fill_n(to, n, *from);
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i * to_step] = from[i * from_step];
  }
}

// Copies runs where both sides are contiguous or one element is repeated, or single elements; otherwise transposes
// matrices over the axis along which `to` is contiguous and the one along which `from` is.
template <class T>
void copy_elements(const KernelArgs& args, const IsaTable& table, const void* input, const View& from, const View& to) {
  constexpr std::int64_t kColumns = 32;
  const T* const in = static_cast<const T*>(input) + from.offset;
  T* const out = args.output<T>() + to.offset;
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
  if (runs) {
    dims.add(rows);
    const auto [from_step, to_step] = (dims.rank > 0 ? dims.dim[dims.rank - 1] : Dim<2>{}).stride;
    for_ranges(args.pool, parts, dims.count, kGrain,
               [&, from_step = from_step, to_step = to_step](auto first, auto last) {
                 for_runs(dims, first, last, [&](std::int64_t, const Offsets<2>& at, std::int64_t n) {
                   copy_run(out + at[1], to_step, in + at[0], from_step, n);
                 });
               });
    return;
  }
  auto matrix = transpose_matrix<T>;
  if constexpr (std::is_same_v<T, float>)
    if (std::min(rows.extent, columns.extent) >= 4) matrix = table.transpose;
  const std::int64_t pieces = (columns.extent + kColumns - 1) / kColumns;
  for_ranges(args.pool, parts, dims.count * pieces, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t item = first; item < last;) {
      const std::int64_t index = pieces == 1 ? item : item / pieces, piece = item - index * pieces;
      const std::int64_t count = std::min(pieces - piece, last - item);
      const std::int64_t begin = piece * kColumns, n = std::min(count * kColumns, columns.extent - begin);
      const Offsets<2> at = dims.offsets(index);
      matrix(out + at[1] + begin * columns.stride[1], columns.stride[1], in + at[0] + begin, rows.stride[0],
             rows.extent, n);
      item += count;
    }
  });
}

void copy(const KernelArgs& args, const IsaTable& table, const void* in, const View& from, const View& to) {
  switch (size_of(args.out_type.dtype)) {
    case 1:
      return copy_elements<std::uint8_t>(args, table, in, from, to);
    case 4:
      return copy_elements<float>(args, table, in, from, to);
    default:
      return copy_elements<std::uint64_t>(args, table, in, from, to);
  }
}

void rearrange(const KernelArgs& args, const IsaTable& table) {
  const auto* pad = args.params.get_if<PadParams>();
  const double value = pad != nullptr ? pad->value : 0;
  const auto narrow = static_cast<float>(value);
  const void* const number = size_of(args.out_type.dtype) == sizeof value ? static_cast<const void*>(&value) : &narrow;
  for_each_copy(
      args.params, args.inputs, [&](int k) { return args.input_view(k); }, args.output_view(),
      [&](int k, const View& from, const View& to) { copy(args, table, k < 0 ? number : args.in[k], from, to); });
}

// Each part of the samples adds its windows in order.
template <class Real>
void fold_of(const KernelArgs& args) {
  const auto& params = args.params.as<WindowParams>();
  const View out = args.output_view(), to = windowed(out, params), from = args.input_view(0);
  const int leading = out.extents.rank() - 1 - params.axes;
  std::int64_t samples = 1;
  for (int axis = 0; axis < leading; ++axis) samples *= out.extents[axis];
  if (samples == 0) return;
  const std::int64_t elements = out.extents.elements() / samples;
  Dims<2> windows;
  for (int axis = leading; axis < to.extents.rank(); ++axis) windows.add(axis_of<2>({to, from}, axis));
  const std::int64_t stride = windows.rank > 0 ? windows.dim[windows.rank - 1].stride[0] : 0;
  for_ranges(args.pool, parts_for(2 * samples * windows.count), samples, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t sample = first; sample < last; ++sample) {
      Real* const sums = args.output<Real>() + sample * elements;
      const Real* const terms = args.input<Real>(0) + sample * windows.count;
      std::fill_n(sums, elements, Real{0});
      for_runs(windows, 0, windows.count, [&](std::int64_t, const Offsets<2>& at, std::int64_t n) {
        for (std::int64_t i = 0; i < n; ++i) sums[at[0] + i * stride] += terms[at[1] + i];
      });
    }
  });
}
void fold(const KernelArgs& args, const IsaTable& table) {
  for_type(args.in_type[0].dtype, table, [&]<class Real>(Real, const IsaTableOf<Real>&) { fold_of<Real>(args); });
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
    if (known)
      std::memcpy(to, args.input<std::byte>(0) + static_cast<std::size_t>(indices[i]) * row, row);
    else
      std::memset(to, 0, row);
  }
}

// ---- batches, random samples ---------------------------------------------------------------------------------------

// Rows of a data set in Layout::codes.
template <Isa isa>
void decode(const KernelArgs& args, const MinibatchParams& params, const Batch& batch, std::int64_t width) {
  float values[256];
  for (int code = 0; code < 256; ++code) values[code] = decoded(static_cast<std::uint8_t>(code), params.divisor);
  const auto row = [&](std::int64_t r, std::int64_t number) {
    const std::uint8_t* const codes = args.input<std::uint8_t>(0) + number * width;
    float* const to = args.output<float>() + r * width;
    for (std::int64_t i = 0; i < width; ++i) to[i] = values[codes[i]];
  };
  for_ranges(args.pool, parts_for(batch.count * (64 + width)), batch.count, 1, [&](auto first, auto last) {
    if (params.shuffle) return for_shuffled(isa_table(isa), params, batch, first, last, row);
    for (std::int64_t r = first; r < last; ++r) row(r, batch.first + r);
  });
}

template <Isa isa>
void minibatch(const KernelArgs& args) {
  const MinibatchParams params = batch_params(args, 2);
  const Batch batch = batch_of(params, counter(args, 1));
  const std::size_t row = args.out_type.bytes() / static_cast<std::size_t>(params.rows());
  const std::size_t bytes = static_cast<std::size_t>(batch.count) * row;
  if (params.divisor > 0) {
    decode<isa>(args, params, batch, static_cast<std::int64_t>(row / sizeof(float)));
  } else if (params.shuffle) {
    const int parts = parts_for(batch.count * (64 + static_cast<std::int64_t>(row / sizeof(float))));
    for_ranges(args.pool, parts, batch.count, 1, [&](std::int64_t first, std::int64_t last) {
      for_shuffled(isa_table(isa), params, batch, first, last, [&](std::int64_t r, std::int64_t number) {
        std::memcpy(args.output<std::byte>() + static_cast<std::size_t>(r) * row,
                    args.input<std::byte>(0) + static_cast<std::size_t>(number) * row, row);
      });
    });
  } else {
    const std::byte* from = args.input<std::byte>(0) + static_cast<std::size_t>(batch.first) * row;
    const auto size = static_cast<std::int64_t>(bytes);
    for_ranges(args.pool, parts_for(size / 4), size, kGrain * 4, [&](std::int64_t first, std::int64_t last) {
      std::memcpy(args.output<std::byte>() + first, from + first, static_cast<std::size_t>(last - first));
    });
  }
  std::memset(args.output<std::byte>() + bytes, 0, args.out_type.bytes() - bytes);
}

// Dropout of f64; the elements that f32 drops, too.
void drop_wide(const KernelArgs& args, const RandomParams& params, const IsaTable& table, RandomDraw part) {
  float words[kGrain];
  part.out = words;
  for (const std::int64_t end = part.first + part.rows; part.first < end; part.first += kGrain) {
    part.rows = std::min(kGrain, end - part.first);
    table.draw(part);
    for (std::int64_t i = 0; i < part.rows; ++i) {
      const bool drops = bits::unit(std::bit_cast<bits::u32>(words[i])) < params.a;
      args.output<double>()[part.first + i] = drops ? 0 : args.input<double>(0)[part.first + i] / (1 - params.a);
    }
  }
}

template <Op op>
void draw(const KernelArgs& args, const IsaTable& table) {
  const float* const x = op == Op::dropout ? args.input<float>(0) : nullptr;
  const std::int64_t n = args.valid_elements(args.out_type);
  for_ranges(args.pool, parts_for(8 * n), n, kGrain, [&](std::int64_t first, std::int64_t last) {
    const RandomParams& params = args.params.as<RandomParams>();
    RandomDraw part{.key = params.key, .step = counter(args, args.inputs - 1), .first = first, .rows = last - first};
    if (args.out_type.dtype == DType::f64) return drop_wide(args, params, table, part);
    part.out = args.output<float>() + first;
    part.x = x == nullptr ? x : x + first;
    fill_random(table, op, params, part);
  });
}

constexpr Entry kMovementKernels[] = {
    entry<rearrange>(Op::broadcast_to),
    entry<rearrange>(Op::transpose),
    entry<rearrange>(Op::slice),
    entry<rearrange>(Op::pad),
    entry<rearrange>(Op::concat),
    entry<rearrange>(family_op::windows),
    entry<fold>(family_op::fold),
    entry<one_hot>(family_op::one_hot),
    entry<gather>(family_op::gather),
    // Fills all rows of the batch itself.
    {Op::minibatch, {minibatch<Isa::plain>, minibatch<Isa::avx2>, minibatch<Isa::avx512>}},
    {family_op::varying_minibatch, {minibatch<Isa::plain>, minibatch<Isa::avx2>, minibatch<Isa::avx512>}},
    entry<draw<family_op::random_uniform>>(family_op::random_uniform),
    entry<draw<family_op::random_normal>>(family_op::random_normal),
    entry<draw<Op::dropout>>(Op::dropout),
};

}  // namespace

void fill_random(const IsaTable& table, Op op, const RandomParams& params, RandomDraw draw) {
  draw.key = params.key;
  if (op == Op::dropout) {
    draw.what = RandomDraw::dropout;
    draw.dropped = static_cast<std::int32_t>(std::ceil(params.a * 0x1p24));  // unit(word) < rate
    draw.kept = static_cast<float>(1 - params.a);
    if (params.a == 0) {  // keeps every element
      const std::int64_t elements = draw.stride > 0 ? draw.width * draw.stride : draw.rows;
      if (draw.out != draw.x) std::copy_n(draw.x, elements, draw.out);
      return;
    }
  } else if (op == family_op::random_uniform && params.a == 0 && params.b == 1) {
    draw.what = RandomDraw::units;
  }
  table.draw(draw);
  if (draw.what != RandomDraw::words) return;
  const auto number = op == family_op::random_normal ? bits::normal : bits::uniform;
  for (std::int64_t f = 0; f < draw.width; ++f) {
    float* const line = draw.out + f * draw.stride;
    for (std::int64_t i = 0; i < draw.rows; ++i)
      line[i] = number(std::bit_cast<bits::u32>(line[i]), params.a, params.b);
  }
}

constinit const std::span<const Entry> movement_kernels = kMovementKernels;

}  // namespace graphrun::cpu
