// common_headers.h: headers that most tests include, precompiled in builds from scratch (cmake/Layers.cmake).
#pragma once

#include <gtest/gtest.h>

#include "../cmake/common_headers.h"
