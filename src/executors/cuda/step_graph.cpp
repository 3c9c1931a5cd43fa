#include "executors/cuda/step_graph.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <mutex>
#include <vector>

#include "graphrun/error.h"
#include "kernels/cuda/loop.h"

namespace graphrun::cuda {
namespace {

std::mutex slots_mutex;
std::bitset<kLoopSlots> slots_used;

using Graph = Owned<cudaGraph_t, cudaGraphDestroy>;

// Captures the work that `enqueue` puts on the stream into the graph, after the given nodes. Returns its last nodes.
std::vector<cudaGraphNode_t> capture(Api& api, cudaStream_t stream, cudaGraph_t graph,
                                     const std::vector<cudaGraphNode_t>& after, const std::function<void()>& enqueue) {
  // Relaxed mode allows loading a kernel's code for its first launch during capture.
  api.check(
      cudaStreamBeginCaptureToGraph(stream, graph, after.data(), nullptr, after.size(), cudaStreamCaptureModeRelaxed),
      "cudaStreamBeginCaptureToGraph");
  cudaGraph_t same = nullptr;
  try {
    enqueue();
  } catch (...) {
    cudaStreamEndCapture(stream, &same);
    cudaGetLastError();
    throw;
  }
  cudaStreamCaptureStatus status{};
  const cudaGraphNode_t* last = nullptr;
  std::size_t count = 0;
#if CUDART_VERSION >= 13000
  const cudaError_t asked = cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &last, nullptr, &count);
#else
  const cudaError_t asked = cudaStreamGetCaptureInfo_v2(stream, &status, nullptr, nullptr, &last, &count);
#endif
  std::vector<cudaGraphNode_t> ends(last, last + (asked == cudaSuccess ? count : 0));
  api.check(cudaStreamEndCapture(stream, &same), "cudaStreamEndCapture");
  api.check(asked, "cudaStreamGetCaptureInfo");
  return ends;
}

Graph make_graph(Api& api) {
  cudaGraph_t raw = nullptr;
  api.check(cudaGraphCreate(&raw, 0), "cudaGraphCreate");
  return Graph(raw);
}

Graph capture_step(Api& api, cudaStream_t stream, std::span<const StepGraph::Part> parts) {
  Graph graph = make_graph(api);
  std::vector<std::vector<cudaGraphNode_t>> ends;  // last nodes of each part
  for (const StepGraph::Part& part : parts) {
    std::vector<cudaGraphNode_t> after;
    for (const std::uint32_t before : part.after) after.insert(after.end(), ends[before].begin(), ends[before].end());
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    ends.push_back(capture(api, stream, graph.get(), after, part.enqueue));
  }
  return graph;
}

std::vector<cudaGraphNode_t> nodes_of(Api& api, cudaGraph_t graph) {
  std::size_t count = 0;
  api.check(cudaGraphGetNodes(graph, nullptr, &count), "cudaGraphGetNodes");
  std::vector<cudaGraphNode_t> nodes(count);
  if (count > 0) api.check(cudaGraphGetNodes(graph, nodes.data(), &count), "cudaGraphGetNodes");
  return nodes;
}

void refuse_memory_nodes(Api& api, cudaGraph_t graph) {
  for (cudaGraphNode_t node : nodes_of(api, graph)) {
    cudaGraphNodeType type{};
    api.check(cudaGraphNodeGetType(node, &type), "cudaGraphNodeGetType");
    if (type == cudaGraphNodeTypeMemAlloc || type == cudaGraphNodeTypeMemFree) {
      throw Error(ErrorKind::device, "cuda.graph_memory",
                  "a captured step allocates device memory; all memory must come from the plan",
                  "this is a defect of a kernel or library, please report it");
    }
    if (type == cudaGraphNodeTypeGraph) {
      cudaGraph_t child = nullptr;
      api.check(cudaGraphChildGraphNodeGetGraph(node, &child), "cudaGraphChildGraphNodeGetGraph");
      refuse_memory_nodes(api, child);
    }
  }
}

// Adds a kernel of one thread after `previous` (null: first).
template <class... Arguments>
cudaGraphNode_t add_kernel(Api& api, cudaGraph_t graph, cudaGraphNode_t previous, const void* kernel,
                           Arguments... arguments) {
  std::array<void*, sizeof...(Arguments)> addresses{static_cast<void*>(&arguments)...};
  cudaKernelNodeParams params{};
  params.func = const_cast<void*>(kernel);
  params.gridDim = dim3(1, 1, 1);
  params.blockDim = dim3(1, 1, 1);
  params.kernelParams = addresses.data();
  cudaGraphNode_t node = nullptr;
  api.check(cudaGraphAddKernelNode(&node, graph, previous != nullptr ? &previous : nullptr, previous != nullptr ? 1 : 0,
                                   &params),
            "cudaGraphAddKernelNode");
  return node;
}

// Adds a loop over `copies` of the step after `previous`.
cudaGraphNode_t add_loop(Api& api, cudaGraph_t graph, cudaGraphNode_t previous, cudaGraphConditionalHandle handle,
                         std::uint32_t slot, std::uint32_t loop, cudaGraph_t step, std::uint32_t copies) {
  cudaGraphNodeParams params{};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = handle;
  params.conditional.type = cudaGraphCondTypeWhile;
  params.conditional.size = 1;
  cudaGraphNode_t node = nullptr;
  api.check(cudaGraphAddNode(&node, graph, &previous, nullptr, 1, &params), "cudaGraphAddNode of a loop");
  cudaGraph_t body = params.conditional.phGraph_out[0];
  cudaGraphNode_t last = nullptr;
  for (std::uint32_t copy = 0; copy < copies; ++copy) {
    cudaGraphNode_t child = nullptr;
    api.check(
        cudaGraphAddChildGraphNode(&child, body, last != nullptr ? &last : nullptr, last != nullptr ? 1 : 0, step),
        "cudaGraphAddChildGraphNode");
    last = child;
  }
  add_kernel(api, body, last, loop_kernels().advance, slot, loop, handle);
  return node;
}

}  // namespace

LoopSlot::LoopSlot() {
  const std::lock_guard lock(slots_mutex);
  while (number_ < kLoopSlots && slots_used.test(number_)) ++number_;
  if (number_ == kLoopSlots) {
    throw Error(ErrorKind::device, "cuda.too_many", "too many programs are loaded on the device at a time");
  }
  slots_used.set(number_);
}

LoopSlot::~LoopSlot() {
  const std::lock_guard lock(slots_mutex);
  slots_used.reset(number_);
}

void LoopSlot::arm(Api& api, cudaStream_t stream, std::uint32_t unroll, std::uint64_t n) {
  if (n == steps_ && unroll == unroll_) return;
  std::uint64_t blocks = n / unroll, singles = n % unroll;
  void* arguments[] = {&number_, &blocks, &singles};
  api.launch(loop_kernels().arm, "loop_arm", Grid{}, 1, arguments, stream, false);
  steps_ = n;
  unroll_ = unroll;
}

StepGraph::StepGraph(Api& api, cudaStream_t stream, std::uint32_t slot, std::uint32_t unroll,
                     std::span<const Part> parts)
    : unroll_(unroll) {
  if (parts.empty()) return;
  const Graph step = capture_step(api, stream, parts);
  refuse_memory_nodes(api, step.get());
  if (nodes_of(api, step.get()).empty()) return;

  const Graph graph = make_graph(api);
  cudaGraph_t const raw = graph.get();
  cudaGraphConditionalHandle blocks{}, singles{};
  for (cudaGraphConditionalHandle* handle : {&blocks, &singles}) {
    api.check(cudaGraphConditionalHandleCreate(handle, raw, 0, cudaGraphCondAssignDefault),
              "cudaGraphConditionalHandleCreate");
  }
  cudaGraphNode_t last = add_kernel(api, raw, nullptr, loop_kernels().begin, slot, blocks, singles);
  last = add_loop(api, raw, last, blocks, slot, 0, step.get(), unroll);
  add_loop(api, raw, last, singles, slot, 1, step.get(), 1);
  executable_ = api.instantiate(raw, stream);
}

void StepGraph::launch(Api& api, cudaStream_t stream) const {
  if (executable_) api.launch_graph(executable_.get(), stream);
}

}  // namespace graphrun::cuda
