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

// mostInArray is how many tasks an array job may have where Slurm's MaxArraySize is 1001, its default.
const mostInArray = 1000

// onSlurm writes the program, the tasks' names and the scripts of array jobs into the folder, which all nodes share.
func (o Options) onSlurm(tasks []Task, all int) error {
	o.Files = nil // they lie where the nodes find them
	j, err := o.job()
	if err != nil {
		return err
	}
	h := sha256.New()
	for _, t := range tasks {
		fmt.Fprintln(h, t.Name)
	}
	// Jobs that are submitted keep their list where a later call writes another.
	list := filepath.Join(j.Folder, "tasks-"+hex.EncodeToString(h.Sum(nil)[:4]))
	command, arrays := "sbatch "+quoted(list+"-1.sh"), (len(tasks)-1)/mostInArray+1
	if arrays > 1 {
		command = fmt.Sprintf(`for job in %s-*.sh; do sbatch "$job"; done`, quoted(list))
	}
	err = copied(j.Sources[programName], filepath.Join(j.Folder, programName), 0o755)
	for i := range arrays {
		some := tasks[i*mostInArray : min((i+1)*mostInArray, len(tasks))]
		err = errors.Join(err, j.writeArray(fmt.Sprintf("%s-%d", list, i+1), some))
	}
	if err != nil {
		return fmt.Errorf("cluster: tasks for Slurm: %w", err)
	}
	return fmt.Errorf("cluster: %w: %d of %d are done; submit the others by `%s`, unless they are, and make the same "+
		"call when they are done", ErrSubmit, all-len(tasks), all, command)
}

// writeArray writes the list of tasks and the script of one array job, as path.txt and path.sh. The script is for the
// program as it is now: where it has been built anew since, the script refuses it.
func (j job) writeArray(path string, tasks []Task) error {
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	var names strings.Builder
	cpus, gpus := 1, 0
	for _, t := range tasks {
		names.WriteString(t.Name + "\n")
		cpus, gpus = max(cpus, t.CPUs), max(gpus, t.GPUs)
	}
	gpu := ""
	if gpus > 0 {
		gpu = fmt.Sprintf("#SBATCH --gpus-per-task=%d\n", gpus)
	}
	command := `"$program"`
	for _, a := range j.Args {
		command += " " + quoted(a)
	}
	script := fmt.Sprintf(`#!/bin/sh
#SBATCH --job-name=gobnn
#SBATCH --array=1-%d
#SBATCH --cpus-per-task=%d
%s#SBATCH --requeue
folder=%s
list="$folder/%s.txt"
program="$folder/%s"
case "$SLURM_ARRAY_TASK_ID" in
''|*[!0-9]*) echo "SLURM_ARRAY_TASK_ID is '$SLURM_ARRAY_TASK_ID': submit this by sbatch" >&2; exit 1 ;;
esac
name=$(sed -n "${SLURM_ARRAY_TASK_ID}p" "$list")
case "$name" in
''|.*|*/*) echo "line $SLURM_ARRAY_TASK_ID of $list is '$name', which is no task's name" >&2; exit 1 ;;
esac
done="$folder/$name%s"
[ -e "$done" ] && exit 0
case "$(sha256sum < "$program")" in
%s*) ;;
*) echo "$program has changed since this job was written: make the same call again, and submit its jobs" >&2; exit 1 ;;
esac
mkdir -p "$folder/$name" && cd %s || exit 1
export NPROC=%d %s="$name" %s="$folder/$name" %s=%s %s=%s %s=%s
%s
status=$?
[ -e "$done" ] && exit 0
[ $status = 0 ] && echo "the program ended with status 0 before task '$name' was done: on a node, too, it must come" \
    "to cluster.Run with the same list" >&2
[ $status -gt 128 ] && echo "task '$name' was ended by signal $((status - 128))" >&2
exit $((status > 0 ? status : 1))
`, len(tasks), cpus, gpu, quoted(j.Folder), filepath.Base(path), programName, doneSuffix,
		j.Files[programName], quoted(here), cpus, taskEntry, folderEntry, listEntry, quoted(j.Environ[listEntry]), rowsEntry,
		quoted(j.Environ[rowsEntry]), engineEntry, quoted(j.Environ[engineEntry]), command)
	return errors.Join(renameio.WriteFile(path+".txt", []byte(names.String()), 0o644),
		renameio.WriteFile(path+".sh", []byte(script), 0o755))
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
