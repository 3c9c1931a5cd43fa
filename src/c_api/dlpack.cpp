// dlpack.cpp: tensors of other libraries, through the structs of DLPack 1.0 (github.com/dmlc/dlpack), declared here.
#include <algorithm>
#include <cstdint>
#include <memory>

#include "c_api/guard.h"
#include "c_api/types.h"

// Struct layouts and numeric codes must match DLPack's.
extern "C" {
struct DLDevice {
  std::int32_t type;  // 1: host, 2: CUDA, 3: pinned host memory, 13: CUDA managed memory
  std::int32_t id;
};
struct DLDataType {
  std::uint8_t code;  // 0: signed, 1: unsigned, 2: float, 6: bool
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t rank;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: dense row-major
  std::uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* manager;
  void (*deleter)(DLManagedTensor* self);
};
}

namespace {

using namespace graphrun;

// Indexed by gr_dtype.
constexpr DLDataType kDTypes[] = {{2, 32, 1}, {2, 64, 1}, {0, 32, 1}, {1, 64, 1}, {6, 8, 1}};

gr_dtype dtype_of(const DLDataType& type) {
  for (int dtype = GR_F32; dtype <= GR_BOOL; ++dtype) {
    const DLDataType& known = kDTypes[dtype];
    if (known.code == type.code && known.bits == type.bits && known.lanes == type.lanes)
      return static_cast<gr_dtype>(dtype);
  }
  throw Error(ErrorKind::input, "dlpack.dtype",
              "unsupported DLPack dtype: code " + std::to_string(type.code) + ", " + std::to_string(type.bits) +
                  " bits and " + std::to_string(type.lanes) + " lanes; expected f32, f64, i32, u64 or bool");
}

void check_dense(const DLTensor& tensor) {
  if (tensor.strides == nullptr) return;
  std::int64_t dense = 1;
  for (int axis = tensor.rank - 1; axis >= 0; --axis) {
    if (tensor.shape[axis] == 0) return;  // empty tensor: any strides are valid
    if (tensor.shape[axis] != 1 && tensor.strides[axis] != dense)
      throw Error(ErrorKind::input, "dlpack.strides", "a DLPack tensor with gaps or in another order than row-major",
                  "a contiguous copy of it can be taken");
    dense *= tensor.shape[axis];
  }
}

// A tensor together with the shape that it points to.
struct Wrapped {
  DLManagedTensor tensor = {};
  std::int64_t shape[GR_MAX_RANK] = {};
  void (*release)(void*) = nullptr;
  void* user = nullptr;
};

void free_wrapped(DLManagedTensor* self) {
  if (self == nullptr) return;
  const std::unique_ptr<Wrapped> wrapped(static_cast<Wrapped*>(self->manager));
  if (wrapped->release != nullptr) wrapped->release(wrapped->user);
}

}  // namespace

gr_error* gr_dlpack_view(const DLManagedTensor* tensor, gr_type* type, const void** data) {
  return c_api::guarded([&] {
    const DLTensor& given = c_api::checked(tensor, "tensor").tensor;
    gr_type& to_type = c_api::checked(type, "type");
    const void*& to = c_api::checked(data, "data");
    if (given.device.type != 1 && given.device.type != 3)
      throw Error(ErrorKind::input, "dlpack.device",
                  "a DLPack tensor on a device of type " + std::to_string(given.device.type) + " is not on the host",
                  "a copy on the host can be taken");
    if (given.rank > 0 && given.shape == nullptr)
      throw Error(ErrorKind::input, "dlpack.shape", "a DLPack tensor without its extents");
    gr_type found{};
    found.dtype = dtype_of(given.dtype);
    found.rank = given.rank;
    for (int axis = 0; axis < std::min(given.rank, GR_MAX_RANK); ++axis) found.shape[axis] = given.shape[axis];
    (void)c_api::type_of(found);
    check_dense(given);
    to_type = found;
    to = static_cast<const char*>(given.data) + given.byte_offset;
  });
}

gr_error* gr_dlpack_wrap(const gr_type* type, void* data, void (*release)(void*), void* user,
                         DLManagedTensor** tensor) {
  return c_api::guarded([&] {
    const gr_type& given = c_api::checked(type, "type");
    DLManagedTensor*& to = c_api::checked(tensor, "tensor");
    (void)c_api::type_of(given);
    auto wrapped = std::make_unique<Wrapped>();
    std::copy_n(given.shape, given.rank, wrapped->shape);
    wrapped->release = release;
    wrapped->user = user;
    wrapped->tensor.tensor = {data, {1, 0}, given.rank, kDTypes[given.dtype], wrapped->shape, nullptr, 0};
    wrapped->tensor.manager = wrapped.get();
    wrapped->tensor.deleter = free_wrapped;
    to = &wrapped.release()->tensor;
  });
}
