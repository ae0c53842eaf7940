package bayes

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"gobnn/bayes/nn"
)

// A posterior's file describes its model as JSON. The parts of a model are interfaces, so each is written with its
// type's name, by which this register finds the type again.
var (
	registerMu sync.RWMutex
	register   = map[string]reflect.Type{}
)

// Register makes a type of network, likelihood or prior known by its name, so that a posterior that uses it can be
// saved and loaded. The value must be a struct, not a pointer, that encoding/json can write and read. The library's own
// are registered. Register panics for other values, and if the name belongs to another type.
func Register(value any) {
	registerMu.Lock()
	defer registerMu.Unlock()
	kind := reflect.TypeOf(value)
	if kind == nil || kind.Kind() != reflect.Struct || kind.Name() == "" {
		panic(fmt.Sprintf("bayes: Register of a %T: it must be a struct with a name, not a pointer to one", value))
	}
	if known, taken := register[kind.Name()]; taken && known != kind {
		panic(fmt.Sprintf("bayes: Register of %v: the name belongs to %v", kind, known))
	}
	register[kind.Name()] = kind
}

func init() {
	for _, value := range []any{nn.MLP{}, Gaussian{}, Bernoulli{}, Categorical{}, Normal{}, Laplace{}} {
		Register(value)
	}
}

func typeName(value any) string { return reflect.TypeOf(value).Name() }

// tagged is a value with the name of its type.
type tagged struct {
	Type     string          `json:"type"`
	Settings json.RawMessage `json:"settings"`
}

type modelFile struct {
	Network    tagged    `json:"network"`
	Likelihood tagged    `json:"likelihood"`
	Prior      tagged    `json:"prior"`
	Stochastic Partition `json:"stochastic"`
	Scaling    Scaling   `json:"scaling,omitzero"`
}

// Registered is an error if the type of a part of the model is not registered, so that its posterior could not be
// saved. Samplers check it before training, not hours later.
func (m Model) Registered() error {
	if m.Prior == nil {
		m.Prior = Normal{}
	}
	for _, part := range []any{m.Network, m.Likelihood, m.Prior} {
		if err := checkRegistered(part); err != nil {
			return err
		}
	}
	return nil
}

func checkRegistered(part any) error {
	registerMu.RLock()
	defer registerMu.RUnlock()
	if kind := reflect.TypeOf(part); kind == nil || register[kind.Name()] != kind {
		return fmt.Errorf("bayes: type %T is not registered: call bayes.Register with a value of it, a struct and no "+
			"pointer, "+
			"so that it can be read back", part)
	}
	return nil
}

// MarshalJSON writes the model's parts with the names of their types.
func (m Model) MarshalJSON() ([]byte, error) {
	if m.Prior == nil {
		m.Prior = Normal{}
	}
	var file modelFile
	for _, part := range []struct {
		value any
		to    *tagged
	}{{m.Network, &file.Network}, {m.Likelihood, &file.Likelihood}, {m.Prior, &file.Prior}} {
		if part.value == nil {
			return nil, fmt.Errorf("bayes: a Model without a Network or a Likelihood cannot be written")
		}
		if err := checkRegistered(part.value); err != nil {
			return nil, err
		}
		settings, err := json.Marshal(part.value)
		if err != nil {
			return nil, fmt.Errorf("bayes: writing %T: %w", part.value, err)
		}
		*part.to = tagged{typeName(part.value), settings}
	}
	file.Stochastic, file.Scaling = m.Stochastic, m.Scaling
	return json.Marshal(file)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (m *Model) UnmarshalJSON(data []byte) error {
	var file modelFile
	if err := json.Unmarshal(data, &file); err != nil {
		return fmt.Errorf("bayes: model: %w", err)
	}
	var read Model
	var err error
	if read.Network, err = decode[nn.Network](file.Network); err != nil {
		return err
	}
	if read.Likelihood, err = decode[Likelihood](file.Likelihood); err != nil {
		return err
	}
	if read.Prior, err = decode[Prior](file.Prior); err != nil {
		return err
	}
	read.Stochastic, read.Scaling = file.Stochastic, file.Scaling
	*m = read
	return nil
}

func decode[T any](t tagged) (value T, err error) {
	registerMu.RLock()
	kind, known := register[t.Type]
	names := make([]string, 0, len(register))
	for name := range register {
		names = append(names, name)
	}
	registerMu.RUnlock()
	if !known {
		slices.Sort(names)
		return value, fmt.Errorf("bayes: the model uses type %q, which is not registered (known: %s): call bayes.Register "+
			"on it first", t.Type, strings.Join(names, ", "))
	}
	pointer := reflect.New(kind)
	if err := json.Unmarshal(t.Settings, pointer.Interface()); err != nil {
		return value, fmt.Errorf("bayes: settings of %q: %w", t.Type, err)
	}
	value, ok := pointer.Elem().Interface().(T)
	if !ok {
		return value, fmt.Errorf("bayes: type %q is no %v", t.Type, reflect.TypeFor[T]())
	}
	return value, nil
}
