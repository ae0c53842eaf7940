package compute

import "gobnn/bayes/compute/environment"

// CacheDir is the folder that holds what the project keeps between runs: the private environment, downloaded data and
// the results of studies. It is $GOBNN_CACHE where that is set, else "gobnn" in the user's cache folder. It need not
// exist.
func CacheDir() (string, error) { return environment.CacheDir() }

// EnvironmentStamp is the file in EnvironmentDir that set-up writes last: without it the environment is not whole.
const EnvironmentStamp = environment.Stamp

// EnvironmentDir is the folder of the private environment that `go run ./notebooks setup` makes: a Python venv with
// JupyterLab and the XLA plugin. It is whole if it holds EnvironmentStamp.
func EnvironmentDir() (string, error) { return environment.Dir() }
