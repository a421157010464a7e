package path_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/twin/asl/document"
	"github.com/sortie-dev/sortie/local/twin/asl/path"
)

const shop = `{"a":{"b":1,"c":[10,20,30],"with-dash":2,"q'\"":3},"null":null,"s":"text",
"users":[{"name":"ann","age":30,"tags":["x"]},{"name":"bob","age":20},{"name":"cy","age":40,"boss":{"name":"ann"}}],"min":25}`

func TestFind(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"$.a.b":                               `1`,
		"$['a']['b']":                         `1`,
		`$["a"].c[1]`:                         `20`,
		"$.a.c[-1]":                           `30`,
		"$.a.with-dash":                       `2`,
		`$.a['q\'"']`:                         `3`,
		"$.null":                              `null`,
		"$.a.c.length()":                      `3`,
		"$.s.length()":                        `4`,
		"$.a.c[*]":                            `[10,20,30]`,
		"$.a.c[0,2]":                          `[10,30]`,
		"$.a.c[1:]":                           `[20,30]`,
		"$.a.c[:-1]":                          `[10,20]`,
		"$.a.c[0:3:2]":                        `[10,30]`,
		"$.a.c[5:9]":                          `[]`,
		"$.none[*]":                           `[]`,
		"$.none[1:]":                          `[]`,
		"$.none..x":                           `[]`,
		"$..name":                             `["ann","bob","cy","ann"]`,
		"$..tags[0]":                          `["x"]`,
		"$.users[*].name":                     `["ann","bob","cy"]`,
		"$.users[*].boss":                     `[{"name":"ann"}]`,
		"$.users[?(@.age == 20)]":             `[{"name":"bob","age":20}]`,
		"$.users[?(@.age == 20.0)].name":      `["bob"]`,
		"$.users[?(@.age > $.min)].name":      `["ann","cy"]`,
		"$.users[?(@.age>=20&&@.age<40)].age": `[30,20]`,
		"$.users[?(@.boss || @.tags)].name":   `["ann","cy"]`,
		"$.users[?(!@.boss)].name":            `["ann","bob"]`,
		"$.users[?(@.name in ['ann', 'cy'])].age":    `[30,40]`,
		"$.users[?(@.name nin ['ann', 'cy'])].age":   `[20]`,
		"$.users[?(@.name =~ /A.*/i)].age":           `[30]`,
		"$.users[?(@.name != 'ann')].name":           `["bob","cy"]`,
		"$.users[?((@.age > 35) || @.age < 25)].age": `[20,40]`,
		"$.users[?(@.boss.name == 'ann')].name":      `["cy"]`,
		"$.a[?(@.b == 1)].c":                         `[[10,20,30]]`,
		"$.a['b','with-dash']":                       `[{"b":1,"with-dash":2}]`,
		"$.a.*":                                      `[1,[10,20,30],2,3]`,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			found, err := parse(t, text).Find(value(t, shop))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, document.String(found)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDefinitePathWithoutValue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"$.X":         "No results for path: $['X']",
		"$.a.X":       "No results for path: $['a']['X']",
		"$.no.such.x": "Missing property in path $['no']",
		"$.a.no.x":    "Missing property in path $['a']['no']",
		"$.a.c[7]":    "No results for path: $['a']['c'][7]",
		"$.null[0]":   "The path $['null'] is null",
		"$.s.x":       "Expected to find an object with property ['x'] in path $['s'] but found 'java.lang.String'. This is not a json object according to the JsonProvider",
		"$.a[0]":      `Filter: [0] can only be applied to arrays. Current context is: {"b":1,"c":[10,20,30],"with-dash":2,"q'\"":3}`,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			_, err := parse(t, text).Find(value(t, shop))
			if err == nil {
				t.Fatal("got a value, want an error")
			}
			if diff := cmp.Diff(want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ text, into, want string }{
		{"$", `{"a":1}`, `"new"`},
		{"$.a", `{"a":1,"b":2}`, `{"a":"new","b":2}`},
		{"$.x.y.z", `{}`, `{"x":{"y":{"z":"new"}}}`},
		{"$.a.x", `{"a":{"b":1}}`, `{"a":{"b":1,"x":"new"}}`},
		{"$.a[1].b", `{"a":[0,{"b":1}]}`, `{"a":[0,{"b":"new"}]}`},
		{"$.a.x", `{"a":1}`, ``},
		{"$.a", `[1]`, ``},
		{"$.a[3]", `{"a":[1]}`, ``},
		{"$.a[0]", `{}`, ``},
		{"$.a", `null`, ``},
	} {
		t.Run(row.text+" into "+row.into, func(t *testing.T) {
			t.Parallel()
			into := value(t, row.into)
			changed, err := parse(t, row.text).Set(into, "new")
			if row.want == "" {
				if err == nil {
					t.Fatalf("got %s", document.String(changed))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := document.String(changed); got != row.want || document.String(into) != row.into {
				t.Errorf("got %s, and the original became %s", got, document.String(into))
			}
		})
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		text                         string
		definite, reference, context bool
	}{
		{"$", true, true, false},
		{"$$.Execution.Id", true, true, true},
		{"$.a['b'][0]", true, true, false},
		{"$.a[-1]", true, false, false},
		{"$.a[*]", false, false, false},
		{"$..a", false, false, false},
		{"$.a[0,1]", false, false, false},
	} {
		p := parse(t, row.text)
		if p.Definite() != row.definite || p.Reference() != row.reference || p.Context() != row.context || p.String() != row.text {
			t.Errorf("%s: definite %v, reference %v, context %v", p, p.Definite(), p.Reference(), p.Context())
		}
	}
}

func TestParseRefusesInvalidPaths(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "a", "$a", "$.", "$..", "$[", "$[]", "$['a", "$['a'", "$.a b", "$[1:2:3:4]", "$[::0]", "$.a.sum()", "$[?(@.a ==)]",
		"$[?(@.a == 1]", "$[?()]", "$[?(1)]", "$[?(@.a =~ /(/)]", "$.a]", "$[a]", "States.UUID()", "$['a',]",
	} {
		_, err := path.Parse(text)
		if _, ok := errors.AsType[*path.ParseError](err); !ok {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

// FuzzParse searches for texts whose parsing or evaluation panics or does not
// end.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"$.a['b'][0].c", "$..a[?(@.b == 'x' && !(@.c > 1))]", "$$.a[1:2]", "$[?(@ =~ /a/i)]", "$.length()"} {
		f.Add(seed)
	}
	top, err := document.Parse([]byte(shop))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := path.Parse(text)
		if err != nil {
			return
		}
		found, err := p.Find(top)
		if !p.Definite() {
			if _, list := found.([]any); !list || err != nil {
				t.Errorf("%q: got %v, %v from an indefinite path, want a list", text, found, err)
			}
		}
		if (err == nil) != p.Has(top) && p.Definite() {
			t.Errorf("%q: Find and Has differ", text)
		}
	})
}

func parse(t *testing.T, text string) path.Path {
	t.Helper()
	p, err := path.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func value(t *testing.T, text string) any {
	t.Helper()
	v, err := document.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}
