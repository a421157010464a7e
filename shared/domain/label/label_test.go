package label

import (
	"fmt"
	"strings"
	"testing"
)

func TestSyntaxIsThatOfKubernetes(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		"team": true, "Team_1.x-y": true, "a": true, "example.com/team": true, "a/b": true, strings.Repeat("k", 63): true,
		strings.Repeat("p", 253) + "/k": true,
		"":                              false, "/": false, "/a": false, "a/": false, "a/b/c": false, "-a": false, "a-": false, "a b": false, "ä": false, "a\x00": false,
		strings.Repeat("k", 64): false, strings.Repeat("p", 254) + "/k": false, "Example.com/a": false, "a..b/c": false, "-a.b/c": false, "a.b-/c": false, "a_b/c": false,
	} {
		if got := ValidKey(key); got != want {
			t.Errorf("key %.70q: got %t, want %t", key, got, want)
		}
	}
	for value, want := range map[string]bool{
		"": true, "data": true, "v1.2_3-x": true, strings.Repeat("v", 63): true,
		strings.Repeat("v", 64): false, "-a": false, "a.": false, "a/b": false, "a b": false, "<b>": false,
	} {
		if got := ValidValue(value); got != want {
			t.Errorf("value %q: got %t, want %t", value, got, want)
		}
	}
}

func TestCheckHasTheLimits(t *testing.T) {
	t.Parallel()
	many := func(n, size int) map[string]string {
		labels := map[string]string{}
		for i := range n {
			labels[fmt.Sprintf("%02d%s", i, strings.Repeat("k", size-2))] = strings.Repeat("v", 62)
		}
		return labels
	}
	for name, row := range map[string]struct {
		labels map[string]string
		key    string
		want   string
	}{
		"none":       {nil, "", ""},
		"all":        {many(Most, 32), "", ""},
		"one more":   {many(Most+1, 10), "", "33 labels, want at most 32"},
		"too large":  {many(Most, 70-2), "00" + strings.Repeat("k", 66), "malformed key"},
		"large":      {prefixed(many(Most, 60), "a.b/"), "", ""},
		"4096 bytes": {prefixed(many(Most, 60), "abc.d/"), "", ""},
		"over":       {prefixed(many(Most, 60), "abc.de/"), "", "4128 bytes of keys and values, want at most 4096"},
		"a bad key":  {map[string]string{"a b": ""}, "a b", "malformed key"},
		"a bad text": {map[string]string{"a": "b c"}, "a", `malformed value "b c"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Check(row.labels)
			switch {
			case row.want == "" && len(got) > 0:
				t.Errorf("got %v, want no problem", got)
			case row.want != "" && (len(got) == 0 || got[0].Key != row.key || !strings.Contains(got[0].Text, row.want)):
				t.Errorf("got %v, want %q of %q", got, row.want, row.key)
			}
		})
	}
}

func prefixed(labels map[string]string, prefix string) map[string]string {
	all := map[string]string{}
	for key, value := range labels {
		all[prefix+key] = value
	}
	return all
}

func TestChangesSetAndRemove(t *testing.T) {
	t.Parallel()
	before := map[string]string{"a": "1", "b": "2"}
	c := Of(map[string]string{"b": "3", "c": ""})
	c["a"] = nil
	if got := Text(c.Apply(before)); got != "b=3,c=" || Text(before) != "a=1,b=2" || c.String() != "a-,b=3,c=" {
		t.Errorf("got %s of %s with %s", got, Text(before), c)
	}
	if got := c.Check(); len(got) > 0 {
		t.Errorf("got %v, want no problem of %s", got, c)
	}
	if got := (Change{"a b": nil, "c": new("d e")}).Check(); len(got) != 2 || got[0].Key != "a b" || got[1].Key != "c" {
		t.Errorf("got %v, want a problem of each label", got)
	}
	if got := (Change{"a": nil, "b": nil, "x": nil}).Apply(before); got != nil {
		t.Errorf("got %v, want nil without labels", got)
	}
	if got := (Change{}).Apply(nil); got != nil {
		t.Errorf("got %v of no change, want nil", got)
	}
}

func TestChangesAreRead(t *testing.T) {
	t.Parallel()
	c, err := ParseChange([]string{"team=data", "a.b/c=", "old-", "x-y-"})
	if err != nil || c.String() != "a.b/c=,old-,team=data,x-y-" {
		t.Errorf("got %s, %v", c, err)
	}
	for _, text := range []string{"", "-", "=", "a", "a b=c", "a=b c", "<b>-", "a=-"} {
		if c, err := ParseChange([]string{text}); err == nil {
			t.Errorf("%q: got %v, want an error", text, c)
		}
	}
}

func TestSelectors(t *testing.T) {
	t.Parallel()
	labels := []map[string]string{nil, {"team": "data"}, {"team": "web", "env": "dev"}, {"team": "data", "env": ""}, {"a.b/c": "1"}}
	for text, want := range map[string]string{
		"":                        "01234",
		"team=data":               "13",
		" team == data ":          "13",
		"team!=data":              "024",
		"team=data,env!=dev":      "13",
		"team in (data, web),env": "23",
		"team notin (data)":       "024",
		"team notin(data),team":   "2",
		"env":                     "23",
		"!env":                    "014",
		"! team, ! env":           "04",
		"env=":                    "3",
		"env!=":                   "0124",
		"env in (,dev)":           "23",
		"a.b/c=1":                 "4",
		"team=data,team=web":      "",
	} {
		selector, err := Parse(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		got := ""
		for i, l := range labels {
			if selector.Matches(l) {
				got += fmt.Sprint(i)
			}
		}
		if got != want {
			t.Errorf("%q: got the labels %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"=":                                  "malformed key",
		" ":                                  "malformed key",
		"a,":                                 "malformed key",
		",a":                                 "malformed key",
		"a=b=c":                              "malformed value",
		"a===b":                              "malformed value",
		"a!==b":                              "malformed value",
		"a in b":                             "malformed key",
		"a in (b":                            "malformed requirement",
		"a is (b)":                           "malformed requirement",
		"a in (b) c":                         "malformed requirement",
		"a in ((b))":                         "malformed value",
		"a>1":                                "malformed key",
		"!a=b":                               "malformed key",
		"<script>=1":                         "malformed key",
		"a=\x00":                             "malformed value",
		"a=" + strings.Repeat("x", 5000):     "selector of 5002 bytes, want at most 4096",
		strings.Repeat("a,", Most) + "a":     "more than 32 requirements",
		"a in (" + strings.Repeat("b ", 200): "malformed requirement",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.70q: got %v, want %s", text, err, want)
		}
	}
}

// FuzzParse checks that accepted selectors have only keys and values that labels can have, and
// select the labels that they name.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "a=b", "a!=b", "a in (b,c),!d", "a notin (b)", "x/y==z,a", "a in (b", "(,),=!"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		selector, err := Parse(text)
		if err != nil {
			return
		}
		for _, r := range selector {
			if !ValidKey(r.key) {
				t.Errorf("%q: got the key %q, want none", text, r.key)
			}
			for _, value := range r.values {
				labels := map[string]string{r.key: value}
				if found := Check(labels); len(found) > 0 || (Selector{r}).Matches(labels) == r.negated {
					t.Errorf("%q: got %v for %v, want a valid label that decides", text, found, labels)
				}
			}
		}
	})
}

// FuzzCheck checks that a label that Check accepts can be selected by its text.
func FuzzCheck(f *testing.F) {
	f.Add("team", "data")
	f.Add("a.b/c", "")
	f.Fuzz(func(t *testing.T, key, value string) {
		labels := map[string]string{key: value}
		if len(Check(labels)) > 0 {
			return
		}
		if selector, err := Parse(Text(labels)); err != nil || !selector.Matches(labels) || selector.Matches(nil) {
			t.Errorf("%q=%q: got %v, %v, want a selector of the label alone", key, value, selector, err)
		}
	})
}
