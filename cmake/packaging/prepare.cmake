# prepare.cmake: run by CPack between installing into its folder and packing: texts that Debian wants compressed are,
# nobody but the owner may write, and every file has the time of SOURCE_DATE_EPOCH.
set(tree "${CPACK_TEMPORARY_INSTALL_DIRECTORY}")
if(CPACK_GENERATOR STREQUAL "DEB")
  file(GLOB_RECURSE texts "${tree}/*/changelog.Debian" "${tree}/*.1")
  foreach(text IN LISTS texts)
    execute_process(COMMAND gzip -9n "${text}" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
endif()
execute_process(COMMAND chmod -R u+w,go-w "${tree}" COMMAND_ERROR_IS_FATAL ANY)
if(DEFINED ENV{SOURCE_DATE_EPOCH})
  execute_process(COMMAND find "${tree}" -exec touch --no-dereference --date=@$ENV{SOURCE_DATE_EPOCH} {} +
    COMMAND_ERROR_IS_FATAL ANY)
endif()
