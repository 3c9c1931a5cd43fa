// tile_moves.cpp: copies into, out of and within a tile: loads and stores, minibatches, rearranged features.
#include <algorithm>
#include <array>
#include <cstring>

#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "kernels/cpu/batch/families.h"
#include "kernels/cpu/tiles/tile_steps.h"

namespace graphrun::cpu {
namespace {

using i64 = std::int64_t;

// (rows, columns) to (columns, rows); strides are those between rows.
template <class T>
void transpose(const IsaTable& table, T* to, i64 to_stride, const T* from, i64 from_stride, i64 rows, i64 columns) {
  if ((rows == 1 && to_stride == 1) || (columns == 1 && from_stride == 1)) {
    std::copy_n(from, rows * columns, to);
    return;
  }
  if constexpr (std::is_same_v<T, float>) return table.transpose(to, to_stride, from, from_stride, rows, columns);
  if constexpr (std::is_same_v<T, double>)
    return table.wide->transpose(to, to_stride, from, from_stride, rows, columns);
  (void)table;
  for (i64 c = 0; c < columns; ++c)
    for (i64 r = 0; r < rows; ++r) to[c * to_stride + r] = from[r * from_stride + c];
}

// Loads contiguous rows of `width` elements from the arena; zeroes the lanes after the last row.
template <class T>
void load_rows(const IsaTable& table, T* tile, const T* from, i64 width, const TileContext& c) {
  transpose(table, tile, c.stride, from, width, c.rows, width);
  if (c.rows == c.stride) return;
  for (i64 f = 0; f < width; ++f) std::fill(tile + f * c.stride + c.rows, tile + (f + 1) * c.stride, T{});
}

// Copies from a data set of vectors; every tile starts at a vector.
TileStep copy_vectors(const DataVectors& data, const TileOperand& out) {
  return [data, out, width = feature_count(out.type)](const TileContext& c) {
    float* const tile = written<float>(out, c);
    const float* from = reinterpret_cast<const float*>(first_of(data, c));
    for (i64 r = 0; r < c.stride; r += kLanes)
      for (i64 f = 0; f < width; ++f, from += kLanes)
        std::memcpy(tile + f * c.stride + r, from, kLanes * sizeof(float));
  };
}

template <class T>
TileStep minibatch(const TileCall& call, const IsaTable& table) {
  const auto& of = call.params->as<MinibatchParams>();
  std::array<T, 256> decoded_values = {};  // for data in Layout::codes
  for (int code = 0; code < 256 && of.divisor > 0; ++code)
    decoded_values[static_cast<std::size_t>(code)] =
        static_cast<T>(decoded(static_cast<std::uint8_t>(code), of.divisor));
  return [source = call.inputs[0], counter = call.inputs[1], out = call.output, &table, values = decoded_values,
          params = of, width = feature_count(call.output.type)](const TileContext& c) {
    const Batch batch = batch_of(params, *read<std::uint64_t>(counter, c));
    const T* const data = read<T>(source, c);
    const std::uint8_t* const codes = read<std::uint8_t>(source, c);
    T* const tile = written<T>(out, c);
    TileContext valid = c;  // the phase sets the number of rows; this data set may have fewer
    valid.rows = std::clamp<i64>(batch.count - c.first, 0, c.rows);
    const bool decodes = params.divisor > 0;
    if (!params.shuffle && !decodes)
      return load_rows(table, tile, data + (batch.first + c.first) * width, width, valid);
    const auto set_row = [&](i64 r, i64 number) {
      T* const to = tile + r - c.first;
      for (i64 f = 0; f < width && decodes; ++f) to[f * c.stride] = values[codes[number * width + f]];
      for (i64 f = 0; f < width && !decodes; ++f) to[f * c.stride] = data[number * width + f];
    };
    if (params.shuffle) for_shuffled(table, params, batch, c.first, c.first + valid.rows, set_row);
    for (i64 r = c.first; r < c.first + valid.rows && !params.shuffle; ++r) set_row(r, batch.first + r);
    for (i64 f = 0; f < width; ++f) std::fill(tile + f * c.stride + valid.rows, tile + (f + 1) * c.stride, T{});
  };
}

// Each feature of the output is copied from a feature of an input, or is a constant.
template <class T>
TileStep rearrange(const TileCall& call) {
  struct From {
    std::int32_t input = -1;  // -1: the constant
    std::int32_t feature = 0;
  };
  const View out = features(call.output);
  std::vector<From> sources(static_cast<std::size_t>(out.extents.elements()));
  for_each_copy(
      *call.params, static_cast<int>(call.inputs.size()),
      [&](int k) { return features(call.inputs[static_cast<std::size_t>(k)]); }, out,
      [&](int input, const View& from, const View& to) {
        const std::vector<std::int32_t> source = elements_of(from), place = elements_of(to);
        for (std::size_t i = 0; i < place.size(); ++i) sources[static_cast<std::size_t>(place[i])] = {input, source[i]};
      });
  const auto* pad = call.params->get_if<PadParams>();
  const T number = pad != nullptr ? static_cast<T>(pad->value) : T{};
  return [inputs = call.inputs, result = call.output, sources, number](const TileContext& c) {
    T* to = written<T>(result, c);
    for (const From& from : sources) {
      if (from.input < 0) {
        std::fill_n(to, c.stride, number);
      } else {
        const TileOperand& input = inputs[static_cast<std::size_t>(from.input)];
        if (in_tile(input))
          std::copy_n(read<T>(input, c) + from.feature * c.stride, c.stride, to);
        else
          std::fill_n(to, c.stride, read<T>(input, c)[from.feature]);
      }
      to += c.stride;
    }
  };
}

// Adds the features of the windows in order, as the kernel for batches does.
template <class Real>
TileStep fold(const TileCall& call) {
  const View windows = windowed(features(call.output), call.params->as<WindowParams>());
  return [x = call.inputs[0], out = call.output, places = elements_of(windows)](const TileContext& c) {
    Real* const sums = written<Real>(out, c);
    const Real* from = read<Real>(x, c);
    std::fill_n(sums, feature_count(out.type) * c.stride, Real{});
    for (const std::int32_t place : places) {
      Real* const to = sums + place * c.stride;
      for (i64 r = 0; r < c.stride; ++r) to[r] += from[r];
      from += c.stride;
    }
  };
}

TileStep one_hot(const TileCall& call, const IsaTable& table) {
  const Shape& shape = call.output.type.shape;
  return [x = call.inputs[0], out = call.output, classes = shape[shape.rank() - 1], &table](const TileContext& c) {
    table.one_hot(written<float>(out, c), read<std::int32_t>(x, c), feature_count(x.type), classes, c.stride);
  };
}

// Table rows by index; zeros for an index out of range.
template <class Real>
TileStep gather(const TileCall& call) {
  return [rows = call.inputs[0], indices = call.inputs[1], result = call.output](const TileContext& c) {
    const Real* const table = read<Real>(rows, c);
    const std::int32_t* index = read<std::int32_t>(indices, c);
    Real* out = written<Real>(result, c);
    const i64 entries = rows.type.shape[0], width = rows.type.shape[1];
    for (i64 i = feature_count(indices.type); i > 0; --i, index += c.stride, out += width * c.stride) {
      for (i64 r = 0; r < c.stride; ++r) {
        const bool known = index[r] >= 0 && index[r] < entries;
        for (i64 j = 0; j < width; ++j) out[j * c.stride + r] = known ? table[index[r] * width + j] : Real{};
      }
    }
  };
}

template <class Make>
TileStep for_dtype(DType dtype, Make&& make) {
  if (dtype == DType::f32) return make(float{});
  if (dtype == DType::f64) return make(double{});
  if (dtype == DType::i32) return make(std::int32_t{});
  return make(std::uint8_t{});
}

}  // namespace

void rows_to_vectors(float* to, const float* from, std::int64_t rows, std::int64_t width, std::int64_t block) {
  for (i64 begin = 0; begin < rows; begin += block) {
    const i64 end = std::min(begin + block, rows);
    for (i64 r = begin; r < end; r += kLanes)
      for (i64 f = 0; f < width; ++f)
        for (i64 l = 0; l < kLanes; ++l) *to++ = r + l < end ? from[(r + l) * width + f] : 0.0f;
  }
}
void vectors_to_rows(float* to, const float* from, std::int64_t rows, std::int64_t width, std::int64_t block) {
  for (i64 begin = 0; begin < rows; begin += block) {
    const i64 count = std::min(block, rows - begin);
    for (i64 r = 0; r < count; ++r)
      for (i64 f = 0; f < width; ++f) *to++ = from[(r / kLanes * width + f) * kLanes + r % kLanes];
    from += (count + kLanes - 1) / kLanes * kLanes * width;
  }
}
void set_rows_of_vectors(float* to, const float* from, std::int64_t first, std::int64_t rows, std::int64_t width,
                         std::int64_t block) {
  const i64 vectors = (block + kLanes - 1) / kLanes;  // per block
  for (i64 r = first; r < first + rows; ++r) {
    const i64 in_block = r % block;
    float* const row = to + (r / block * vectors + in_block / kLanes) * width * kLanes + in_block % kLanes;
    for (i64 f = 0; f < width; ++f) row[f * kLanes] = *from++;
  }
}

DataVectors whole_data(const std::byte* data, std::int64_t features) {
  return {.data = data, .vector_bytes = static_cast<std::uint64_t>(features * kLanes) * sizeof(float)};
}
DataVectors minibatch_data(const std::byte* data, std::int64_t features, const std::byte* step,
                           const MinibatchParams& params) {
  DataVectors vectors = whole_data(data, features);
  vectors.step = reinterpret_cast<const std::uint64_t*>(step);
  vectors.batches = static_cast<std::uint64_t>(params.batches());
  vectors.batch_bytes = static_cast<std::uint64_t>((params.capacity + kLanes - 1) / kLanes) * vectors.vector_bytes;
  return vectors;
}

TileStep make_tile_load(const TileOperand& to, const std::byte* arena, const DataVectors& vectors, Isa isa) {
  if (vectors.data != nullptr) return copy_vectors(vectors, to);
  return for_dtype(to.type.dtype, [&](auto t) -> TileStep {
    using T = decltype(t);
    return [to, from = reinterpret_cast<const T*>(arena), width = feature_count(to.type), &table = isa_table(isa)](
               const TileContext& c) { load_rows(table, written<T>(to, c), from + c.first * width, width, c); };
  });
}

TileStep make_tile_store(std::byte* arena, const TileOperand& from, Isa isa) {
  return for_dtype(from.type.dtype, [&](auto t) -> TileStep {
    using T = decltype(t);
    return [from, arena, width = feature_count(from.type), &table = isa_table(isa)](const TileContext& c) {
      transpose(table, reinterpret_cast<T*>(arena) + c.first * width, width, read<T>(from, c), c.stride, width, c.rows);
    };
  });
}

TileStep make_move_tile(const TileCall& call, Isa isa, std::string& reason) {
  if (!in_tile(call.output)) return nullptr;
  const DType dtype = call.output.type.dtype;
  if (call.op == Op::minibatch) {
    const DataVectors& vectors = call.inputs[0].vectors;
    if (vectors.data != nullptr) return copy_vectors(vectors, call.output);
    return for_dtype(dtype, [&](auto t) { return minibatch<decltype(t)>(call, isa_table(isa)); });
  }
  if (call.op == family_op::one_hot) return one_hot(call, isa_table(isa));
  if (call.op == family_op::gather) {
    if (in_tile(call.inputs[1]) && dtype == DType::f32) return gather<float>(call);
    if (in_tile(call.inputs[1]) && dtype == DType::f64) return gather<double>(call);
    reason = "only tables of real numbers are read by tiles";
    return nullptr;
  }
  if (call.op == family_op::fold) return dtype == DType::f64 ? fold<double>(call) : fold<float>(call);
  for (const Op op : {Op::broadcast_to, Op::transpose, family_op::windows, Op::slice, Op::pad, Op::concat}) {
    if (call.op != op) continue;
    return for_dtype(dtype, [&](auto t) { return rearrange<decltype(t)>(call); });
  }
  return nullptr;
}

TileStep make_draw_tile(const TileCall& call, Isa isa, std::string&) {
  const auto* p = call.params->get_if<RandomParams>();
  if (p == nullptr || !in_tile(call.output) || call.op == family_op::permutation) return nullptr;
  if (call.output.type.dtype == DType::f64) return nullptr;  // dropout: all others are f32
  return [inputs = call.inputs, result = call.output, op = call.op, params = *p, mask = call.mask_at,
          known = call.mask_known, &table = isa_table(isa)](const TileContext& c) {
    fill_random(table, op, params,
                {.step = *read<std::uint64_t>(inputs.back(), c),
                 .out = written<float>(result, c),
                 .x = op == Op::dropout ? read<float>(inputs[0], c) : nullptr,
                 .mask = mask ? reinterpret_cast<std::uint8_t*>(c.tile + *mask) : nullptr,
                 .mask_known = known,
                 .first = c.first,
                 .rows = c.rows,
                 .width = feature_count(result.type),
                 .stride = c.stride});
  };
}

}  // namespace graphrun::cpu
