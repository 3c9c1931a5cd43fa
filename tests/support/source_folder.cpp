#include "support/source_folder.h"

std::string source_folder() {
  return GRAPHRUN_SOURCE_DIR;
}
