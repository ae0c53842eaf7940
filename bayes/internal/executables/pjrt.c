//go:build cgo && linux && !noxla && (amd64 || arm64)

#include "pjrt.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

extern error *gobnn_compile(int slot, compile_args *args); // in Go

// The compile function that a plugin's users see has no argument that says which plugin it is of: so there is one for each.
#define HOOK(slot) \
	static error *compile##slot(compile_args *args) { return gobnn_compile(slot, args); }
HOOK(0) HOOK(1) HOOK(2) HOOK(3) HOOK(4) HOOK(5) HOOK(6) HOOK(7)

static error *(*const hooks[SLOTS])(compile_args *) = {
	compile0, compile1, compile2, compile3, compile4, compile5, compile6, compile7,
};

const api *open_plugin(const char *path, const char **message) {
	void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	if (library == NULL) {
		*message = dlerror();
		return NULL;
	}
	const api *(*get)(void) = (const api *(*)(void))dlsym(library, "GetPjrtApi");
	if (get == NULL) {
		*message = dlerror();
		return NULL;
	}
	const api *plugin = get();
	if (plugin == NULL) {
		*message = "GetPjrtApi gives nothing";
		return NULL;
	}
	if (plugin->version.major != 0 || plugin->size < sizeof(api)) {
		*message = "another major version of PJRT";
		return NULL;
	}
	return plugin;
}

api *hooked(const api *plugin, int slot) {
	api *copy = malloc(plugin->size);
	memcpy(copy, plugin, plugin->size);
	copy->compile = hooks[slot];
	return copy;
}

error *call_compile(const api *plugin, compile_args *args) { return plugin->compile(args); }

// told is an error's message, and frees the error.
static char *told(const api *plugin, error *e) {
	if (e == NULL) {
		return NULL;
	}
	message_args m = {.size = sizeof(m), .error = e};
	plugin->error_message(&m);
	char *text = strndup(m.message, m.message_size);
	error_args d = {.size = sizeof(d), .error = e};
	plugin->error_destroy(&d);
	return text;
}

size_t call_devices(const api *plugin, void *client) {
	devices_args d = {.size = sizeof(d), .client = client};
	char *wrong = told(plugin, plugin->devices(&d));
	if (wrong != NULL) {
		free(wrong);
		return 0;
	}
	return d.count;
}

char *call_serialize(const api *plugin, void *loaded, serialize_args *out) {
	executable_args of = {.size = sizeof(of), .loaded = loaded};
	char *wrong = told(plugin, plugin->executable(&of));
	if (wrong != NULL) {
		return wrong;
	}
	*out = (serialize_args){.size = sizeof(*out), .executable = of.executable};
	wrong = told(plugin, plugin->serialize(out));
	destroy_args d = {.size = sizeof(d), .executable = of.executable};
	char *wrong2 = told(plugin, plugin->executable_destroy(&d));
	if (wrong == NULL) {
		return wrong2;
	}
	free(wrong2);
	return wrong;
}

void free_serialized(serialize_args *s) { s->free_owner(s->owner); }

char *call_load(const api *plugin, void *client, const void *bytes, size_t size, void **executable) {
	load_args l = {.size = sizeof(l), .client = client, .bytes = bytes, .bytes_size = size};
	char *wrong = told(plugin, plugin->load(&l));
	*executable = l.executable;
	return wrong;
}
