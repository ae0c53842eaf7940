package cluster_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/environment"
)

// driven is one call of the driver, by itself, with testdata/stub in Ray's place.
type driven struct {
	home        string
	program     string            // a file
	tasks, next [][2]any          // names and CPUs, of a list and of one after it
	bounds      map[string]string // replaced in the driver's text
	environ     []string
}

// run returns what the driver says: by a task, or by "" for the job, its events' names and texts.
func (d driven) run(t *testing.T) (said map[string][]string) {
	t.Helper()
	env, err := environment.Dir()
	if err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(env, "bin", "python")
	if _, err := os.Stat(python); err != nil {
		python = "python3"
	}
	if _, err := exec.LookPath(python); err != nil {
		t.Skip("no Python here")
	}
	text := computetest.Must(os.ReadFile("driver.py"))
	source := string(text)
	for _, name := range slices.Sorted(maps.Keys(d.bounds)) {
		was, _, _ := strings.Cut(source[strings.Index(source, "\n"+name+" = "):], "  #")
		source = strings.Replace(source, was, "\n"+name+" = "+d.bounds[name], 1)
	}
	program := computetest.Must(os.ReadFile(d.program))
	sum := sha256.Sum256(program)
	j, err := json.Marshal(map[string]any{"address": "", "folder": d.home, "program": d.program,
		"hash": hex.EncodeToString(sum[:]), "args": []string{}, "environ": map[string]string{}})
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(python, "-c", source)
	c.Env = append(os.Environ(), "PYTHONPATH="+computetest.Must(filepath.Abs("testdata/stub")),
		"PYTHONDONTWRITEBYTECODE=1", "TMPDIR="+t.TempDir(), "STUB_PEAK="+filepath.Join(t.TempDir(), "peak"))
	c.Env = append(c.Env, d.environ...)
	c.Stderr = os.Stderr
	in := computetest.Must(c.StdinPipe())
	out := computetest.Must(c.StdoutPipe())
	computetest.NoError(t, c.Start())
	tasks := computetest.Must(json.Marshal(d.tasks))
	if _, err := fmt.Fprintf(in, "%s\n%s\n", j, tasks); err != nil {
		t.Fatal(err)
	}
	said = map[string][]string{}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var e struct{ Event, Task, Text string }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // Ray's own words
		}
		said[e.Task] = append(said[e.Task], strings.TrimSpace(e.Event+" "+e.Text))
		if e.Event != "end" {
			continue
		}
		if len(d.next) == 0 {
			in.Close()
		} else if err := json.NewEncoder(in).Encode(d.next); err != nil {
			t.Fatal(err)
		}
		d.next = nil
	}
	in.Close()
	_ = c.Wait() // it has said why
	return said
}

// named are tasks of one processor.
func named(names ...string) (tasks [][2]any) {
	for _, name := range names {
		tasks = append(tasks, [2]any{name, 1})
	}
	return tasks
}

// shell is a program of these commands.
func shell(t *testing.T, commands string) string {
	path := filepath.Join(t.TempDir(), "program")
	script := "#!/bin/sh\ncd \"$GOBNN_TASK_FOLDER\" || exit 1\n" +
		`trap '[ $? = 0 ] && touch "$GOBNN_TASK_FOLDER.done"' EXIT` + "\n" + commands + "\n" // as cluster.Run ends
	computetest.NoError(t, os.WriteFile(path, []byte(script), 0o755))
	return path
}

// foreign is the head of a program for ARM, on other processors, and else of one for x86.
func foreign(t *testing.T) string {
	machine := byte(183)
	if out, err := exec.Command("uname", "-m").Output(); err != nil || strings.TrimSpace(string(out)) == "aarch64" {
		machine = 62
	}
	head := make([]byte, 120)
	copy(head, "\x7fELF\x02\x01\x01")
	head[16], head[18], head[20], head[32], head[52], head[54], head[56] = 2, machine, 1, 64, 64, 56, 1
	path := filepath.Join(t.TempDir(), "foreign")
	computetest.NoError(t, os.WriteFile(path, head, 0o755))
	return path
}

// In faults and with tasks that are out of bounds the driver names what is wrong, and does the others.
func TestDriver(t *testing.T) {
	const early = "the program ended with status 0 before its task was done: on a node, too, it must come to " +
		"cluster.Run with the same list"
	const killed = "the program was ended by signal 9 (Killed), as the system ends what takes too much memory"
	const lonely = "line all nodes that can do task 'a' are lost: 1 tasks wait for one"
	big := `[ $GOBNN_TASK = big ] && truncate -s 5000000000 result; echo $GOBNN_TASK >> result`
	for name, c := range map[string]struct {
		driven
		want map[string][]string // the ends of what is said
	}{
		"as many threads as processors": {driven{tasks: named("a"), program: shell(t, `[ "$NPROC" = 1 ] || exit 3`)},
			map[string][]string{"a": {"done"}, "": {"end"}}},
		"more processors than a node has": {driven{tasks: [][2]any{{"wide", 2}, {"small", 1}}, program: shell(t, "true")},
			map[string][]string{"wide": {"failed it asks for 2 CPUs, and no node of this cluster has more than 1"},
				"small": {"done"}, "": {"end"}}},
		"a result out of bounds": {driven{tasks: named("big", "small"), program: shell(t, big)}, map[string][]string{
			"big": {"/files has 5000000004 bytes, and a task may keep 1073741824: write what is larger elsewhere",
				"/files has 5000000004 bytes, and a task may keep 1073741824: write what is larger elsewhere"},
			"small": {"done"}, "": {"end"}}},
		"a file outside": {driven{tasks: named("a"), program: shell(t, "true"), environ: []string{"STUB=outside"}},
			map[string][]string{"a": nil, "": {"ValueError: a node sends a file called '../outside'"}}},
		"a program that fails": {driven{tasks: named("a"), program: shell(t, "echo no such prior >&2; exit 3")},
			map[string][]string{"a": {"again no such prior", "failed no such prior"}, "": {"end"}}},
		"a program that ends before its task": {driven{tasks: named("a"),
			program: shell(t, "trap - EXIT; echo open table.csv: no such file")}, map[string][]string{
			"a": {"again open table.csv: no such file\n" + early, "failed open table.csv: no such file\n" + early},
			"":  {"end"}}},
		"a program that is killed": {driven{tasks: named("a"), program: shell(t, "kill -9 $$")},
			map[string][]string{"a": {"again " + killed, "failed " + killed}, "": {"end"}}},
		"a node without XLA": {driven{tasks: named("a", "b"), program: shell(t, "echo node n: no XLA >&2; exit 69")},
			map[string][]string{"a": nil, "b": nil, "": {"broken node n: no XLA"}}},
		"all nodes lost": {driven{tasks: named("a"), program: shell(t, "true"),
			bounds:  map[string]string{"PACE": ".1", "LONELY": ".3"},
			environ: []string{"STUB=all lost"}}, map[string][]string{
			"a": {"lost the node died", "done"}, "": {lonely, lonely, "end"}}},
		"a board without memory": {driven{tasks: named("a"), environ: []string{"STUB=board"},
			bounds:  map[string]string{"EVERY": ".05", "PACE": ".05"},
			program: shell(t, "echo heard >&2; echo 1 > checkpoint; sleep .3; echo later >&2; sleep .3")},
			map[string][]string{"a": {"line later", "done"}, "": {"end"}}},
		"a program for another processor": {driven{tasks: named("a", "b", "c"), program: foreign(t)},
			map[string][]string{"a": nil, "b": nil, "": {"the program is not for node "}}},
		"two lists": {driven{tasks: named("a"), next: named("b"), program: shell(t, "true")},
			map[string][]string{"a": {"done"}, "b": {"done"}, "": {"end", "end"}}},
		"a head that is too busy at first": {driven{tasks: named("a"), program: shell(t, "true"),
			environ: []string{"STUB=busy"}}, map[string][]string{"a": {"done"}, "": {"end"}}},
		"no cluster": {driven{tasks: named("a"), program: shell(t, "true"), environ: []string{"STUB=no cluster"}},
			map[string][]string{"": {"broken Version mismatch"}}},
		"a node that freezes": {driven{tasks: named("a"), program: shell(t, "cp checkpoint result"),
			bounds: map[string]string{"PACE": ".1"}, environ: []string{"STUB=frozen"}}, map[string][]string{
			"a": {"line attempt 1, heard in 1", "lost the node died", "done"}, "": {"end"}}},
		"a checkpoint while it runs": {driven{tasks: named("a"), bounds: map[string]string{"EVERY": ".05", "PACE": ".05"},
			program: shell(t, "[ -e checkpoint ] && echo had it >&2 && exit; echo 1 > checkpoint; sleep 1; exit 1")},
			map[string][]string{"a": {"again exit status 1", "line had it", "done"}, "": {"end"}}},
	} {
		t.Run(name, func(t *testing.T) {
			c.home = filepath.Join(t.TempDir(), "home")
			said := c.run(t)
			for task, want := range c.want {
				got := said[task]
				for i := range want {
					at := len(got) - len(want) + i
					if at < 0 || !strings.Contains(got[at], want[i]) {
						t.Errorf("%s: said %q, want %q", task, got, want)
						break
					}
				}
				if task != "" && len(got) != len(want) {
					t.Errorf("%s: said %q", task, got)
				}
			}
			if outside, err := os.ReadDir(filepath.Dir(c.home)); err != nil || len(outside) > 1 {
				t.Errorf("there is %v (%v)", outside, err)
			}
			kept, err := filepath.Glob(filepath.Join(c.home, ".*"))
			if err != nil || len(kept) > 0 {
				t.Errorf("left behind: %q", kept)
			}
		})
	}
}

// Tasks are handed over many at once, but where they have kept files, no more than keep the nodes busy; and of running
// ones' files the board takes what it has room for. What it does not take, it takes later.
func TestDriverMemory(t *testing.T) {
	const tasks = 12
	for _, kept := range []bool{false, true} {
		home, peak := t.TempDir(), filepath.Join(t.TempDir(), "peak")
		var names []string
		for k := range tasks {
			name := fmt.Sprint("task ", k)
			names = append(names, name)
			if kept {
				computetest.NoError(t, os.Mkdir(filepath.Join(home, name), 0o755))
				computetest.NoError(t, os.WriteFile(filepath.Join(home, name, "kept"), nil, 0o644))
			}
		}
		d := driven{home: home, tasks: named(names...), environ: []string{"STUB_PEAK=" + peak},
			bounds:  map[string]string{"EVERY": ".02", "PACE": ".1", "HELD": "150"},
			program: shell(t, `head -c 100 /dev/zero > checkpoint; sleep .2; touch result`)}
		said := d.run(t)
		for _, name := range names {
			if _, err := os.Stat(filepath.Join(home, name, "result")); err != nil || fmt.Sprint(said[name]) != "[done]" {
				t.Errorf("%s: %v, said %q", name, err, said[name])
			}
		}
		var most struct{ Tasks, Bytes int }
		text := computetest.Must(os.ReadFile(peak))
		computetest.NoError(t, json.Unmarshal(text, &most))
		if want := map[bool]int{false: tasks, true: 3}[kept]; most.Tasks != want || most.Bytes != 100 {
			t.Errorf("kept files %v: at most %d tasks at once, %d bytes on the board", kept, most.Tasks, most.Bytes)
		}
	}
}
