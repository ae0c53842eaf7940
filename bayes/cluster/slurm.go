package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
)

// ErrSubmit is what Run returns where Options.On is "slurm" and tasks are left: its text says what to submit.
var ErrSubmit = errors.New("tasks for Slurm are written")

// onSlurm writes the program, the tasks' names and the script of an array job into the folder, which all nodes share.
func (o Options) onSlurm(tasks []Task, all int) error {
	folder, err := filepath.Abs(o.Folder)
	if err != nil {
		return err
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cluster: which program is this? %w", err)
	}
	var names strings.Builder
	cpus, gpus := 1, 0
	for _, t := range tasks {
		names.WriteString(t.Name + "\n")
		cpus, gpus = max(cpus, t.CPUs), max(gpus, t.GPUs)
	}
	// Jobs that are submitted keep their list where a later call writes another.
	sum := sha256.Sum256([]byte(names.String()))
	list := "tasks-" + hex.EncodeToString(sum[:4])
	args := make([]string, len(os.Args)-1)
	for i, a := range os.Args[1:] {
		args[i] = quoted(a)
	}
	gpu := ""
	if gpus > 0 {
		gpu = fmt.Sprintf("#SBATCH --gpus-per-task=%d\n", gpus)
	}
	script := fmt.Sprintf(`#!/bin/sh
#SBATCH --job-name=gobnn
#SBATCH --array=1-%d
#SBATCH --cpus-per-task=%d
%s#SBATCH --requeue
folder=%s
list="$folder/%s.txt"
case "$SLURM_ARRAY_TASK_ID" in
''|*[!0-9]*) echo "SLURM_ARRAY_TASK_ID is '$SLURM_ARRAY_TASK_ID': submit this by sbatch" >&2; exit 1 ;;
esac
name=$(sed -n "${SLURM_ARRAY_TASK_ID}p" "$list")
case "$name" in
''|.*|*/*) echo "line $SLURM_ARRAY_TASK_ID of $list is '$name', which is no task's name" >&2; exit 1 ;;
esac
[ -e "$folder/$name%s" ] && exit 0
mkdir -p "$folder/$name" && cd %s || exit 1
export %s="$name" %s=%s %s=%s %s="$folder/$name"
"$folder/%s" %s && touch "$folder/$name%s"
`, len(tasks), cpus, gpu, quoted(folder), list, doneSuffix, quoted(here), taskEntry, listEntry, quoted(o.list()),
		rowsEntry, quoted(o.rows), folderEntry, programName, strings.Join(args, " "), doneSuffix)
	path := filepath.Join(folder, list)
	if err := errors.Join(copied(program, filepath.Join(folder, programName), 0o755),
		renameio.WriteFile(path+".txt", []byte(names.String()), 0o644),
		renameio.WriteFile(path+".sh", []byte(script), 0o755)); err != nil {
		return fmt.Errorf("cluster: tasks for Slurm: %w", err)
	}
	return fmt.Errorf("cluster: %w: %d of %d are done; submit the others by `sbatch %s.sh`, unless they are, and make "+
		"the same call when they are done", ErrSubmit, all-len(tasks), all, path)
}

// quoted is a word of a shell's command.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// copied writes a file whole or not at all: nodes may be executing the program that it was.
func copied(from, to string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := renameio.NewPendingFile(to, renameio.WithPermissions(mode))
	if err != nil {
		return err
	}
	defer out.Cleanup() //nolint:errcheck // after CloseAtomicallyReplace there is nothing
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.CloseAtomicallyReplace()
}
