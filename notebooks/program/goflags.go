package program

import (
	"regexp"
	"strings"
)

// moduleFlag is -mod or -modfile in GOFLAGS; a flag that contains space stands in quotes.
var moduleFlag = regexp.MustCompile(
	`(^|\s)(--?mod(file)?=[^\s'"]*|'--?mod(file)?=[^']*'|"--?mod(file)?=[^"]*")`)

// InWorkspace is GOFLAGS without -mod and -modfile, which conflict with the workspace that cells are compiled in.
func InWorkspace(flags string) string {
	return strings.TrimSpace(moduleFlag.ReplaceAllString(flags, "$1"))
}

// Linking is GOFLAGS with flags for the linker. They come first, so that the user's own -ldflags replace them.
func Linking(flags, linker string) string {
	return strings.TrimSpace("'-ldflags=" + linker + "' " + flags)
}
