# An overlay port that builds the checkout it lies in: vcpkg install graphrun --overlay-ports=cmake/packaging/vcpkg
# A port of a registry replaces the next line by vcpkg_from_git() with the address and commit of a release.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
vcpkg_check_linkage(ONLY_DYNAMIC_LIBRARY)
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -DBUILD_TESTING=OFF -DGRAPHRUN_UNITY=ON -DGRAPHRUN_CUDA=OFF -DGRAPHRUN_SYSTEM_ZLIB=ON -DGRAPHRUN_WERROR=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME graphrun CONFIG_PATH lib/cmake/graphrun)
vcpkg_fixup_pkgconfig()
vcpkg_copy_tools(TOOL_NAMES graphrun AUTO_CLEAN)
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
