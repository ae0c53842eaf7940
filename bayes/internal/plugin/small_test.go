package plugin

import "testing"

func TestSmall(t *testing.T) {
	const begin = "func.func @main(%x: tensor<40434x14xf32>) -> tensor<50x14xf32> {\n"
	for _, c := range []struct {
		program string
		want    bool
	}{
		{begin + `  %1 = "stablehlo.gather"(%x, %2) : (tensor<40434x14xf32>, tensor<50x1xi32>) -> tensor<50x14xf32>`, true},
		{begin + `  %1 = "stablehlo.abs"(%x) : (tensor<40434x14xf32>) -> tensor<40434x14xf32>`, false},
		{`%1 = "stablehlo.iota"() : () -> tensor<32768xui32>`, true},
		{`%1 = "stablehlo.iota"() : () -> tensor<32769xui32>`, false},
		{`%1 = "stablehlo.iota"() : () -> tensor<128x128x2x2xui32>`, false},
		{`%1 = "stablehlo.iota"() : () -> tensor<0x99999xui32>`, true},
		{`%1 = "stablehlo.iota"() : () -> tensor<9999999x9999999x9999999x9999999xui32>`, false},
		{`%1 = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>`, true},
		{`%1 = "stablehlo.while"(%x) ({
			%2 = "stablehlo.abs"(%3) : (tensor<4xf32>) -> tensor<4xf32>
		}) : (tensor<40434x14xf32>) -> tensor<40434x14xf32>`, true},
		{"bytecode", false}, {"", false},
	} {
		if got := small([]byte(c.program)); got != c.want {
			t.Errorf("%s: small is %v", c.program, got)
		}
	}
}

// A program's name asks for one processor, not another use of that name.
func TestUndividable(t *testing.T) {
	const large = "%1 = f(%x) : (tensor<9xf32>) -> tensor<99999xf32>\n"
	for program, want := range map[string]bool{
		"module @one_processor_1 {\n" + large: true, "module @Exec_1 {\n" + large: false,
		"module @Exec_1 {\n" + large + "// module @one_processor": false,
	} {
		if got := undividable([]byte(program)); got != want {
			t.Errorf("%s: undividable is %v", program, got)
		}
	}
}
