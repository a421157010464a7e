package document_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/twin/asl/document"
)

func TestRoundTripKeepsOrderAndDigits(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"order":          `{"b":1,"a":{"z":null,"y":[true,false]}}`,
		"big integer":    `{"n":123456789012345678901234567890}`,
		"fraction":       `[1.0,1,-0.50,1e3,1.25E-7]`,
		"text":           `["\n\t\r\"\\","<&>","é","😀","\u0001"]`,
		"empty":          `[{},[],""]`,
		"scalar":         `"x"`,
		"many members":   `{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":10,"k":11,"l":12,"m":13,"n":14}`,
		"escaped member": `{"a\"b":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			value, err := document.Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(text, document.String(value)); diff != "" {
				t.Error(diff)
			}
			if !document.Fits(value, len(text)) || document.Fits(value, len(text)-1) {
				t.Errorf("Fits(%s) is wrong at its size", text)
			}
		})
	}
}

func TestEscapes(t *testing.T) {
	t.Parallel()
	value, err := document.Parse([]byte(`"\u00e9\ud83d\ude00\/\b\f\ud800x"`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("é😀/\b\f\ufffdx", value); diff != "" {
		t.Error(diff)
	}
}

func TestLastDuplicateCounts(t *testing.T) {
	t.Parallel()
	value, err := document.Parse([]byte(`{"a":1,"b":2,"a":3}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := document.String(value); got != `{"a":3,"b":2}` {
		t.Error(got)
	}
}

func TestParseRefusesInvalidJSON(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", " ", "{", "[1,]", "[1 2]", `{"a"}`, `{"a":}`, `{a:1}`, `{"a":1,}`, "01", "1.", "1e", "-", ".5", "+1", "tru", "nul",
		`"`, `"\x"`, `"\u12"`, "\"\n\"", "1 2", "'a'", "NaN", strings.Repeat("[", 2000),
	} {
		_, err := document.Parse([]byte(text))
		if _, ok := errors.AsType[*document.SyntaxError](err); !ok {
			t.Errorf("%.20q: got %v, want a *SyntaxError", text, err)
		}
	}
}

func TestEqual(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		a, b string
		want bool
	}{
		{`1`, `1.0`, true},
		{`100`, `1e2`, true},
		{`9007199254740993`, `9007199254740992`, false},
		{`123456789012345678901234567890`, `123456789012345678901234567891`, false},
		{`{"a":1,"b":[2]}`, `{"b":[2.0],"a":1}`, true},
		{`{"a":1}`, `{"a":1,"b":1}`, false},
		{`{"a":null}`, `{"b":null}`, false},
		{`[1,2]`, `[2,1]`, false},
		{`"1"`, `1`, false},
		{`null`, `null`, true},
		{`null`, `{}`, false},
		{`true`, `[]`, false},
	} {
		a, _ := document.Parse([]byte(row.a))
		b, _ := document.Parse([]byte(row.b))
		if document.Equal(a, b) != row.want || document.Equal(b, a) != row.want {
			t.Errorf("Equal(%s, %s): want %v", row.a, row.b, row.want)
		}
	}
}

func TestInt(t *testing.T) {
	t.Parallel()
	for text, want := range map[json.Number]int64{"3": 3, "3.0": 3, "-2e1": -20} {
		if got, ok := document.Int(text); !ok || got != want {
			t.Errorf("%s: got %d %v", text, got, ok)
		}
	}
	for _, text := range []json.Number{"1.5", "1e300", "9223372036854775808"} {
		if _, ok := document.Int(text); ok {
			t.Errorf("Int(%s): got an integer, want none", text)
		}
	}
}

func TestWithKeepsOriginal(t *testing.T) {
	t.Parallel()
	original := document.NewObject(document.Member{Key: "a", Value: "x"})
	changed := original.With("a", "y").With("b", nil)
	if document.String(original) != `{"a":"x"}` || document.String(changed) != `{"a":"y","b":null}` {
		t.Errorf("got %s and %s", document.String(original), document.String(changed))
	}
}

// FuzzParse compares the parser with encoding/json: both accept the same texts,
// with the same meaning.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5,"x\u00e9"],"b":{"c":null}}`, `[]`, `"\ud83d\ude00"`, `1e5`, ` true `, `{"a":1,"a":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		value, err := document.Parse(text)
		var want any
		decoder := json.NewDecoder(strings.NewReader(string(text)))
		decoder.UseNumber()
		if valid := json.Valid(text); valid != (err == nil) {
			t.Fatalf("%q: got %v, and encoding/json says valid is %v", text, err, valid)
		}
		if err != nil {
			return
		}
		if err := decoder.Decode(&want); err != nil {
			t.Fatal(err)
		}
		var got any
		decoder = json.NewDecoder(strings.NewReader(document.String(value)))
		decoder.UseNumber()
		if err := decoder.Decode(&got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(want, got) { // cmp is too slow for deep values
			t.Errorf("%q is %v", text, got)
		}
		if !document.Fits(value, len(document.String(value))) {
			t.Error("Fits is false at the value's size")
		}
	})
}
