// source_folder.h: where the sources of this build lie, for tests that read models, documents or golden files.
// A function in the support library, so that no other object depends on the folder of the checkout.
#pragma once

#include <string>

std::string source_folder();  // without a slash at its end
