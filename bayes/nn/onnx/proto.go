package onnx

import (
	"encoding/binary"
	"fmt"
	"math"

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

// all are the messages of a list.
func (m message) all(name string) (items []message) {
	for i, list := 0, m.get(name).List(); i < list.Len(); i++ {
		items = append(items, message{list.Get(i).Message()})
	}
	return items
}

// texts are the texts of a list.
func (m message) texts(name string) (items []string) {
	for i, list := 0, m.get(name).List(); i < list.Len(); i++ {
		items = append(items, list.Get(i).String())
	}
	return items
}

// ints are the whole numbers of a list.
func (m message) ints(name string) (items []int) {
	for i, list := 0, m.get(name).List(); i < list.Len(); i++ {
		items = append(items, int(list.Get(i).Int()))
	}
	return items
}

// attribute is a node's, by name.
func (m message) attribute(name string) (a message, is bool) {
	for _, a := range m.all("attribute") {
		if a.text("name") == name {
			return a, true
		}
	}
	return message{}, false
}

// float is an attribute, or what it is by default.
func (m message) float(name string, otherwise float64) float64 {
	if a, is := m.attribute(name); is {
		return a.get("f").Float()
	}
	return otherwise
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
	tensorAttribute                                  = 4 // the type of an AttributeProto
)

// size is the number of a tensor's elements.
func size(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// floats are the elements of a TensorProto of float32 or float64.
func floats(tensor message) (values []float32, err error) {
	raw, kind, want := tensor.get("raw_data").Bytes(), tensor.get("data_type").Int(), size(tensor.ints("dims"))
	switch {
	case kind == float32Type && len(raw) > 0:
		for i := 0; i+4 <= len(raw); i += 4 {
			values = append(values, math.Float32frombits(binary.LittleEndian.Uint32(raw[i:])))
		}
	case kind == float64Type && len(raw) > 0:
		for i := 0; i+8 <= len(raw); i += 8 {
			values = append(values, float32(math.Float64frombits(binary.LittleEndian.Uint64(raw[i:]))))
		}
	default:
		list := tensor.get(map[bool]string{true: "double_data", false: "float_data"}[kind == float64Type]).List()
		for i := range list.Len() {
			values = append(values, float32(list.Get(i).Float()))
		}
	}
	if len(values) != want {
		return nil, fmt.Errorf("tensor %q of dimensions %v has %d numbers, not %d", tensor.text("name"), tensor.ints("dims"),
			len(values), want)
	}
	return values, nil
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
