// save_npy.cpp: writes a tensor to a file in NumPy's format.
#include "data/formats/npy.h"
#include "graphrun/verify.h"

namespace graphrun {

void save_npy(const HostTensor& tensor, OutputFile& file) {
  file.write(data::npy_header(tensor));
  file.write({reinterpret_cast<const char*>(tensor.bytes().data()), tensor.bytes().size()});
  file.commit();
}

}  // namespace graphrun
