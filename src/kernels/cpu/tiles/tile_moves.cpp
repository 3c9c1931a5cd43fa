// tile_moves.cpp: values into, out of and around a tile: loads and stores, the minibatch, features in another order.
#include <algorithm>
#include <cstring>

#include "base/random_bits.h"
#include "graphrun/op.h"
#include "graphrun/params/axes.h"
#include "graphrun/params/minibatch.h"
#include "graphrun/params/movement.h"
#include "graphrun/params/random.h"
#include "kernels/cpu/batch/elements.h"
#include "kernels/cpu/tiles/tile_steps.h"

namespace graphrun::cpu {
namespace {

using i64 = std::int64_t;

// Rows of `width` elements one after the other, from the arena; lanes after the last row are cleared.
template <class T>
void load_rows(const TileTable& table, T* tile, const T* from, i64 width, const TileContext& c) {
  if constexpr (std::is_same_v<T, float>) {
    (void)table;
    table.load(tile, from, width, c.rows, c.stride);
  } else {
    for (i64 f = 0; f < width; ++f) {
      T* const to = tile + f * c.stride;
      for (i64 r = 0; r < c.rows; ++r) to[r] = from[r * width + f];
      std::fill(to + c.rows, to + c.stride, T{});
    }
  }
}

// From a data set in vectors: every tile begins one.
class CopyVectors final : public TileStep {
 public:
  CopyVectors(const DataVectors& data, std::uint64_t offset)
      : data_(data), offset_(offset), width_(static_cast<i64>(data.vector_bytes / (kLanes * sizeof(float)))) {}
  void run(const TileContext& c) const override {
    float* const tile = reinterpret_cast<float*>(c.tile + offset_);
    const float* from = reinterpret_cast<const float*>(first_of(data_, c));
    for (i64 r = 0; r < c.stride; r += kLanes)
      for (i64 f = 0; f < width_; ++f, from += kLanes)
        std::memcpy(tile + f * c.stride + r, from, kLanes * sizeof(float));
  }

 private:
  DataVectors data_;
  std::uint64_t offset_;
  i64 width_;
};

template <class T>
class Load final : public TileStep {
 public:
  Load(const TileOperand& from, std::uint64_t offset, i64 capacity, const TileTable& table)
      : arena_(reinterpret_cast<const T*>(from.address)),
        offset_(offset),
        width_(from.type.shape.elements() / capacity),
        table_(table) {}
  void run(const TileContext& c) const override {
    T* const tile = reinterpret_cast<T*>(c.tile + offset_);
    load_rows(table_, tile, arena_ + c.first * width_, width_, c);
  }

 private:
  const T* arena_;
  std::uint64_t offset_;
  i64 width_;
  const TileTable& table_;
};

template <class T>
class Store final : public TileStep {
 public:
  Store(std::byte* arena, const TensorType& type, std::uint64_t offset, i64 capacity, const TileTable& table)
      : arena_(reinterpret_cast<T*>(arena)), offset_(offset), width_(type.shape.elements() / capacity), table_(table) {}
  void run(const TileContext& c) const override {
    const T* from = reinterpret_cast<const T*>(c.tile + offset_);
    T* to = arena_ + c.first * width_;
    if constexpr (std::is_same_v<T, float>) {
      table_.store(to, from, width_, c.rows, c.stride);
    } else {
      for (i64 r = 0; r < c.rows; ++r, ++from)
        for (i64 f = 0; f < width_; ++f) *to++ = from[f * c.stride];
    }
  }

 private:
  T* arena_;
  std::uint64_t offset_;
  i64 width_;
  const TileTable& table_;
};

template <class T>
class Minibatch final : public TileStep {
 public:
  Minibatch(const TileCall& call, const TileTable& table)
      : data_(call.inputs[0]),
        step_(call.inputs[1]),
        out_(call.output),
        table_(table),
        params_(call.params->as<MinibatchParams>()),
        width_(feature_count(out_.type)) {}
  void run(const TileContext& c) const override {
    const std::uint64_t step = *read<std::uint64_t>(step_, c);
    const Batch batch = batch_of(params_, step);
    const T* const data = read<T>(data_, c);
    T* const tile = written<T>(out_, c);
    TileContext valid = c;  // the phase says how many rows there are; never read more than this data set has
    valid.rows = std::clamp<i64>(batch.count - c.first, 0, c.rows);
    if (!params_.shuffle) return load_rows(table_, tile, data + (batch.first + c.first) * width_, width_, valid);
    const std::uint64_t epoch = step / static_cast<std::uint64_t>(std::max<i64>(params_.batches(), 1));
    for (i64 r = 0; r < valid.rows; ++r) {
      const std::uint64_t from = bits::permuted(static_cast<std::uint64_t>(batch.first + c.first + r),
                                                static_cast<std::uint64_t>(params_.total), params_.key, epoch);
      const T* const row = data + static_cast<i64>(from) * width_;
      for (i64 f = 0; f < width_; ++f) tile[f * c.stride + r] = row[f];
    }
    for (i64 f = 0; f < width_; ++f) std::fill(tile + f * c.stride + valid.rows, tile + (f + 1) * c.stride, T{});
  }

 private:
  TileOperand data_, step_, out_;
  const TileTable& table_;
  MinibatchParams params_;
  i64 width_;
};

// Each feature of the output is a feature of an input, or one number.
template <class T>
class Rearrange final : public TileStep {
 public:
  struct From {
    std::int32_t input = -1;  // -1: the number
    std::int32_t feature = 0;
  };
  Rearrange(const TileCall& call, std::vector<From> from, T number)
      : inputs_(call.inputs), out_(call.output), from_(std::move(from)), number_(number) {}
  void run(const TileContext& c) const override {
    T* out = written<T>(out_, c);
    for (const From& from : from_) {
      if (from.input < 0) {
        std::fill_n(out, c.stride, number_);
      } else {
        const TileOperand& input = inputs_[static_cast<std::size_t>(from.input)];
        if (in_tile(input))
          std::copy_n(read<T>(input, c) + from.feature * c.stride, c.stride, out);
        else
          std::fill_n(out, c.stride, read<T>(input, c)[from.feature]);
      }
      out += c.stride;
    }
  }

 private:
  std::vector<TileOperand> inputs_;
  TileOperand out_;
  std::vector<From> from_;
  T number_;
};

template <class T>
std::unique_ptr<TileStep> rearrange(const TileCall& call) {
  const View in = features(call.inputs[0]), out = features(call.output);
  std::vector<typename Rearrange<T>::From> from(static_cast<std::size_t>(out.extents.elements()));
  const auto put = [&](std::size_t input, const View& view, const View& at) {  // what a view shows, there
    const std::vector<std::int32_t> source = elements_of(view), place = elements_of(at);
    for (std::size_t i = 0; i < place.size(); ++i)
      from[static_cast<std::size_t>(place[i])] = {static_cast<std::int32_t>(input), source[i]};
  };
  double number = 0;
  if (call.op == Op::broadcast_to) {
    put(0, broadcast(in, out.extents), out);
  } else if (const auto* permute = call.params->get_if<PermuteParams>()) {
    put(0, permuted(in, permute->axes), out);
  } else if (const auto* slice = call.params->get_if<SliceParams>()) {
    put(0, sliced(in, slice->axis, slice->start, out.extents[slice->axis]), out);
  } else if (const auto* pad = call.params->get_if<PadParams>()) {
    number = pad->value;
    put(0, in, sliced(out, pad->axis, pad->before, in.extents[pad->axis]));
  } else {  // concat
    const int axis = call.params->as<AxisParams>().axis;
    i64 start = 0;
    for (std::size_t k = 0; k < call.inputs.size(); ++k) {
      const View part = features(call.inputs[k]);
      put(k, part, sliced(out, axis, start, part.extents[axis]));
      start += part.extents[axis];
    }
  }
  return std::make_unique<Rearrange<T>>(call, std::move(from), static_cast<T>(number));
}

class OneHot final : public TileStep {
 public:
  OneHot(const TileCall& call, const TileTable& table)
      : x_(call.inputs[0]), out_(call.output), table_(table), classes_(out_.type.shape[out_.type.shape.rank() - 1]) {}
  void run(const TileContext& c) const override {
    table_.one_hot(written<float>(out_, c), read<std::int32_t>(x_, c), feature_count(x_.type), classes_, c.stride);
  }

 private:
  TileOperand x_, out_;
  const TileTable& table_;
  i64 classes_;
};

// Rows of a table by index; zeros for an index that is none.
class Gather final : public TileStep {
 public:
  explicit Gather(const TileCall& call) : table_(call.inputs[0]), indices_(call.inputs[1]), out_(call.output) {}
  void run(const TileContext& c) const override {
    const float* const table = read<float>(table_, c);
    const std::int32_t* index = read<std::int32_t>(indices_, c);
    float* out = written<float>(out_, c);
    const i64 entries = table_.type.shape[0];
    const i64 width = table_.type.shape[1];
    for (i64 i = feature_count(indices_.type); i > 0; --i, index += c.stride, out += width * c.stride) {
      for (i64 r = 0; r < c.stride; ++r) {
        const bool known = index[r] >= 0 && index[r] < entries;
        for (i64 j = 0; j < width; ++j) out[j * c.stride + r] = known ? table[index[r] * width + j] : 0.0f;
      }
    }
  }

 private:
  TileOperand table_, indices_, out_;
};

// Element i of a draw belongs to row i / features of the batch.
template <class F>
class Draw final : public TileStep {
 public:
  Draw(const TileCall& call, std::size_t step_input, F value)
      : inputs_(call.inputs),
        out_(call.output),
        step_input_(step_input),
        value_(value),
        key_(call.params->as<RandomParams>().key) {}
  void run(const TileContext& c) const override {
    const std::uint64_t step = *read<std::uint64_t>(inputs_[step_input_], c);
    const float* const x = step_input_ > 0 ? read<float>(inputs_[0], c) : nullptr;
    float* const out = written<float>(out_, c);
    const i64 width = feature_count(out_.type);
    for (i64 f = 0; f < width; ++f) {
      for (i64 r = 0; r < c.rows; ++r) {
        const auto i = static_cast<std::uint64_t>((c.first + r) * width + f);
        out[f * c.stride + r] = value_(bits::word(key_, step, i), x != nullptr ? x[f * c.stride + r] : 0.0f);
      }
      std::fill(out + f * c.stride + c.rows, out + (f + 1) * c.stride, 0.0f);
    }
  }

 private:
  std::vector<TileOperand> inputs_;
  TileOperand out_;
  std::size_t step_input_;
  F value_;
  std::uint64_t key_;
};
template <class F>
std::unique_ptr<TileStep> draw_step(const TileCall& call, std::size_t step_input, F value) {
  return std::make_unique<Draw<F>>(call, step_input, value);
}

// make.operator()<T>() for the dtype.
template <class Make>
std::unique_ptr<TileStep> for_dtype(DType dtype, Make&& make) {
  if (dtype == DType::f32) return make(float{});
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

DataVectors whole_data(const std::byte* data, const TensorType& from, std::int64_t capacity) {
  DataVectors vectors;
  vectors.data = data;
  vectors.vector_bytes = static_cast<std::uint64_t>(from.shape.elements() / capacity * kLanes) * sizeof(float);
  return vectors;
}
DataVectors minibatch_data(const std::byte* data, const TensorType& data_type, const std::byte* step,
                           const MinibatchParams& params) {
  DataVectors vectors = whole_data(data, data_type, params.total);
  vectors.step = reinterpret_cast<const std::uint64_t*>(step);
  vectors.batches = static_cast<std::uint64_t>(params.batches());
  vectors.batch_bytes = static_cast<std::uint64_t>((params.capacity + kLanes - 1) / kLanes) * vectors.vector_bytes;
  return vectors;
}

std::unique_ptr<TileStep> make_tile_load(const TileOperand& from, std::uint64_t offset, std::int64_t capacity,
                                         Isa isa) {
  if (from.vectors.data != nullptr) return std::make_unique<CopyVectors>(from.vectors, offset);
  return for_dtype(from.type.dtype, [&](auto t) -> std::unique_ptr<TileStep> {
    return std::make_unique<Load<decltype(t)>>(from, offset, capacity, tile_table(isa));
  });
}
std::unique_ptr<TileStep> make_tile_store(std::byte* arena, const TensorType& type, std::uint64_t offset,
                                          std::int64_t capacity, Isa isa) {
  return for_dtype(type.dtype, [&](auto t) -> std::unique_ptr<TileStep> {
    return std::make_unique<Store<decltype(t)>>(arena, type, offset, capacity, tile_table(isa));
  });
}

std::unique_ptr<TileStep> make_move_tile(const TileCall& call, Isa isa, std::string& reason) {
  if (!in_tile(call.output)) return nullptr;
  const TileTable& table = tile_table(isa);
  if (call.op == Op::minibatch) {
    const DataVectors& vectors = call.inputs[0].vectors;
    if (vectors.data != nullptr) return std::make_unique<CopyVectors>(vectors, call.output.offset);
    return for_dtype(call.output.type.dtype, [&](auto t) -> std::unique_ptr<TileStep> {
      return std::make_unique<Minibatch<decltype(t)>>(call, table);
    });
  }
  if (call.op == Op::one_hot) return std::make_unique<OneHot>(call, table);
  if (call.op == Op::gather) {
    if (in_tile(call.inputs[1]) && call.output.type.dtype == DType::f32) return std::make_unique<Gather>(call);
    reason = "only tables of f32 are read by tiles";
    return nullptr;
  }
  for (const Op op : {Op::broadcast_to, Op::transpose, Op::slice, Op::pad, Op::concat}) {
    if (call.op != op) continue;
    return for_dtype(call.output.type.dtype, [&](auto t) { return rearrange<decltype(t)>(call); });
  }
  return nullptr;
}

std::unique_ptr<TileStep> make_draw_tile(const TileCall& call, std::string&) {
  const auto* p = call.params->get_if<RandomParams>();
  if (p == nullptr || !in_tile(call.output)) return nullptr;
  const double a = p->a;
  const double b = p->b;
  if (call.op == Op::random_uniform)
    return draw_step(call, 0, [=](bits::u32 word, float) { return bits::uniform(word, a, b); });
  if (call.op == Op::random_normal)
    return draw_step(call, 0, [=](bits::u32 word, float) { return bits::normal(word, a, b); });
  if (call.op == Op::dropout)
    return draw_step(call, 1, [a, kept = static_cast<float>(1 - a)](bits::u32 word, float x) {
      return bits::unit(word) < a ? 0.0f : x / kept;
    });
  return nullptr;
}

}  // namespace graphrun::cpu
