// fake_cublaslt.cpp: cuBLASLt as far as the executor calls it, without a device; fake_runtime.h says how it is asked
// for. It offers an algorithm for each letter of `products`: r runs, s says in its state that it does not, d declines
// when it is run, l does so from the second time on. Nothing is multiplied.
#include <cublasLt.h>

#include <cstdlib>
#include <string>

namespace {

std::string products() {
  const char* settings = std::getenv("FAKE_CUDA");
  const std::string all = settings != nullptr ? settings : "", key = "products=";
  const std::size_t at = all.find(key);
  return at == all.npos ? "" : all.substr(at + key.size(), all.find(',', at) - at - key.size());
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static int one = 0;
  *handle = reinterpret_cast<cublasLtHandle_t>(&one);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) {
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasLtGetStatusString(cublasStatus_t) {
  return "as cuBLASLt puts it";
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t*, cublasComputeType_t, cudaDataType_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, const void*,
                                              size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t*, cudaDataType, uint64_t, uint64_t, int64_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, const void*,
                                                size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t*) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int most,
                                              cublasLtMatmulHeuristicResult_t results[], int* count) {
  const std::string letters = products();
  *count = 0;
  for (; *count < most && *count < static_cast<int>(letters.size()); ++*count) {
    cublasLtMatmulHeuristicResult_t& result = results[*count];
    result = {};
    result.algo.data[0] = static_cast<uint64_t>(*count);
    if (letters[static_cast<size_t>(*count)] == 's') result.state = CUBLAS_STATUS_NOT_SUPPORTED;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t, const void*, const void*, cublasLtMatrixLayout_t,
                              const void*, cublasLtMatrixLayout_t, const void*, const void*, cublasLtMatrixLayout_t,
                              void*, cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t* algorithm, void*, size_t,
                              cudaStream_t) {
  static bool ran_late = false;
  const char letter = products().at(algorithm->data[0]);
  if (letter == 's' || letter == 'd' || (letter == 'l' && ran_late)) return CUBLAS_STATUS_NOT_SUPPORTED;
  ran_late = letter == 'l';
  setenv("FAKE_CUDA_PRODUCT", std::to_string(algorithm->data[0]).c_str(), 1);
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
