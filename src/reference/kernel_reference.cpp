// kernel_reference.cpp: kernel_reference(): generates kernels.md from the tables of ops and parameters.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include "graph/ops/op_def.h"
#include "graphrun/params.h"
#include "graphrun/program.h"
#include "graphrun/show.h"

namespace graphrun {
namespace {

struct Meaning {
  Params params;  // with every field that describe() can visit
  std::string_view text;
};
constexpr Meaning kMeanings[] = {
    {ScalarParams(),
     "the op's numbers, in the order of its formula: leaky_relu: slope; elu: alpha; clip: low, high; divide_step: "
     "every"},
    {MatmulParams{false, false, Precision::tf32},
     "out(m, n) = op(a) @ op(b), where op() swaps the last two axes if the flag is set. `tf32`: operands may be "
     "rounded to 10 bits after the point; sums stay f32"},
    {ReduceParams(), "bit i of `axes` is set where axis i of the operand is reduced"},
    {AxisParams(), "the axis along which it looks, from 0"},
    {ShardParams(),
     "shard_step: `shards` of a batch; combine_shards: also `combine`, 0: sum, 1: product, 2: max, 3: min"},
    {MinibatchParams{0, 0, false, 0, false, 2},
     "batch number b = step mod batches holds samples b * capacity to b * capacity + count - 1 of `total`; with "
     "`shuffle` sample i is number `gr_host.permuted(i, total, key, step / batches)` of the data set; `drop_last`: a "
     "last batch that is not full is left out; with `shards`, an optional number above 1, step / shards "
     "counts batches, and shard step mod shards has the next ceil(capacity / shards) samples of the batch, or fewer at "
     "its end"},
    {PermuteParams(), "axis i of the output is axis `axes`[i] of the operand; entries past the rank are 0"},
    {SliceParams(), "the output begins at `start` of the operand along the axis"},
    {PadParams(), "the operand begins at `before` of the output along the axis; the rest is `value`"},
    {WindowParams(),
     "windows over the `axes` axes before the last one, outermost first: element (o, k) along axis i is element "
     "o * stride[i] + k * dilation[i] of the value that the windows show; entries past `axes` are 1"},
    {RandomParams(),
     "element i at a step draws word w = word i of `gr_host.random_bits(key, step, ...)`. u = (w >> 8) / 2^24; "
     "random_uniform: a + (b - a) u in double, rounded to a float in [a, b); random_normal: a + b times the inverse of "
     "the normal distribution at (w + 0.5) / 2^32; dropout: 0 where u < a, else x / (1 - a); permutation: "
     "`gr_host.permuted(i, n, key, step)`, n being the elements of the output"},
};

const Meaning& meaning_of(ParamsKind kind) {
  const auto found = std::find_if(std::begin(kMeanings), std::end(kMeanings),
                                  [&](const Meaning& m) { return m.params.kind() == kind; });
  if (found == std::end(kMeanings))
    throw std::logic_error("kernel_reference.cpp does not say what these parameters mean");
  return *found;
}

template <class T>
std::string_view type_name(const T&) {
  if constexpr (std::is_same_v<T, bool>) return "flag";
  if constexpr (std::is_floating_point_v<T>) return "number";
  return std::is_integral_v<T> ? "integer" : "list";
}

// Formats "`axis` (integer), `start` (integer)".
std::string attributes_of(const Params& params) {
  std::string text;
  params.describe([&text](std::string_view name, const auto& value) {
    text += fmt::format("{}`{}` ({})", text.empty() ? "" : ", ", name, type_name(value));
  });
  return text;
}

std::string operands_of(const OpDef& op) {
  const std::string_view letters = traits_of(op.op).dtypes;
  std::vector<std::string> all;
  for (std::size_t i = 0; i < op.operands.size(); ++i)
    all.push_back(fmt::format("{} {}", op.operands[i], letters[std::min(i, letters.find_first_of("+>") - 1)]));
  return fmt::format("{}{} → {}", fmt::join(all, ", "), op.variadic ? ", …" : "", letters.back());
}

std::string_view overlay_text(Overlay overlay) {
  return overlay == Overlay::reuse ? "an operand" : overlay == Overlay::state ? "operand 0, always" : "";
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

}  // namespace

std::string kernel_reference() {
  std::string text =
      "# Kernels\n\n"
      "What an executor is asked to run: the ops of steps by their keys, for "
      "[executor-plugins.md](executor-plugins.md). Made "
      "from the\ntables (`GRAPHRUN_WRITE_GOLDEN=1 test_graph --gtest_filter='Generated*'`); a test fails when it is "
      "stale.\n\n"
      "Dtypes of operands and output: F: f32 or f64, one for all; T: any dtype, one for all; A: any; S: f32; I: i32; "
      "B: bool, a "
      "byte that\nis 0 or 1; U: u64, one element; L: the float of F, or i32. Operands are dense and row-major. "
      "Operands of "
      "elementwise ops are\nbroadcast by NumPy's rule. *Over*: where the output may be; elsewhere it overlaps no "
      "operand. "
      "Rows of a batch past its count\nare zero in operands, and a kernel leaves them zero.\n\n"
      "| op | operands → output | attributes | over | description |\n|---|---|---|---|---|\n";
  std::vector<ParamsKind> kinds;
  for (const OpDef& op : all_ops()) {
    const OpTraits& traits = traits_of(op.op);
    if (traits.dtypes.empty()) continue;  // a source or a state is not a step
    const bool has_params = traits.params != params_kind<NoParams>;
    if (has_params && std::find(kinds.begin(), kinds.end(), traits.params) == kinds.end())
      kinds.push_back(traits.params);
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", op.name(), operands_of(op),
                        has_params ? attributes_of(meaning_of(traits.params).params) : "", overlay_text(traits.overlay),
                        escaped(op.doc));
  }
  text += "\n## Attributes\n\n| attributes | meaning |\n|---|---|\n";
  for (const ParamsKind kind : kinds) {
    const auto& [params, meaning] = meaning_of(kind);
    text += fmt::format("| {} | {} |\n", attributes_of(params), meaning);
  }
  return text;
}

}  // namespace graphrun
