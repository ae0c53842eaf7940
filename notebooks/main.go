// Command notebooks sets up, runs and opens the project's notebooks, fits tables and predicts by them, and lists and
// runs the studies behind the papers' tables and figures. Run it from the project's folder:
//
//	go run ./notebooks setup
//	go run ./notebooks run quickstart
//	go run ./notebooks lab
//	go run ./notebooks fit data.csv -target price
//	go run ./notebooks predict data.posterior new.csv
//	go run ./notebooks report data.posterior later.csv
//	go run ./notebooks list
//	go run ./notebooks reproduce ohsmc.table8
//
// It links neither GoMLX nor XLA, so that on a fresh machine it starts at once and can show its progress; for `fit`,
// `predict` and `report` it builds and executes the program in notebooks/table, for `list` and `reproduce` that in
// notebooks/reproduce.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"gobnn/bayes/limits"
	"gobnn/notebooks/program"
	"gobnn/notebooks/setup"
)

const usage = `Tables, the notebooks, and the studies behind them.

usage: go run ./notebooks VERB [flags]

  setup            install the private environment, once: Python packages, GoNB, the XLA plugin; -kernel also gives the
                   kernel to another Jupyter
  run NAME...      execute notebooks and save them with their outputs in your work folder
  lab              open JupyterLab on your work folder, with copies of the notebooks
  fit DATA         fit the default method to a table; writes a posterior, and a page that says whether to trust it
  predict P NEW    predict the rows of a file by the posterior P
  report P DATA    write the page for rows with targets
  list             list every table and figure of the five papers, and in what ours are smaller
  reproduce ID...  run the study behind a table or figure, and print its results beside the paper's

run and lab set up the environment if needed. Your work folder is $GOBNN_WORK, or gobnn in your home folder. The
environment, results and checkpoints are in $GOBNN_CACHE, or gobnn in the user's cache folder.
go run ./notebooks VERB -h shows a verb's flags.
`

// verbs by name; each gets its arguments.
var verbs = map[string]func(ctx context.Context, root string, args []string) error{
	"setup": setupVerb,
	"run":   runVerb,
	"lab":   labVerb,

	"fit": of("table", "fit"), "predict": of("table", "predict"), "report": of("table", "report"),
	"list": of("reproduce", "list"), "reproduce": of("reproduce", "reproduce"),
}

// of is a verb of the program in a folder of notebooks.
func of(program, verb string) func(ctx context.Context, root string, args []string) error {
	return func(ctx context.Context, root string, args []string) error {
		return become(ctx, root, program, append([]string{verb}, args...))
	}
}

func main() {
	program.Main(func(ctx context.Context) error { return dispatch(ctx, os.Args[1:]) })
}

func dispatch(ctx context.Context, args []string) error {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return program.ErrUsage
	}
	switch args[0] {
	case "-h", "-help", "--help", "help":
		fmt.Print(usage)
		return nil
	}
	verb, ok := verbs[args[0]]
	if !ok {
		fmt.Fprintf(os.Stderr, "%s\ngobnn: there is no verb %q; did you mean %s?\n", usage, args[0],
			strings.Join(limits.Nearest(args[0], slices.Sorted(maps.Keys(verbs))), ", "))
		return program.ErrUsage
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	root, err := setup.Root(here)
	if err != nil {
		return err
	}
	return verb(ctx, root, args[1:])
}

// noMore is an error if there are arguments that a verb does not take.
func noMore(flags *flag.FlagSet, rest []string) error {
	if len(rest) == 0 {
		return nil
	}
	fmt.Fprintf(os.Stderr, "gobnn %s: takes no argument, got %q\n", flags.Name(), rest)
	return program.ErrUsage
}

// environmentFlags adds the flags of a verb that may set up.
func environmentFlags(flags *flag.FlagSet, s *setup.Setup) {
	flags.StringVar(&s.Python, "python", "", "the Python `interpreter` for the environment (default: the first "+
		"on PATH that is 3.10 or later)")
}

func setupVerb(ctx context.Context, root string, args []string) error {
	flags := flag.NewFlagSet("setup", flag.ContinueOnError)
	s := setup.Setup{Root: root, Out: os.Stdout, Help: true}
	environmentFlags(flags, &s)
	kinds := map[string]*bool{
		"cuda": flags.Bool("cuda", false, "also install the plugin for NVIDIA's GPUs and NVIDIA's libraries: 4 GB"),
		"tpu":  flags.Bool("tpu", false, "also install the plugin for Google's TPUs"),
		"ray":  flags.Bool("ray", false, "also install Ray, which runs reproduce -on ray, and package cluster: 300 MB"),
		"ocr":  flags.Bool("ocr", false, "also install the network of own-network.ipynb, which reads printed text: 15 MB"),
	}
	kernel := flags.Bool("kernel", false, "also tell another Jupyter of the kernel \"Go (gobnn)\": the user's")
	prefix := flags.String("prefix", "", "with -kernel: the Jupyter installed in `FOLDER`, such as a venv")
	remove := flags.Bool("remove", false, "with -kernel: take that back, and set up nothing")
	rest, err := program.Parse(flags, `usage: go run ./notebooks setup [flags]

Installs the private environment in $GOBNN_CACHE, or gobnn in the user's cache folder: a Python venv with JupyterLab
and the XLA plugin from pinned and hashed requirements, and GoNB, goimports and gopls from pinned tool modules. Then it
compiles the library once. It needs Python 3.10 or later with venv, a C compiler and the network. A second setup does
nothing unless the pinned versions have changed. With -kernel another Jupyter, such as that of VS Code, nbconvert,
papermill or JupyterHub, finds the kernel too; it is written anew by each setup -kernel. After -cuda or -tpu, programs
compute on the GPU or TPU, if there is one.
`, args)
	if err != nil {
		return err
	}
	if err := noMore(flags, rest); err != nil {
		return err
	}
	if !*kernel && (*prefix != "" || *remove) {
		return errors.New("setup: -prefix and -remove belong to -kernel: give that too")
	}
	folder, err := setup.KernelFolder(*prefix)
	if err != nil {
		return err
	}
	if *remove {
		if err := setup.RemoveKernel(folder); err != nil {
			return err
		}
		fmt.Printf("gobnn: removed %s\n", folder)
		return nil
	}
	ready, err := setup.Ready(root, true)
	if err != nil {
		return err
	}
	env, err := s.Ensure(ctx)
	if err != nil {
		return err
	}
	if ready {
		fmt.Fprintf(os.Stdout, "gobnn: set up in %s\n", env)
	}
	for _, kind := range []string{"cuda", "tpu", "ray", "ocr"} {
		if *kinds[kind] {
			if err := s.EnsureExtra(ctx, kind); err != nil {
				return err
			}
		}
	}
	if *kernel {
		if err := s.WriteKernel(ctx, env, folder); err != nil {
			return err
		}
		fmt.Printf("gobnn: the kernel \"Go (gobnn)\" is in %s; with -remove this command takes it away again\n", folder)
	}
	return nil
}
