// source_folder.h: path of this build's sources, for tests that read models, documents or golden files. A function in
// the support library, so that no other object depends on the checkout's path.
#pragma once

#include <string>

std::string source_folder();  // no trailing slash
