// rearrange.cu: ops that move elements: transpose, windows, fold, slice, pad, concat, one_hot, gather.
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/factor_view.h"

namespace graphrun::cuda {
namespace {

// ---- slice, pad, concat: the result's blocks along an axis, assembled from pieces of operands ---------------------

struct Piece {
  const void* from = nullptr;
  std::uint64_t begin = 0, end = 0;  // words of the result's block that it fills
  std::uint64_t block = 0;           // words of the operand's block
};
struct Pieces {
  Piece piece[kMaxOperands];
  int count = 0;
  std::uint64_t block = 0;  // words of the result's block
};

template <class Word>
__global__ void assemble_kernel(Pieces pieces, Word fill, Extent extent, Word* out) {
  const std::uint64_t valid = extent.valid();
  for (std::uint64_t i = thread_index(); i < extent.all; i += thread_count()) {
    Word value = {};
    if (i < valid) {
      const std::uint64_t outer = divide(i, pieces.block);
      const std::uint64_t at = i - outer * pieces.block;
      value = fill;
      for (int k = 0; k < pieces.count; ++k) {
        const Piece& piece = pieces.piece[k];
        if (at < piece.begin || at >= piece.end) continue;
        value = static_cast<const Word*>(piece.from)[outer * piece.block + (at - piece.begin)];
      }
    }
    out[i] = value;
  }
}

// The pieces in bytes, before a word size is chosen.
class Assembly {
 public:
  Assembly(const KernelArgs& args, int axis) : args_(args), axis_(axis) {
    pieces_.block = block_of(args.out_type, inner_);
    divisor_ = pieces_.block | reinterpret_cast<std::uintptr_t>(args.out);
  }

  // Skips `skip` steps along the operand's axis and fills `steps` steps of the result from `begin` on.
  void add(int input, std::uint64_t skip, std::uint64_t begin, std::uint64_t steps) {
    std::uint64_t inner = 0;
    const std::uint64_t block = block_of(args_.in_type[input], inner);
    if (steps == 0 || inner_ == 0) return;
    const auto* from = args_.input<std::byte>(input) + skip * inner_;
    pieces_.piece[pieces_.count++] = {from, begin * inner_, (begin + steps) * inner_, block};
    divisor_ |= reinterpret_cast<std::uintptr_t>(from) | begin * inner_ | steps * inner_ | block;
  }

  void run(Launcher& launcher, const char* name, float fill = 0.0f) {
    const std::uint64_t bytes = args_.out_type.bytes();
    if (bytes == 0) return;
    with_word(word_of(divisor_, size_of(args_.out_type.dtype)), [&]<class Word>(Word) {
      Pieces pieces = pieces_;
      pieces.block /= sizeof(Word);
      for (int k = 0; k < pieces.count; ++k) {
        Piece& piece = pieces.piece[k];
        piece.begin /= sizeof(Word);
        piece.end /= sizeof(Word);
        piece.block /= sizeof(Word);
      }
      Word filling = {};
      for (std::size_t i = 0; i + sizeof(float) <= sizeof(Word); i += sizeof(float)) {
        std::memcpy(reinterpret_cast<std::byte*>(&filling) + i, &fill, sizeof(float));
      }
      const std::uint64_t words = bytes / sizeof(Word);
      launch(launcher, assemble_kernel<Word>, name, linear_grid(launcher.machine(), words, 256), 256, pieces, filling,
             extent_of(args_, args_.out_type, words), args_.output<Word>());
    });
  }

 private:
  std::uint64_t block_of(const TensorType& type, std::uint64_t& inner) const {
    inner = size_of(type.dtype);
    for (int d = axis_ + 1; d < type.shape.rank(); ++d) inner *= static_cast<std::uint64_t>(type.shape[d]);
    return inner * static_cast<std::uint64_t>(type.shape[axis_]);
  }

  const KernelArgs& args_;
  int axis_;
  std::uint64_t inner_ = 0;    // bytes of one step along the axis
  std::uint64_t divisor_ = 0;  // its low zero bits are those of every address, offset and size
  Pieces pieces_;
};

std::uint64_t extent_along(const TensorType& type, int axis) {
  return static_cast<std::uint64_t>(type.shape[axis]);
}

void launch_slice(const KernelArgs& args, Launcher& launcher) {
  const auto& params = args.params.as<SliceParams>();
  Assembly assembly(args, params.axis);
  assembly.add(0, static_cast<std::uint64_t>(params.start), 0, extent_along(args.out_type, params.axis));
  assembly.run(launcher, "slice");
}

void launch_pad(const KernelArgs& args, Launcher& launcher) {
  const auto& params = args.params.as<PadParams>();
  Assembly assembly(args, params.axis);
  assembly.add(0, 0, static_cast<std::uint64_t>(params.before), extent_along(args.in_type[0], params.axis));
  assembly.run(launcher, "pad", static_cast<float>(params.value));
}

void launch_concat(const KernelArgs& args, Launcher& launcher) {
  const int axis = args.params.as<AxisParams>().axis;
  Assembly assembly(args, axis);
  std::uint64_t begin = 0;
  for (int k = 0; k < args.inputs; ++k) {
    const std::uint64_t steps = extent_along(args.in_type[k], axis);
    assembly.add(k, 0, begin, steps);
    begin += steps;
  }
  assembly.run(launcher, "concat");
}

// Copies the elements of operand 0 as `from` shows them.
template <class Word>
void launch_view(const KernelArgs& args, Launcher& launcher, const char* name, const View& from) {
  KernelArgs shown = args;
  shown.in_type[0].shape = from.extents;
  shown.in_strides[0] = from.strides;
  launch_elementwise<Same, Word, Word>(shown, launcher, name, {});
}

// ---- transpose ----------------------------------------------------------------------------------------------------

// The result's axes with their strides in the operand. If an axis other than the last is contiguous in the operand,
// tiles of 32 x 32 go through shared memory, so that both sides are accessed in rows.
constexpr std::uint64_t kTile = 32;

struct Tiles {
  Dims<2> outer;                             // other axes: strides of the operand and of the result
  std::uint64_t rows = 0, row_out = 0;       // the axis that is dense in the operand
  std::uint64_t columns = 0, column_in = 0;  // the last axis of the result
  Extent extent;
};

template <class Word>
__global__ void __launch_bounds__(256) transpose_tiles(const Word* in, Tiles t, Word* out) {
  __shared__ Word tile[kTile][kTile + 1];
  const std::uint64_t valid = t.extent.valid();
  const std::uint64_t tiles_row = (t.rows + kTile - 1) / kTile;
  const std::uint64_t tiles_column = (t.columns + kTile - 1) / kTile;
  const unsigned x = threadIdx.x % kTile;
  for (std::uint64_t n = blockIdx.x; n < tiles_row * tiles_column * static_cast<std::uint64_t>(t.outer.count);
       n += gridDim.x) {
    const std::uint64_t rest = divide(n, tiles_column);
    const std::uint64_t column = (n - rest * tiles_column) * kTile;
    const std::uint64_t index = divide(rest, tiles_row);
    const std::uint64_t row = (rest - index * tiles_row) * kTile;
    const Offsets<2> at = t.outer.offsets(static_cast<std::int64_t>(index));
    const auto from = static_cast<std::uint64_t>(at[0]), to = static_cast<std::uint64_t>(at[1]);
    for (unsigned y = threadIdx.x / kTile; y < kTile; y += 8) {
      if (row + x < t.rows && column + y < t.columns) {
        tile[y][x] = in[from + (row + x) + (column + y) * t.column_in];
      }
    }
    __syncthreads();
    for (unsigned y = threadIdx.x / kTile; y < kTile; y += 8) {
      if (row + y < t.rows && column + x < t.columns) {
        const std::uint64_t place = to + (row + y) * t.row_out + column + x;
        out[place] = place < valid ? tile[x][y] : Word{};
      }
    }
    __syncthreads();  // the tile has been read
  }
}

View permuted_in(const KernelArgs& args) {
  return permuted(dense(args.in_type[0].shape), args.params.as<PermuteParams>().axes);
}

template <class Word>
void transpose_words(const KernelArgs& args, Launcher& launcher, Dims<2> dims) {
  int inner = dims.rank - 1;
  while (inner >= 0 && dims.dim[inner].stride[0] != 1) --inner;
  const int last = dims.rank - 1;
  if (inner >= 0 && inner < last && dims.dim[inner].extent >= 8 && dims.dim[last].extent >= 8) {
    const Dim<2> columns = dims.remove(last), rows = dims.remove(inner);
    Tiles t;
    t.outer = dims;
    t.rows = static_cast<std::uint64_t>(rows.extent);
    t.row_out = static_cast<std::uint64_t>(rows.stride[1]);
    t.columns = static_cast<std::uint64_t>(columns.extent);
    t.column_in = static_cast<std::uint64_t>(columns.stride[0]);
    t.extent = extent_of(args, args.out_type, static_cast<std::uint64_t>(args.out_type.shape.elements()));
    const std::uint64_t tiles = (t.rows + kTile - 1) / kTile * ((t.columns + kTile - 1) / kTile);
    launch(launcher, transpose_tiles<Word>, "transpose_tiles",
           linear_grid(launcher.machine(), tiles * static_cast<std::uint64_t>(dims.count), 1), 256, args.input<Word>(0),
           t, args.output<Word>());
    return;
  }
  launch_view<Word>(args, launcher, "transpose", permuted_in(args));
}

void launch_transpose(const KernelArgs& args, Launcher& launcher) {
  const Dims<2> dims = merged<2>({permuted_in(args), dense(args.out_type.shape)});
  if (dims.count == 0) return;
  with_element(size_of(args.out_type.dtype), [&]<class Word>(Word) { transpose_words<Word>(args, launcher, dims); });
}

// ---- windows, fold ------------------------------------------------------------------------------------------------

void launch_windows(const KernelArgs& args, Launcher& launcher) {
  const View from = windowed(dense(args.in_type[0].shape), args.params.as<WindowParams>());
  with_element(size_of(args.out_type.dtype),
               [&]<class Word>(Word) { launch_view<Word>(args, launcher, "windows", from); });
}

struct Fold {
  WindowParams params;                              // with three axes, the absent ones first
  std::int64_t extent[kMaxWindowAxes] = {1, 1, 1};  // extents of the result, below 2^31
  int windows[kMaxWindowAxes] = {1, 1, 1};          // numbers of windows
  Divisor stride[kMaxWindowAxes];                   // params.stride
  std::int64_t step[kMaxWindowAxes] = {};           // floats between windows along each axis
  std::int64_t sample = 0;                          // floats of a sample's windows
  std::uint64_t columns = 1;                        // in units of a thread
};

// The window along an axis whose element `tap` is element `at` of the result; -1: none.
__device__ __forceinline__ int window_at(const Fold& f, int axis, int at, int tap) {
  const int start = at - tap * f.params.dilation[axis];
  const int number = static_cast<int>(f.stride[axis].quotient(static_cast<std::uint32_t>(start < 0 ? 0 : start)));
  return start >= 0 && number * f.params.stride[axis] == start && number < f.windows[axis] ? number : -1;
}

// One thread for N adjacent elements of the result: it adds the windows that show them, in their order. The loads of
// some windows are in flight at the same time.
template <int N>
__global__ void __launch_bounds__(256) fold_kernel(const float* in, Fold f, Extent extent, float* out) {
  constexpr int kAhead = 9;
  struct alignas(4 * N) Unit {
    float at[N];
  };
  const std::uint64_t valid = extent.valid();
  for (std::uint64_t i = thread_index(); i < extent.all; i += thread_count()) {
    Unit sum = {};
    if (i < valid) {
      std::uint64_t sample = divide(i, f.columns);
      const std::uint64_t column = i - sample * f.columns;
      int at[kMaxWindowAxes];
#pragma unroll
      for (int a = kMaxWindowAxes - 1; a >= 0; --a) {
        const std::uint64_t rest = divide(sample, static_cast<std::uint64_t>(f.extent[a]));
        at[a] = static_cast<int>(sample - rest * static_cast<std::uint64_t>(f.extent[a]));
        sample = rest;
      }
      const int* const size = f.params.size;
      const float* const first =
          in + static_cast<std::int64_t>(sample) * f.sample + static_cast<std::int64_t>(column) * N;
      const auto width = static_cast<std::int64_t>(f.columns) * N;
      for (int k0 = size[0] - 1; k0 >= 0; --k0) {
        const int w0 = window_at(f, 0, at[0], k0);
        if (w0 < 0) continue;
        for (int k1 = size[1] - 1, k2 = size[2] - 1; k1 >= 0;) {
          Unit next[kAhead];
#pragma unroll
          for (Unit& unit : next) {
            const int w1 = k1 >= 0 ? window_at(f, 1, at[1], k1) : -1, w2 = window_at(f, 2, at[2], k2);
            const std::int64_t tap = (std::int64_t{k0} * size[1] + k1) * size[2] + k2;
            unit = {};
            if (w1 >= 0 && w2 >= 0)
              unit = *reinterpret_cast<const Unit*>(first + w0 * f.step[0] + w1 * f.step[1] + w2 * f.step[2] +
                                                    tap * width);
            if (--k2 < 0) k2 = size[2] - 1, --k1;
          }
#pragma unroll
          for (const Unit& unit : next) {
#pragma unroll
            for (int n = 0; n < N; ++n) sum.at[n] += unit.at[n];
          }
        }
      }
    }
    reinterpret_cast<Unit*>(out)[i] = sum;
  }
}

template <int N>
void launch_fold_of(const KernelArgs& args, Launcher& launcher, Fold f) {
  const auto count = static_cast<std::uint64_t>(args.out_type.shape.elements()) / N;
  f.columns /= N;
  launch(launcher, fold_kernel<N>, "fold", linear_grid(launcher.machine(), count, 256), 256, args.input<float>(0), f,
         extent_of(args, args.out_type, count), args.output<float>());
}

void launch_fold(const KernelArgs& args, Launcher& launcher) {
  const auto& params = args.params.as<WindowParams>();
  const Shape& shape = args.out_type.shape;
  if (shape.elements() == 0) return;
  Fold f;
  f.columns = extent_along(args.out_type, shape.rank() - 1);
  std::int64_t step = static_cast<std::int64_t>(f.columns);
  for (int i = 0; i < params.axes; ++i) step *= params.size[i];
  for (int i = params.axes - 1; i >= 0; --i) {
    const int a = kMaxWindowAxes - params.axes + i;
    const std::int64_t extent = shape[shape.rank() - 1 - params.axes + i];
    f.params.size[a] = params.size[i], f.params.stride[a] = params.stride[i], f.params.dilation[a] = params.dilation[i];
    f.extent[a] = extent;
    f.windows[a] = static_cast<int>(params.windows(i, extent));
    f.stride[a] = Divisor(params.stride[i]);
    f.step[a] = step;
    step *= f.windows[a];
  }
  f.sample = step;
  const std::uint64_t divisor = f.columns * sizeof(float) | reinterpret_cast<std::uintptr_t>(args.in[0]) |
                                reinterpret_cast<std::uintptr_t>(args.out);
  if (divisor % 16 == 0) return launch_fold_of<4>(args, launcher, f);
  divisor % 8 == 0 ? launch_fold_of<2>(args, launcher, f) : launch_fold_of<1>(args, launcher, f);
}

// ---- one_hot, gather ----------------------------------------------------------------------------------------------

__global__ void one_hot_kernel(const std::int32_t* in, std::uint64_t classes, Extent extent, float* out) {
  const std::uint64_t valid = extent.valid();
  for (std::uint64_t i = thread_index(); i < extent.all; i += thread_count()) {
    float value = 0.0f;
    if (i < valid) {
      const std::uint64_t place = divide(i, classes);
      const std::int64_t wanted = in[place];
      if (wanted == static_cast<std::int64_t>(i - place * classes)) value = 1.0f;
    }
    out[i] = value;
  }
}

void launch_one_hot(const KernelArgs& args, Launcher& launcher) {
  const auto count = static_cast<std::uint64_t>(args.out_type.shape.elements());
  if (count == 0) return;
  launch(launcher, one_hot_kernel, "one_hot", linear_grid(launcher.machine(), count, 256), 256,
         args.input<std::int32_t>(0), extent_along(args.out_type, args.out_type.shape.rank() - 1),
         extent_of(args, args.out_type, count), args.output<float>());
}

template <class Word>
__global__ void gather_kernel(const Word* table, const std::int32_t* indices, std::uint64_t entries,
                              std::uint64_t width, Extent extent, Word* out) {
  const std::uint64_t valid = extent.valid();
  for (std::uint64_t i = thread_index(); i < extent.all; i += thread_count()) {
    Word value = {};
    if (i < valid) {
      const std::uint64_t place = divide(i, width);
      const std::int64_t entry = indices[place];
      if (entry >= 0 && static_cast<std::uint64_t>(entry) < entries) {
        value = table[static_cast<std::uint64_t>(entry) * width + (i - place * width)];
      }
    }
    out[i] = value;
  }
}

void launch_gather(const KernelArgs& args, Launcher& launcher) {
  const std::uint64_t bytes = args.out_type.bytes();
  if (bytes == 0) return;
  const Shape& table = args.in_type[0].shape;
  const std::uint64_t size = size_of(args.out_type.dtype);
  const std::uint64_t row = static_cast<std::uint64_t>(table[1]) * size;
  const std::uint64_t divisor =
      row | reinterpret_cast<std::uintptr_t>(args.in[0]) | reinterpret_cast<std::uintptr_t>(args.out);
  with_word(word_of(divisor, size), [&]<class Word>(Word) {
    const std::uint64_t words = bytes / sizeof(Word);
    launch(launcher, gather_kernel<Word>, "gather", linear_grid(launcher.machine(), words, 256), 256,
           args.input<Word>(0), args.input<std::int32_t>(1), static_cast<std::uint64_t>(table[0]), row / sizeof(Word),
           extent_of(args, args.out_type, words), args.output<Word>());
  });
}

}  // namespace

LaunchFn find_rearrange(Op op) {
  if (op == Op::transpose) return launch_transpose;
  if (op == Op::slice) return launch_slice;
  if (op == Op::pad) return launch_pad;
  if (op == Op::concat) return launch_concat;
  if (op == family_op::windows) return launch_windows;
  if (op == family_op::fold) return launch_fold;
  if (op == family_op::one_hot) return launch_one_hot;
  if (op == family_op::gather) return launch_gather;
  return nullptr;
}

}  // namespace graphrun::cuda
