package intrinsic_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/twin/asl/document"
	"github.com/sortie-dev/sortie/local/twin/asl/intrinsic"
	"github.com/sortie-dev/sortie/local/twin/asl/path"
)

const input = `{"s":"text","n":3,"x":null,"o":{"b":1,"a":["x",2.50]},"l":[3,1,3.0,"3",{"k":1},{"k":1.0}],"blank":" ","j":"{\"z\":1,\"a\":2}",
"d":0,"re":"a+","f":"{}-{}","paren)":"p"}`

func TestCalls(t *testing.T) {
	t.Parallel()
	for call, want := range map[string]string{
		"States.Format('{} and {}', $.s, $.n)":                                      `"text and 3"`,
		"States.Format('{} {} {}', $.o, $.l, $.x)":                                  `"{b=1, a=[x, 2.50]} [3, 1, 3.0, 3, {k=1}, {k=1.0}] null"`,
		`States.Format('it\'s \{\} \\ {}', true)`:                                   `"it's {} \\ true"`,
		"States.Format($.f, 1, 2)":                                                  `"1-2"`,
		"States.Format('none')":                                                     `"none"`,
		"States.Format('{}', $['paren)'])":                                          `"p"`,
		"States.StringToJson($.j)":                                                  `{"z":1,"a":2}`,
		"States.StringToJson($.blank)":                                              `null`,
		"States.StringToJson('{\"a\": [1.0]}')":                                     `{"a":[1.0]}`,
		"States.JsonToString($.o)":                                                  `"{\"b\":1,\"a\":[\"x\",2.50]}"`,
		"States.JsonToString($.s)":                                                  `"\"text\""`,
		"States.Array()":                                                            `[]`,
		"States.Array('a', 1, -2.5, null, true, $.n, States.Array($.x))":            `["a",1,-2.5,null,true,3,[null]]`,
		"States.ArrayPartition($.l, 4)":                                             `[[3,1,3.0,"3"],[{"k":1},{"k":1.0}]]`,
		"States.ArrayPartition(States.Array(), 2)":                                  `[]`,
		"States.ArrayContains($.l, 3)":                                              `true`,
		"States.ArrayContains($.l, 'x')":                                            `false`,
		"States.ArrayContains($.l, $.l[4])":                                         `true`,
		"States.ArrayRange(1, 9, 3)":                                                `[1,4,7]`,
		"States.ArrayRange(9, 1, -4)":                                               `[9,5,1]`,
		"States.ArrayRange(2, 1, 1)":                                                `[]`,
		"States.ArrayGetItem($.l, 3)":                                               `"3"`,
		"States.ArrayLength($.l)":                                                   `6`,
		"States.ArrayLength($.l[?(@.k == 1)])":                                      `2`,
		"States.ArrayUnique($.l)":                                                   `[3,1,"3",{"k":1}]`,
		"States.Base64Encode('é')":                                                  `"w6k="`,
		"States.Base64Decode('w6k=')":                                               `"é"`,
		"States.Hash('input data', 'SHA-1')":                                        `"aaff4a450a104cd177d28d18d74485e8cae074b7"`,
		"States.JsonMerge($.o, States.StringToJson($.j), false)":                    `{"b":1,"a":2,"z":1}`,
		"States.MathAdd(1.5, -1.5)":                                                 `1`,
		"States.MathAdd($.n, -10)":                                                  `-7`,
		"States.MathRandom(5, 6)":                                                   `5`,
		"States.StringSplit('a,b;;c,', ',;')":                                       `["a","b","c"]`,
		"States.StringSplit('a.b', $.re)":                                           `[".b"]`,
		"States.ArrayGetItem(States.StringSplit('a/b', '/'), States.MathAdd(0, 1))": `"b"`,
		" States.ArrayLength( $.l ) ":                                               `6`,
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			got, err := eval(t, call)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, document.String(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInvalidData(t *testing.T) {
	t.Parallel()
	for _, call := range []string{
		"States.Format($.n)", "States.Format('{}')", "States.Format('', 1)", "States.StringToJson('{')", "States.StringToJson($.n)",
		"States.ArrayPartition($.l, 0)", "States.ArrayPartition($.s, 1)", "States.ArrayContains($.o, 1)", "States.ArrayRange(0, 5000, 1)",
		"States.ArrayRange(0, 1, 0)", "States.ArrayGetItem($.l, 6)", "States.ArrayGetItem($.l, -1)", "States.ArrayLength($.s)",
		"States.Base64Decode('%')", "States.Hash('a', 'CRC')", "States.JsonMerge($.o, $.o, true)", "States.JsonMerge($.o, $.l, false)",
		"States.MathAdd('1', 2)", "States.MathAdd(9223372036854775807, 1)", "States.MathRandom(1, 1)", "States.StringSplit($.n, ',')",
	} {
		_, err := eval(t, call)
		if _, ok := errors.AsType[*intrinsic.Error](err); !ok {
			t.Errorf("%s: got %v", call, err)
		}
	}
}

func TestMissingPath(t *testing.T) {
	t.Parallel()
	_, err := eval(t, "States.Format('{}', States.ArrayGetItem($.none, 0))")
	var failed *intrinsic.Error
	if err == nil || errors.As(err, &failed) {
		t.Errorf("got %v, want the path's own error", err)
	}
}

func TestUUID(t *testing.T) {
	t.Parallel()
	got, err := eval(t, "States.UUID()")
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := got.(string); !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(text) {
		t.Errorf("got %s", text)
	}
}

func TestSeedRepeats(t *testing.T) {
	t.Parallel()
	a, errA := eval(t, "States.MathRandom(0, 1000000, 7)")
	b, errB := eval(t, "States.MathRandom(0, 1000000, 7)")
	if errA != nil || errB != nil || a != b {
		t.Errorf("got %v and %v", a, b)
	}
}

func TestParseRefusesInvalidCalls(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "States", "States.Nothing()", "States.UUID", "States.UUID(", "States.UUID())", "States.UUID(1)", "States.Format()", "States.MathAdd(1)",
		"States.Format('a)", `States.Format('\n')`, `States.StringToJson('{"a":"\"x\""}')`, "States.Format(a)", "States.Format('a' 'b')", "States.Format('a',)",
		"States.Format($.)", "States.MathAdd(1, 01)", "States.MathAdd(1, 1e999)", "$.a", "States.Format(\"a\")",
		strings.Repeat("States.Array(", 11) + strings.Repeat(")", 11),
	} {
		_, err := intrinsic.Parse(text)
		if _, ok := errors.AsType[*intrinsic.ParseError](err); !ok {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

// FuzzParse searches for calls whose parsing or evaluation panics or does not end.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"States.Format('a {}', $.x)", `States.Array('\'', 1, States.UUID())`, "States.ArrayRange(0, 9, 3)",
		"States.MathRandom(-5, $.n)", "States.JsonMerge($.o, $.o, false)", "States.ArrayLength($.l[?(@.k in ['a)'])])",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := intrinsic.Parse(text); err == nil {
			_, _ = eval(t, text)
		}
	})
}

func eval(t *testing.T, text string) (any, error) {
	t.Helper()
	call, err := intrinsic.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	top, err := document.Parse([]byte(input))
	if err != nil {
		t.Fatal(err)
	}
	bits := uint64(1)
	return call.Eval(intrinsic.Env{
		Find:   func(p path.Path) (any, error) { return p.Find(top) },
		Random: func() uint64 { bits *= 0x5851f42d4c957f2d; return bits },
	})
}
