package plugin

import (
	"bytes"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// XLA for CPUs divides the loops of a program among its threads, by an estimate of their work that knows nothing of
// what it takes to wake a thread, some 50 microseconds on a virtual machine. In a program that computes no tensor of
// more than smallTensor numbers that is never worth it: the pass that divides loops is left out.
const (
	smallTensor  = 1 << 15
	dividingPass = "cpu-parallel-task-assigner"
)

// OneProcessor is the name of a program that is compiled for one processor though it has large tensors, such as
// parameters of which it takes another view: the others are for programs beside it.
const OneProcessor = "one_processor"

// undividable says whether a program is compiled for one processor.
func undividable(program []byte) bool {
	head, _, _ := bytes.Cut(program, []byte("\n"))
	return bytes.Contains(head, []byte("module @"+OneProcessor)) || small(program)
}

// small says whether a program, StableHLO as go-xla writes it, computes no tensor of more than smallTensor numbers. Of
// a program in another form that is not known.
func small(program []byte) bool {
	found := false
	for line := range bytes.Lines(program) {
		// An operation is a line "%1 = name(...) : (types) -> types". Its arguments may be large, such as data from
		// which it takes a few rows. An operation with a body, such as a loop, has more lines; its results are its
		// body's.
		line = bytes.TrimSpace(line)
		arrow := bytes.LastIndex(line, []byte(" -> "))
		if !bytes.HasPrefix(line, []byte("%")) || arrow < 0 {
			continue
		}
		found = true
		if numbers(line[arrow:]) > smallTensor {
			return false
		}
	}
	return found
}

// numbers returns the count of numbers in the first type of a text, such as 3000 for "tensor<50x60xf32>".
func numbers(types []byte) int {
	_, shape, _ := bytes.Cut(types, []byte("tensor<"))
	count := 1
	for {
		digits, rest, more := bytes.Cut(shape, []byte("x"))
		size, err := strconv.Atoi(string(digits))
		if !more || err != nil { // the type of a number comes last
			return count
		}
		shape, count = rest, min(count*size, smallTensor+1)
	}
}

// undivided returns the options of a compilation, a serialised CompileOptionsProto, without the pass that divides
// loops. It appends an entry of env_option_overrides: in a serialised message, appended fields add to the fields of the
// same number.
func undivided(options []byte) []byte {
	text := func(number protowire.Number, value []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
	}
	const key, value, stringField, overrides = 1, 2, 1, 7
	entry := append(text(key, []byte("xla_disable_hlo_passes")), text(value, text(stringField, []byte(dividingPass)))...)
	return append(bytes.Clone(options), text(overrides, entry)...)
}
