/* loader.h - where `require` finds modules.
 *
 * Order: sealed primitives (agentbox.sys.*), the script's own folder, overlays (-L DIR, module-name layout),
 * the library inside the binary, rocks (package.path and cpath as configured). Text only.
 */
#ifndef AB_LUA_LOADER_H
#define AB_LUA_LOADER_H

#include <lua.h>

/* Replaces package.searchers. Call once, after the standard libraries are open. */
void abl_loader_install(lua_State *L);

#endif
