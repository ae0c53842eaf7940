package compute

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// mostKept is the number of values that an engine keeps between runs: a study that goes through its methods and data
// sets in turn finds each again, and a long session does not fill the memory.
const mostKept = 32

// Keep returns what make has made for the same key on this engine before, and what makes it if there is none: compiled
// programs outlive the run that they were made for. The value belongs to the caller until release is called, once; two
// runs at the same time have a value each. Of those that nobody uses the engine keeps the most recent, and closes the
// others. Without a key, "", nothing is kept: release closes the value.
//
// A key names everything that the value depends on, as KeyOf writes it.
func Keep[V interface{ Close() }](e *Engine, key string, make func() (V, error)) (value V, release func(), err error) {
	k := &e.kept
	if found, ok := k.take(key); ok {
		return found.(V), func() { k.put(key, found.(V)) }, nil
	}
	k.made.Add(1)
	if value, err = make(); err != nil {
		return value, nil, err
	}
	if key == "" {
		return value, value.Close, nil
	}
	return value, func() { k.put(key, value) }, nil
}

// keptValues are the values of an engine that nobody uses, the most recent last.
type keptValues struct {
	mu   sync.Mutex
	free []keptValue
	made atomic.Int64 // in all
}

type keptValue struct {
	key   string
	value interface{ Close() }
}

func (k *keptValues) take(key string) (value any, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.free, func(v keptValue) bool { return v.key == key })
	if i < 0 {
		return nil, false
	}
	value = k.free[i].value
	k.free = slices.Delete(k.free, i, i+1)
	return value, true
}

func (k *keptValues) put(key string, value interface{ Close() }) {
	k.mu.Lock()
	k.free = append(k.free, keptValue{key, value})
	var oldest []keptValue
	if over := len(k.free) - mostKept; over > 0 {
		oldest = slices.Clone(k.free[:over])
		k.free = slices.Delete(k.free, 0, over)
	}
	k.mu.Unlock()
	for _, v := range oldest {
		v.value.Close()
	}
}

// Compiled is the number of times that Keep has made a value on this engine, whether it was kept or not.
func (e *Engine) Compiled() int { return int(e.kept.made.Load()) }

// KeyOf writes values as a key for Keep: their types and all that they hold, behind pointers and in unexported fields
// too. It is "" if one holds a function or a channel, which shows neither its code nor what it captures, so that
// nothing compiled for it can be told from what another one needs.
func KeyOf(values ...any) string {
	w := keyWriter{known: true}
	for _, v := range values {
		w.write(reflect.ValueOf(v), 0)
		w.text.WriteByte(';')
	}
	if !w.known {
		return ""
	}
	return w.text.String()
}

type keyWriter struct {
	text  strings.Builder
	known bool // all could be written
}

// deepest is the depth to which KeyOf follows pointers. Beyond it there may be a cycle.
const deepest = 64

func (w *keyWriter) write(v reflect.Value, depth int) {
	if !v.IsValid() {
		w.text.WriteString("nil")
		return
	}
	if v.Type() == reflect.TypeFor[reflect.Value]() { // a field that is not exported, as its struct's owner passes it
		v = v.Interface().(reflect.Value)
	}
	if depth > deepest {
		w.known = false
	}
	if !w.known {
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			w.text.WriteString("nil")
			return
		}
		w.text.WriteByte('&')
		w.write(v.Elem(), depth+1)
	case reflect.Struct:
		fmt.Fprintf(&w.text, "%s{", name(v.Type()))
		for i := range v.NumField() {
			w.write(v.Field(i), depth+1)
			w.text.WriteByte(',')
		}
		w.text.WriteByte('}')
	case reflect.Slice, reflect.Array:
		fmt.Fprintf(&w.text, "%s%d[", name(v.Type()), v.Len())
		for i := range v.Len() {
			w.write(v.Index(i), depth+1)
			w.text.WriteByte(',')
		}
		w.text.WriteByte(']')
	case reflect.Map:
		var entries []string
		for of := v.MapRange(); of.Next(); {
			entry := keyWriter{known: true}
			entry.write(of.Key(), depth+1)
			entry.text.WriteByte(':')
			entry.write(of.Value(), depth+1)
			w.known = w.known && entry.known
			entries = append(entries, entry.text.String())
		}
		slices.Sort(entries)
		fmt.Fprintf(&w.text, "%s{%s}", name(v.Type()), strings.Join(entries, ","))
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		if !v.IsNil() {
			w.known = false
		}
		w.text.WriteString("nil")
	case reflect.String:
		w.text.WriteString(name(v.Type()))
		w.text.WriteString(strconv.Quote(v.String()))
	case reflect.Float32, reflect.Float64:
		w.text.WriteString(name(v.Type()) + strconv.FormatFloat(v.Float(), 'x', -1, 64))
	default: // booleans, integers, complex numbers
		fmt.Fprintf(&w.text, "%s %v", name(v.Type()), v)
	}
}

// name is a type's name with its whole path: two packages may have the same last part.
func name(t reflect.Type) string {
	if t.PkgPath() != "" {
		return t.PkgPath() + "." + t.Name()
	}
	return t.String()
}
