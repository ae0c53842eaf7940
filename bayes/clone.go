package bayes

import (
	"reflect"
	"slices"
)

// clone returns a copy of the model that shares no slice and no map with it. So a bound model, and a posterior, stay as
// they are when the caller reuses a slice of widths, or a map of scales, for the next model. Pointers of a part, and
// its unexported fields, are not followed.
func (m Model) clone() Model {
	for _, part := range []reflect.Value{
		reflect.ValueOf(&m.Network), reflect.ValueOf(&m.Likelihood), reflect.ValueOf(&m.Prior),
	} {
		part.Elem().Set(deepCopy(part.Elem()))
	}
	m.Stochastic.Selectors = slices.Clone(m.Stochastic.Selectors)
	return m
}

// deepCopy is a copy of a value and of the slices and maps in it, of which the empty ones are nil.
func deepCopy(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			out.Set(deepCopy(v.Elem()))
		}
	case reflect.Struct:
		out.Set(v)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(deepCopy(v.Field(i)))
			}
		}
	case reflect.Slice:
		if v.Len() > 0 {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		}
		for i := range v.Len() {
			out.Index(i).Set(deepCopy(v.Index(i)))
		}
	case reflect.Map:
		if v.Len() > 0 {
			out.Set(reflect.MakeMap(v.Type()))
		}
		for _, key := range v.MapKeys() {
			out.SetMapIndex(key, deepCopy(v.MapIndex(key)))
		}
	default:
		out.Set(v)
	}
	return out
}
