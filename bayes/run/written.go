package run

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// CheckWritten is an error if JSON leaves out a field of settings that is set: an unexported one, or one with the tag
// "-". A checkpoint knows its run by the JSON of such settings, as of a kernel of a user's own, and would be resumed
// with others. A type with a MarshalJSON is trusted to write what decides; what its exported fields of interface types
// hold is not its own, and is checked.
func CheckWritten(settings any) error {
	if field := leftOut(reflect.ValueOf(settings)); field != "" {
		return fmt.Errorf("%s is not written as JSON, by which a checkpoint knows its settings: a run with another value "+
			"would go on from it; export the field, give the type a MarshalJSON, or leave the checkpoint out", field)
	}
	return nil
}

var marshaler = reflect.TypeFor[json.Marshaler]()

// leftOut names the first such field; "": there is none.
func leftOut(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			return leftOut(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if field := leftOut(v.Index(i)); field != "" {
				return field
			}
		}
	case reflect.Map:
		for of := v.MapRange(); of.Next(); {
			if field := leftOut(of.Value()); field != "" {
				return field
			}
		}
	case reflect.Struct:
		trusted := v.Type().Implements(marshaler) || reflect.PointerTo(v.Type()).Implements(marshaler)
		for i := range v.NumField() {
			field, value := v.Type().Field(i), v.Field(i)
			written := field.IsExported() && field.Tag.Get("json") != "-" ||
				field.Anonymous && field.Type.Kind() == reflect.Struct
			switch {
			case trusted && !(field.IsExported() && value.Kind() == reflect.Interface), !written && value.IsZero():
				continue
			case !trusted && !written:
				return fmt.Sprintf("%s.%s", v.Type(), field.Name)
			}
			if field := leftOut(value); field != "" {
				return field
			}
		}
	}
	return ""
}
