package run

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// CheckWritten returns an error if the JSON of settings leaves out a field that is set: an unexported field, or one
// with the tag "-". A checkpoint identifies its run by the JSON of such settings, for instance those of a user's own
// kernel, and would otherwise be resumed with other settings. A type with a MarshalJSON is trusted to write all that
// influences a run; but the values of its exported fields of interface types have other types, and are checked, as are
// those of its exported fields that have a MarshalJSON too.
func CheckWritten(settings any) error {
	if field := leftOut(reflect.ValueOf(settings)); field != "" {
		return fmt.Errorf("%s is not written as JSON, by which a checkpoint knows its settings: the checkpoint would be "+
			"resumed with another value; export the field, give the type a MarshalJSON, or set no checkpoint", field)
	}
	return nil
}

var marshaler = reflect.TypeFor[json.Marshaler]()

func writesItself(t reflect.Type) bool {
	return t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler)
}

// leftOut names the first field that is set and that JSON leaves out; "": there is none.
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
		trusted := writesItself(v.Type())
		for i := range v.NumField() {
			field, value := v.Type().Field(i), v.Field(i)
			written := field.IsExported() && field.Tag.Get("json") != "-" ||
				field.Anonymous && field.Type.Kind() == reflect.Struct
			switch {
			case !written && value.IsZero(),
				trusted && !(field.IsExported() && (value.Kind() == reflect.Interface || writesItself(field.Type))):
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
