package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
)

// ErrSubmit is what Run returns where Options.On is "slurm" and tasks are left: its text says what to submit.
var ErrSubmit = errors.New("tasks for Slurm are written")

// mostInArray is how many tasks an array job may have where Slurm's MaxArraySize is 1001, its default.
const mostInArray = 1000

// programName is the program's name in the folder.
const programName = "gobnn-program"

// onSlurm writes the program, the tasks' names and the scripts of array jobs into the folder, which all nodes share.
func (o Options) onSlurm(tasks []Task, all int) error {
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
	err = copied(j.Program, filepath.Join(j.Folder, programName), 0o755)
	arrays := 0
	for some := range slices.Chunk(tasks, mostInArray) {
		arrays++
		err = errors.Join(err, j.writeArray(fmt.Sprintf("%s-%d", list, arrays), some))
	}
	if err != nil {
		return fmt.Errorf("cluster: tasks for Slurm: %w", err)
	}
	return fmt.Errorf("cluster: %w: %d of %d are done; submit the others by `for job in %s-*.sh; do sbatch \"$job\"; "+
		"done`, unless they are, and make the same call when they are done", ErrSubmit, all-len(tasks), all, quoted(list))
}

// writeArray writes the list of tasks and the script of one array job, as path.txt and path.sh. The script is for the
// program as it is now: where it has been built anew since, the script refuses it.
func (j job) writeArray(path string, tasks []Task) error {
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	var names strings.Builder
	cpus := 1
	for _, t := range tasks {
		names.WriteString(t.Name + "\n")
		cpus = max(cpus, t.CPUs)
	}
	command := `"$program"`
	for _, a := range j.Args {
		command += " " + quoted(a)
	}
	script := fmt.Sprintf(`#!/bin/sh
#SBATCH --job-name=gobnn
#SBATCH --array=1-%d
#SBATCH --cpus-per-task=%d
#SBATCH --requeue
folder=%s
program="$folder/%s"
: "${SLURM_ARRAY_TASK_ID:?submit this by sbatch}"
name=$(sed -n "${SLURM_ARRAY_TASK_ID}p" "$folder/%s.txt")
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
echo "the program ended with status $status before task '$name' was done: on a node, too, it must come to cluster.Run" \
    "with the same list" >&2
exit 1
`, len(tasks), cpus, quoted(j.Folder), programName, filepath.Base(path), doneSuffix, j.Hash, quoted(here), cpus,
		taskEntry, folderEntry, listEntry, quoted(j.Environ[listEntry]), rowsEntry, quoted(j.Environ[rowsEntry]),
		engineEntry, quoted(j.Environ[engineEntry]), command)
	return errors.Join(renameio.WriteFile(path+".txt", []byte(names.String()), 0o644),
		renameio.WriteFile(path+".sh", []byte(script), 0o755))
}

// quoted is a word of a shell's command.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// copied writes a file whole or not at all: nodes may be executing the program that it was.
func copied(from, to string, mode os.FileMode) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return renameio.WriteFile(to, content, mode)
}
