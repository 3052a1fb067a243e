/* loader.h - where `require` finds modules.
 *
 *   1 sealed     agentbox.sys.*, agentbox.loader, agentbox.strict; a file of the same
 * name in a folder that is searched is an error that names the file 2 script     the
 * folder of the script that runs 3 overlays   -L DIR, config lua_path:
 * DIR/agentbox/tools/bash.lua replaces a built-in module 4 built-in   the library inside
 * the binary; its chunks are named @agentbox/tools/bash.lua 5 rocks      package.path and
 * cpath as configured at build time, without "./?"
 *
 * Text only: precompiled chunks are refused in 2 to 4. Every module that comes from 2 to
 * 4 is recorded with its origin and hash.
 */
#ifndef AB_LUA_LOADER_H
#define AB_LUA_LOADER_H

#include <lua.h>

/* Replaces package.searchers. Call once, after the standard libraries are open. */
void abl_loader_install(lua_State *L);

/* agentbox.loader: what the library knows about modules. */
int luaopen_agentbox_loader(lua_State *L);

#endif
