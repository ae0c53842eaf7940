// The parts of PJRT's C interface (github.com/openxla/xla, xla/pjrt/c/pjrt_c_api.h) that this package calls. Its structs only
// ever grow at their ends, and say how long they are, so that programs built against one version work with later ones.

#ifndef GOBNN_PJRT_H
#define GOBNN_PJRT_H

#include <stddef.h>
#include <stdint.h>

typedef struct error error; // PJRT_Error; NULL is success

typedef struct {
	size_t size;
	void *extensions;
	error *error;
} error_args;

typedef struct {
	size_t size;
	void *extensions;
	const error *error;
	const char *message; // out: lives as long as the error
	size_t message_size; // out
} message_args;

typedef struct {
	size_t size;
	void *extensions;
	char *code;
	size_t code_size;
	const char *format;
	size_t format_size;
} program;

typedef struct {
	size_t size;
	void *extensions;
	void *client;
	const program *program;
	const char *options; // a serialised CompileOptionsProto
	size_t options_size;
	void *executable; // out: a loaded one
} compile_args;

typedef struct {
	size_t size;
	void *extensions;
	void *client;
	void *const *devices; // out
	size_t count; // out
} devices_args;

typedef struct {
	size_t size;
	void *extensions;
	void *loaded;
	void *executable; // out
} executable_args;

typedef struct {
	size_t size;
	void *extensions;
	void *executable;
} destroy_args;

typedef struct {
	size_t size;
	void *extensions;
	const void *executable;
	const char *bytes; // out: lives as long as the owner
	size_t bytes_size; // out
	void *owner; // out
	void (*free_owner)(void *owner); // out
} serialize_args;

typedef struct {
	size_t size;
	void *extensions;
	void *client;
	const char *bytes;
	size_t bytes_size;
	void *executable; // out: a loaded one
	const char *options; // NULL: those of the serialised one
	size_t options_size;
} load_args;

enum { ONLY_DURING_CALL = 0 }; // PJRT_HostBufferSemantics_kImmutableOnlyDuringCall

typedef struct {
	size_t size;
	void *extensions;
	void *client;
	const void *data;
	int type;
	const int64_t *dims;
	size_t num_dims;
	const int64_t *strides;
	size_t num_strides;
	int semantics; // PJRT_HostBufferSemantics
	void *device, *memory, *layout;
	void *done; // out: an event
	void *buffer; // out
} upload_args;

typedef struct {
	size_t size;
	void *extensions;
	void *executable, *options;
	void *const *const *arguments;
	size_t num_devices, num_arguments;
	void **const *outputs;
	void **complete; // events of the devices; NULL: none are asked for
	void *device;
} execute_args;

typedef struct {
	size_t size;
	void *extensions;
	struct {
		size_t size;
		void *extensions;
		int major, minor;
	} version;
	void (*error_destroy)(error_args *);
	void (*error_message)(message_args *);
	void *skipped0[14]; // PJRT_Error_GetCode to PJRT_Client_Devices
	error *(*devices)(devices_args *);
	void *skipped1[3]; // PJRT_Client_LookupDevice to PJRT_Client_AddressableMemories
	error *(*compile)(compile_args *);
	void *skipped2; // PJRT_Client_DefaultDeviceAssignment
	error *(*upload)(upload_args *);
	void *skipped3[17]; // PJRT_DeviceDescription_Id to PJRT_Memory_AddressableByDevices
	error *(*executable_destroy)(destroy_args *);
	void *skipped4[8]; // PJRT_Executable_Name to PJRT_Executable_OptimizedProgram
	error *(*serialize)(serialize_args *);
	void *skipped5; // PJRT_LoadedExecutable_Destroy
	error *(*executable)(executable_args *);
	void *skipped6[3]; // PJRT_LoadedExecutable_AddressableDevices to PJRT_LoadedExecutable_IsDeleted
	error *(*execute)(execute_args *);
	error *(*load)(load_args *);
} api;

// open_plugin opens a plugin's library and returns its functions, NULL with what went wrong in *message if it cannot.
const api *open_plugin(const char *path, const char **message);

// on_host is a copy of a plugin's functions whose compile is gobnn_compile with the given slot, below SLOTS.
api *on_host(const api *plugin, int slot);

// async is a copy of a plugin's functions whose upload and execute return sooner (see Async), with a slot of its own.
api *async(const api *plugin, int slot);

enum { SLOTS = 8 };

// call_devices is how many devices a client has, 0 if it does not say.
size_t call_devices(const api *plugin, void *client);

// The others return NULL, or what went wrong: call_compile the plugin's own error, the others a text to be freed by the caller.
error *call_compile(const api *plugin, compile_args *args);
char *call_serialize(const api *plugin, void *loaded, serialize_args *out);
void free_serialized(serialize_args *s);
char *call_load(const api *plugin, void *client, const void *bytes, size_t size, void **executable);

#endif
