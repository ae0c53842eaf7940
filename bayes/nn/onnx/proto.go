package onnx

import (
	"encoding/binary"
	"fmt"
	"math"

	"gobnn/bayes/nn"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// The reader keeps its protocol buffers to itself, so that the file is looked at, and rewritten, by the names of their
// fields, as https://github.com/onnx/onnx/blob/main/docs/IR.md has them.

// message is one of them, such as a NodeProto.
type message struct{ protoreflect.Message }

func (m message) field(name string) protoreflect.FieldDescriptor {
	return m.Descriptor().Fields().ByName(protoreflect.Name(name))
}

func (m message) get(name string) protoreflect.Value { return m.Get(m.field(name)) }
func (m message) text(name string) string            { return m.get(name).String() }
func (m message) of(name string) message             { return message{m.get(name).Message()} }
func (m message) list(name string) protoreflect.List { return m.Mutable(m.field(name)).List() }

// mutable is a field's message, which is made where it is not there.
func (m message) mutable(name string) message { return message{m.Mutable(m.field(name)).Message()} }

// append is a new message at the end of a list.
func (m message) append(name string) message { return message{m.list(name).AppendMutable().Message()} }

// items are those of a list, as another type.
func items[T any](m message, name string, as func(protoreflect.Value) T) (all []T) {
	for i, list := 0, m.get(name).List(); i < list.Len(); i++ {
		all = append(all, as(list.Get(i)))
	}
	return all
}

func (m message) all(name string) []message {
	return items(m, name, func(v protoreflect.Value) message { return message{v.Message()} })
}

func (m message) names(list string) []string {
	return items(m, list, func(v protoreflect.Value) string { return message{v.Message()}.text("name") })
}

func (m message) texts(name string) []string { return items(m, name, protoreflect.Value.String) }

func (m message) ints(name string) []int {
	return items(m, name, func(v protoreflect.Value) int { return int(v.Int()) })
}

// size is the number of a tensor's elements.
func (m message) size() int { return nn.Parameter{Shape: m.ints("dims")}.Size() }

// attribute is a node's, by name.
func (m message) attribute(name string) (a message, is bool) {
	for _, a := range m.all("attribute") {
		if a.text("name") == name {
			return a, true
		}
	}
	return message{}, false
}

// attach appends an attribute.
func (m message) attach(name string, kind protoreflect.EnumNumber) message {
	a := m.append("attribute")
	a.put("name", name)
	a.put("type", kind)
	return a
}

// float is an attribute, or what it is by default.
func (m message) float(name string, otherwise float64) float64 {
	if a, is := m.attribute(name); is {
		return a.get("f").Float()
	}
	return otherwise
}

// whole is an attribute's list of whole numbers, or its one number, or what it is by default.
func (m message) whole(name string, otherwise ...int) []int {
	switch a, is := m.attribute(name); {
	case !is:
		return otherwise
	case len(a.ints("ints")) > 0:
		return a.ints("ints")
	default:
		return []int{int(a.get("i").Int())}
	}
}

// put sets a field to a text, or a number.
func (m message) put(name string, value any) { m.Set(m.field(name), protoreflect.ValueOf(value)) }

// add appends texts, whole numbers or messages to a list.
func (m message) add(name string, values ...any) {
	for _, v := range values {
		if one, is := v.(message); is {
			v = one.Message
		}
		m.list(name).Append(protoreflect.ValueOf(v))
	}
}

// keep leaves those messages of a list that a test accepts.
func (m message) keep(name string, test func(message) bool) {
	all := m.all(name)
	m.Clear(m.field(name))
	for _, one := range all {
		if test(one) {
			m.add(name, one)
		}
	}
}

// The types of a TensorProto's elements that are read, and the place of one outside of the file.
const (
	float32Type, int64Type, float16Type, float64Type = 1, 7, 10, 11
	external                                         = 1
	stringAttribute, tensorAttribute                 = 3, 4 // types of an AttributeProto
)

// weightOf is a TensorProto of float32 or float64.
func weightOf(tensor message) (w weight, err error) {
	w.Name, w.Shape = tensor.text("name"), tensor.ints("dims")
	raw, double, list := tensor.get("raw_data").Bytes(), tensor.get("data_type").Int() == float64Type, "float_data"
	if double {
		list = "double_data"
	}
	w.Values = items(tensor, list, func(v protoreflect.Value) float32 { return float32(v.Float()) })
	for ; double && len(raw) >= 8; raw = raw[8:] {
		w.Values = append(w.Values, float32(math.Float64frombits(binary.LittleEndian.Uint64(raw))))
	}
	for ; !double && len(raw) >= 4; raw = raw[4:] {
		w.Values = append(w.Values, math.Float32frombits(binary.LittleEndian.Uint32(raw)))
	}
	if len(w.Values) != w.Size() {
		err = fmt.Errorf("tensor %q of dimensions %v has %d numbers, not %d", w.Name, w.Shape, len(w.Values), w.Size())
	}
	return w, err
}

// unmarshal reads a ModelProto.
func unmarshal(content []byte) (message, error) {
	kind, err := protoregistry.GlobalTypes.FindMessageByName("protos.ModelProto")
	if err != nil {
		return message{}, err
	}
	m := message{kind.New()}
	return m, proto.Unmarshal(content, m.Interface())
}
