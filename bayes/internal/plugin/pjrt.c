//go:build cgo && linux && !noxla && (amd64 || arm64)

#include "pjrt.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

extern error *gobnn_compile(int slot, compile_args *args); // in Go

static const api *plugins[SLOTS]; // those of the slots

// Numbers that are copied before an upload returns, not after.
enum { FEW = 1 << 16 };

static error *upload(const api *plugin, upload_args *args) {
	int64_t count = 1;
	for (size_t i = 0; i < args->num_dims; i++) {
		count *= args->dims[i];
	}
	if (count <= FEW) {
		args->semantics = ONLY_DURING_CALL;
	}
	return plugin->upload(args);
}

static error *execute(const api *plugin, execute_args *args) {
	args->complete = NULL; // go-xla waits for the events that it finds here
	return plugin->execute(args);
}

// The functions that a plugin's users see have no argument that says which plugin they are of: so there is one for each.
#define HOOK(slot) \
	static error *compile##slot(compile_args *args) { return gobnn_compile(slot, args); } \
	static error *upload##slot(upload_args *args) { return upload(plugins[slot], args); } \
	static error *execute##slot(execute_args *args) { return execute(plugins[slot], args); }
HOOK(0) HOOK(1) HOOK(2) HOOK(3) HOOK(4) HOOK(5) HOOK(6) HOOK(7)

static error *(*const compiles[SLOTS])(compile_args *) = {
	compile0, compile1, compile2, compile3, compile4, compile5, compile6, compile7,
};
static error *(*const uploads[SLOTS])(upload_args *) = {
	upload0, upload1, upload2, upload3, upload4, upload5, upload6, upload7,
};
static error *(*const executes[SLOTS])(execute_args *) = {
	execute0, execute1, execute2, execute3, execute4, execute5, execute6, execute7,
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

static api *copy_of(const api *plugin, int slot) {
	plugins[slot] = plugin;
	api *copy = malloc(plugin->size);
	memcpy(copy, plugin, plugin->size);
	return copy;
}

api *on_host(const api *plugin, int slot) {
	api *copy = copy_of(plugin, slot);
	copy->compile = compiles[slot];
	return copy;
}

api *async(const api *plugin, int slot) {
	api *copy = copy_of(plugin, slot);
	copy->upload = uploads[slot];
	copy->execute = executes[slot];
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
