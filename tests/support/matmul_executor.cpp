#include "support/matmul_executor.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "executors/common/host_executor.h"
#include "graphrun/op.h"
#include "graphrun/params.h"

namespace graphrun::test {
namespace {

// out(m, n) = a @ b; params select transposed factors. Rows past the batch's count are ignored, and zero in the result.
void matmul(const KernelArgs& args) {
  const auto& params = args.params.as<MatmulParams>();
  const std::int64_t a_width = args.in_type[0].shape[1];
  const std::int64_t b_width = args.in_type[1].shape[1];
  const std::int64_t rows = args.rows_of(args.out_type);
  const std::int64_t columns = args.out_type.shape[1];
  const std::int64_t terms = std::min(params.transpose_a ? args.rows_of(args.in_type[0]) : a_width,
                                      params.transpose_b ? b_width : args.rows_of(args.in_type[1]));
  const float* a = args.input<float>(0);
  const float* b = args.input<float>(1);
  float* out = args.output<float>();
  std::fill_n(out, args.out_type.shape.elements(), 0.0f);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < terms; ++l) {
        sum += static_cast<double>(params.transpose_a ? a[l * a_width + i] : a[i * a_width + l]) *
               static_cast<double>(params.transpose_b ? b[j * b_width + l] : b[l * b_width + j]);
      }
      out[i * columns + j] = static_cast<float>(sum);
    }
  }
}

class MatmulExecutor final : public HostExecutor {
 public:
  std::string_view name() const override { return "matmul_only"; }

  HostKernel kernel(const StepSignature& step) const override {
    const auto is_matrix = [](const TensorType& type) { return type.dtype == DType::f32 && type.shape.rank() == 2; };
    if (step.op == Op::matmul && std::all_of(step.inputs.begin(), step.inputs.end(), is_matrix)) return {matmul};
    return find_kernel(step);
  }
};

}  // namespace

std::shared_ptr<Executor> matmul_executor() {
  return std::make_shared<MatmulExecutor>();
}

}  // namespace graphrun::test
