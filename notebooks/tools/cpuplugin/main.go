// Command cpuplugin puts the CPU plugin of XLA into a folder with go-xla's own installer. Set-up runs it where Python's
// package index has no such plugin, which is on macOS.
//
//	go run ./cpuplugin FOLDER
package main

import (
	"fmt"
	"os"

	"github.com/gomlx/go-xla/installer"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: cpuplugin FOLDER")
		os.Exit(2)
	}
	if err := installer.CPUAutoInstall(os.Args[1], true, installer.Verbose); err != nil {
		fmt.Fprintf(os.Stderr, "cpuplugin: %v\n", err)
		os.Exit(1)
	}
}
