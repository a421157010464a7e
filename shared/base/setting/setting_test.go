package setting_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/base/setting"
)

// config has a field of each kind.
type config struct {
	text, pattern, choice, url string
	flag                       bool
	count                      int
	size                       int64
	wait                       time.Duration
	list                       []string
}

func settings(c *config) []setting.Setting {
	return []setting.Setting{
		setting.Text(&c.text, "TEXT", "any", "a text"),
		setting.Pattern(&c.pattern, "PATTERN", "", "a pattern", regexp.MustCompile(`^[a-z]+$`)),
		setting.OneOf(&c.choice, "CHOICE", "a", "a choice", "a", "b"),
		setting.Bool(&c.flag, "FLAG", "true", "a flag"),
		setting.Integer(&c.count, "COUNT", "3", "a number", 1, 10),
		setting.Bytes(&c.size, "SIZE", "0", "a size"),
		setting.Duration(&c.wait, "WAIT", "90s", "a duration", time.Second, time.Hour),
		setting.URL(&c.url, "ADDRESS", "", "a URL"),
		setting.List(&c.list, "LIST", "a, b", "a list"),
	}
}

func TestDefaultsAreRead(t *testing.T) {
	t.Parallel()
	var c config
	given, err := setting.Read(setting.Map(map[string]string{"TEXT": "", "COUNT": "10", "ADDRESS": "https://a.example/b/"}), settings(&c))
	if err != nil {
		t.Fatal(err)
	}
	if c.text != "any" || !c.flag || c.count != 10 || c.wait != 90*time.Second || c.url != "https://a.example/b" || !slices.Equal(c.list, []string{"a", "b"}) {
		t.Errorf("got %+v", c)
	}
	if len(given) != 2 || !given["COUNT"] || !given["ADDRESS"] {
		t.Errorf("got given %v, want COUNT and ADDRESS", given)
	}
	if names := setting.Names(settings(&c)); len(names) != 9 || names[4] != "COUNT" {
		t.Errorf("got names %v", names)
	}
}

func TestEveryProblemIsNamed(t *testing.T) {
	t.Parallel()
	for name, rows := range map[string]map[string]string{
		"PATTERN": {"A1": `PATTERN: "A1" does not match`},
		"CHOICE":  {"c": `CHOICE: "c" is unknown, want one of a, b`},
		"FLAG":    {"perhaps": "want true or false"},
		"COUNT": {
			"0": "COUNT: 0 is out of range, want 1 to 10", "99999999999999999999": "out of range", "many": `"many" is not a whole number`, "1.5": "whole",
		},
		"SIZE":    {"8 MiB": "SIZE:", "-1": "want one such as"},
		"WAIT":    {"soon": "want one such as 90s", "1500ms": "whole seconds", "0s": "WAIT: 0s is out of range, want 1s to 1h0m0s", "61m": "out of range"},
		"ADDRESS": {"a.example": "ADDRESS:", "ftp://a": "http", "https://u@a": "user", "https://a?b": "query", "https://": "URL"},
		"LIST":    {"a,,b": "empty value", "a,a": `"a" occurs twice`},
	} {
		for value, want := range rows {
			var c config
			_, err := setting.Read(setting.Map(map[string]string{name: value}), settings(&c))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s=%s: got %v, want %q", name, value, err, want)
			}
		}
	}
	var c config
	_, err := setting.Read(setting.Map(map[string]string{"COUNT": "0", "WAIT": "soon", "FLAG": "x"}), settings(&c))
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("got %v, want three problems", err)
	}
}

func TestMisspeltVariablesAreReported(t *testing.T) {
	t.Parallel()
	known := []string{"SORTIE_MAX_MACHINES", "SORTIE_RETRY_DELAY", "SORTIE_KEYS", "SORTIE_URL", "SOURCE_API_URL", "SORTIE_TOKEN_TTL"}
	for name, want := range map[string]string{
		"SORTIE_MAX_MACHINE":  "SORTIE_MAX_MACHINES",
		"SORTIE_MACHINES_MAX": "SORTIE_MAX_MACHINES",
		"SORTIE_RETRY_DEALY":  "SORTIE_RETRY_DELAY",
		"SORTIE_retry_delay":  "SORTIE_RETRY_DELAY",
		"SORTIE_RETR_DELAYS":  "SORTIE_RETRY_DELAY",
		"SORTIE_KEY":          "SORTIE_KEYS",
		"SORTIE_TOKEN":        "",
		"SORTIE_KEEP":         "",
		"SORTIE_OUT":          "",
		"OTHER_MAX_MACHINE":   "",
		"SORTIE_MAX_MACHINES": "",
	} {
		err := setting.Misspelt([]string{name + "=s3cr3t"}, known)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: got %v, want no problem", name, err)
		case want != "" && (err == nil || err.Error() != name+": unknown variable, did you mean "+want+"?"):
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
	if err := setting.Misspelt([]string{"SORTIE_KEY", "SORTIE_MAX_MACHINE"}, known); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("got %v, want two problems", err)
	}
}
