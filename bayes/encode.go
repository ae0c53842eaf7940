package bayes

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"gobnn/bayes/nn"
)

// A posterior's file describes its model as JSON. The parts of a model are interfaces, so each part is written with the
// name of its type, and reading looks the type up in this register.
var (
	registerMu sync.RWMutex
	register   = map[string]reflect.Type{}
)

// Register makes a type of network, likelihood or prior known by its name, so that a posterior that uses it can be
// saved and loaded. The value must be a struct, not a pointer, that encoding/json can write and read. The types of this
// library are registered already. Register panics for other values, and if the name belongs to another type.
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

// removed are the names of types that earlier versions had, and files may name.
var removed = []string{"Hierarchical", "Horseshoe", "Laplace", "StudentT", "StudentTPrior"}

func init() {
	for _, value := range []any{
		nn.MLP{}, nn.CNN{}, nn.ResNet20{}, Gaussian{}, Bernoulli{}, Categorical{}, Normal{},
	} {
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

// Registered returns an error if a posterior of the model could not be saved and loaded. Either the type of a part is
// not registered, or a part changes when it is written as JSON and read back, for instance because a field is not
// exported. Samplers check this before training, so that the error does not come hours later.
func (m Model) Registered() error {
	_, err := m.MarshalJSON()
	return err
}

// checkWritten returns an error if reading settings, which is part written as JSON, does not give part again.
func checkWritten(part any, settings []byte) error {
	read := reflect.New(reflect.TypeOf(part))
	if err := json.Unmarshal(settings, read.Interface()); err != nil {
		return fmt.Errorf("bayes: %T is written as %s, which cannot be read back: %w", part, settings, err)
	}
	if _, own := part.(json.Marshaler); own { // it may leave out fields that have no influence, so compare the JSON
		if again, err := json.Marshal(read.Elem().Interface()); err != nil || !bytes.Equal(again, settings) {
			return fmt.Errorf("bayes: %T is written as %s, and read back as %s: %w", part, settings, again,
				cmp.Or(err, errors.New("its MarshalJSON and UnmarshalJSON contradict each other")))
		}
		return nil
	}
	// Copies, in which empty slices and maps are nil, as a file may have them.
	was, is := deepCopy(reflect.ValueOf(part)).Interface(), deepCopy(read.Elem()).Interface()
	if !reflect.DeepEqual(was, is) {
		return fmt.Errorf("bayes: %T is not the same once it is written as JSON (%s) and read back: it was %+v and is %+v; "+
			"a posterior that is loaded would have a different model; export the field, or give the type MarshalJSON and "+
			"UnmarshalJSON", part, settings, was, is)
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
		var err error
		if *part.to, err = written(part.value); err != nil {
			return nil, err
		}
	}
	file.Stochastic, file.Scaling = m.Stochastic, m.Scaling
	return json.Marshal(file)
}

// written is a value of a registered type, as JSON that reads back as the same.
func written(value any) (tagged, error) {
	kind := reflect.TypeOf(value)
	registerMu.RLock()
	known := register[kind.Name()] == kind
	registerMu.RUnlock()
	if !known {
		return tagged{}, fmt.Errorf("bayes: type %T is not registered: call bayes.Register with a value of it, a struct and "+
			"no pointer, so that it can be read back", value)
	}
	settings, err := json.Marshal(value)
	if err != nil {
		return tagged{}, fmt.Errorf("bayes: writing %T: %w", value, err)
	}
	return tagged{typeName(value), settings}, checkWritten(value, settings)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (m *Model) UnmarshalJSON(data []byte) error {
	var file modelFile
	text := json.NewDecoder(bytes.NewReader(data))
	text.DisallowUnknownFields() // an option that this version does not know would be ignored, and the model another
	if err := text.Decode(&file); err != nil {
		return fmt.Errorf("bayes: model: %w (was it written by a newer version?)", err)
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
	if !known && slices.Contains(removed, t.Type) {
		return value, fmt.Errorf("bayes: the model uses %q, which was removed from this library: load it with a version "+
			"that still has it, or call bayes.Register on a type of this name of your own", t.Type)
	}
	if !known {
		slices.Sort(names)
		return value, fmt.Errorf("bayes: the model uses type %q, which is not registered (known: %s): call bayes.Register "+
			"on it first", t.Type, strings.Join(names, ", "))
	}
	pointer := reflect.New(kind)
	settings := json.NewDecoder(bytes.NewReader(t.Settings))
	settings.DisallowUnknownFields() // a field that was renamed since would be 0, and the model another
	if err := settings.Decode(pointer.Interface()); err != nil {
		return value, fmt.Errorf("bayes: settings of %q: %w (was the type changed since they were written? Give a changed "+
			"type another name)", t.Type, err)
	}
	value, ok := pointer.Elem().Interface().(T)
	if !ok {
		return value, fmt.Errorf("bayes: type %q is no %v", t.Type, reflect.TypeFor[T]())
	}
	return value, nil
}
