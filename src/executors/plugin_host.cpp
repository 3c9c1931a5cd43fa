#include "executors/plugin_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>

#include "base/random_bits.h"
#include "executors/common/host_executor.h"
#include "executors/flat_program.h"
#include "graphrun/error.h"
#include "graphrun/op_traits.h"

struct gr_kernel {
  graphrun::KernelFn run;
  graphrun::KernelArgs args;
};

namespace graphrun {
namespace {

Error no_kernel(std::string message) {
  return Error(ErrorKind::input, "executor.kernel", std::move(message));
}

std::unique_ptr<gr_kernel> make_kernel(const gr_signature* step, const gr_operands* at) {
  if (step == nullptr || at == nullptr) throw no_kernel("find_kernel() needs a step and its operands");
  const std::optional<Op> op = find_op(step->op == nullptr ? std::string_view() : step->op);
  if (!op) throw no_kernel(fmt::format("there is no op '{}'", step->op == nullptr ? "" : step->op));
  if (step->inputs.count > kMaxOperands || step->output == nullptr) throw no_kernel("invalid step signature");
  auto kernel = std::make_unique<gr_kernel>();
  KernelArgs& args = kernel->args;
  StepSignature signature{*op, {}, {}, type_of(*step->output), step->partial_rows != 0};
  for (std::size_t i = 0; i < step->inputs.count; ++i) {
    args.in_type[i] = signature.inputs.emplace_back(type_of(*GR_AT(gr_tensor_type, step->inputs, i)));
    args.in[i] = at->inputs[i];
  }
  args.inputs = static_cast<int>(step->inputs.count);
  args.out_type = signature.output;
  args.out = at->output;
  args.workspace = at->workspace;
  args.row_count = at->row_count;
  args.capacity = at->capacity;
  if (step->params != nullptr) args.params = *static_cast<const Params*>(step->params);
  signature.params = args.params;
  if (const std::string fault = step_fault(*op, signature.inputs, signature.output, args.params); !fault.empty())
    throw no_kernel(fmt::format("{}: {}", step->op, fault));

  const HostKernel found = find_kernel(signature);
  if (found.run == nullptr)
    throw no_kernel(found.reason.empty() ? fmt::format("the library has no kernel for {}", step->op) : found.reason);
  if (found.workspace_bytes > 0 && at->workspace == nullptr)
    throw no_kernel(fmt::format("{} needs a workspace of {} bytes", step->op, found.workspace_bytes));
  kernel->run = found.run;
  return kernel;
}

gr_kernel* host_find_kernel(const gr_signature* step, const gr_operands* operands, char* why) noexcept {
  try {
    return make_kernel(step, operands).release();
  } catch (const std::exception& error) {
    write_why(why, error.what());
    return nullptr;
  }
}

void host_random_bits(std::uint64_t key, std::uint64_t step, std::uint64_t first, std::size_t count,
                      std::uint32_t* words) noexcept {
  for (std::size_t i = 0; i < count; ++i) words[i] = bits::word(key, step, first + i);
}

constexpr gr_host kHost = {
    .struct_size = sizeof(gr_host),
    .version = GR_EXECUTOR_VERSION,
    .library = GRAPHRUN_VERSION,
    .find_kernel = host_find_kernel,
    .run_kernel = [](const gr_kernel* kernel) { kernel->run(kernel->args); },
    .free_kernel = [](gr_kernel* kernel) { delete kernel; },
    .random_bits = host_random_bits,
    .permuted = [](std::uint64_t i, std::uint64_t n, std::uint64_t key, std::uint64_t epoch) -> std::uint64_t {
      return i < n ? bits::permuted(i, n, key, epoch) : i;  // the walk might not end for other i
    },
    .report_allocation = [](const char* call, std::uint64_t bytes) { report_allocation(call, bytes); },
    .begin_step = [](gr_progress* progress, std::uint64_t step) { progress->step_begins(step); },
};

}  // namespace

const gr_host& plugin_host() {
  return kHost;
}

void write_why(char* why, std::string_view text) noexcept {
  if (why == nullptr) return;
  const std::size_t size = std::min<std::size_t>(text.size(), GR_WHY - 1);
  std::memcpy(why, text.data(), size);
  why[size] = '\0';
}

}  // namespace graphrun
