# The .deb: `make deb`. One per distribution, since the sonames of what it links differ.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME agentbox)
set(CPACK_PACKAGE_CONTACT "agentbox authors <authors@agentbox.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "rollouts for training LLM agents")
set(CPACK_PACKAGE_DESCRIPTION "Runs tasks with a language model in native Linux sandboxes, verifies
the result and records the trajectory for training. Tools, agents, verifiers
and exporters are Lua files.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Loaded when first used, so dpkg-shlibdeps does not see them; renamed by the 64-bit time transition.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libcurl4 | libcurl4t64, libssl3 | libssl3t64, libsqlite3-0, libarchive13 | libarchive13t64, ca-certificates")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3-pytest, uidmap")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  ${CMAKE_SOURCE_DIR}/packaging/deb/postinst ${CMAKE_SOURCE_DIR}/packaging/deb/prerm)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

install(FILES packaging/deb/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})
# The profile's rules need AppArmor 4 (Ubuntu 24.04, Debian 13); an older one would report an error at every boot.
file(STRINGS /etc/os-release os_release REGEX "^(ID|VERSION_ID)=")
string(REPLACE "\"" "" os_release "${os_release}")
set(apparmor_4 OFF)
if(os_release MATCHES "VERSION_ID=(1[3-9]|2[4-9]\\.)")
  set(apparmor_4 ON)
endif()
option(AB_APPARMOR "Install the AppArmor profile" ${apparmor_4})
if(AB_APPARMOR)
  # CMake prepends DESTDIR to an absolute path, so a scratch root stays one.
  install(FILES packaging/apparmor/agentbox DESTINATION /etc/apparmor.d)
  file(WRITE ${CMAKE_BINARY_DIR}/made/conffiles "/etc/apparmor.d/agentbox\n")
  list(APPEND CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/made/conffiles)
else()
  install(FILES packaging/apparmor/agentbox DESTINATION ${CMAKE_INSTALL_DATADIR}/agentbox/apparmor)
endif()
include(CPack)
