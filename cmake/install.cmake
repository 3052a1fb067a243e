# What `make install`, the .deb and the rock put where.
include(GNUInstallDirs)

# The Lua library by module name: what a script in stock Lua requires, and what an editor reads for completion.
function(ab_install_lua dir)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/lua/stdlib/ DESTINATION ${dir}/agentbox FILES_MATCHING PATTERN "*.lua")
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/lua/tools/ DESTINATION ${dir}/agentbox/tools FILES_MATCHING PATTERN "*.lua")
endfunction()

if(AB_ROCK)
  install(TARGETS agentbox_core LIBRARY DESTINATION ${AB_ROCK_LIBDIR}/agentbox)
  ab_install_lua(${AB_ROCK_LUADIR})
  return()
endif()

install(TARGETS agentbox RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
ab_install_lua(${CMAKE_INSTALL_DATADIR}/agentbox/lua)
install(DIRECTORY tasks DESTINATION ${CMAKE_INSTALL_DATADIR}/agentbox
  PATTERN "__pycache__" EXCLUDE PATTERN ".pytest_cache" EXCLUDE PATTERN "CMakeLists.txt" EXCLUDE)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
install(FILES README.md ARCHITECTURE.md CHANGES DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The manual page and the completions are printed by the program itself. A sanitised or instrumented build is not installed.
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(made ${CMAKE_BINARY_DIR}/made)
  set(outputs)
  foreach(shell bash zsh fish)
    add_custom_command(OUTPUT ${made}/agentbox.${shell}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${made}
      COMMAND agentbox completion ${shell} > ${made}/agentbox.${shell} DEPENDS agentbox VERBATIM)
    list(APPEND outputs ${made}/agentbox.${shell})
  endforeach()
  install(FILES ${made}/agentbox.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME agentbox)
  install(FILES ${made}/agentbox.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME _agentbox)
  install(FILES ${made}/agentbox.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  find_program(SCDOC scdoc)
  if(SCDOC)
    add_custom_command(OUTPUT ${made}/agentbox.1.gz
      COMMAND agentbox help --scdoc > ${made}/agentbox.1.scd
      COMMAND ${SCDOC} < ${made}/agentbox.1.scd > ${made}/agentbox.1
      COMMAND gzip -9nkf ${made}/agentbox.1 DEPENDS agentbox ${made}/agentbox.bash VERBATIM)
    list(APPEND outputs ${made}/agentbox.1.gz)
    install(FILES ${made}/agentbox.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  endif()
  add_custom_target(made DEPENDS ${outputs})
endif()

include(cmake/package.cmake)
