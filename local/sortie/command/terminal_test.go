package command_test

import (
	"bytes"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/sortie/command"
)

// TestTerminalHasColoursAndLocalTimes lists the failed run of 09:00 UTC.
func TestTerminalHasColoursAndLocalTimes(t *testing.T) {
	t.Parallel()
	const red, utc, local = "\x1b[31mFailed", "2026-11-21 09:00:00 UTC", "2026-11-21 18:00:00 JST"
	for name, row := range map[string]struct {
		terminal         bool
		more             []string
		env              map[string]string
		wanted, unwanted []string
	}{
		"a terminal": {true, nil, nil, []string{red, local, "\x1b[1mRUN"}, []string{utc}},
		"UTC":        {true, []string{"--utc"}, nil, []string{red, utc}, []string{local}},
		"NO_COLOR":   {true, nil, map[string]string{"NO_COLOR": "1"}, []string{local}, []string{"\x1b"}},
		"a pipe":     {false, nil, nil, []string{utc}, []string{"\x1b", local}},
		"JSON":       {true, []string{"--json"}, nil, []string{"2026-11-21T09:00:00Z"}, []string{"\x1b"}},
	} {
		env := (&api{}).start(t)
		maps.Copy(env, row.env)
		var stdout, stderr bytes.Buffer
		p := program(env, append([]string{"runs", "--all", "--format", "wide"}, row.more...)...)
		p.Stdin, p.Stdout, p.Stderr, p.Zone = strings.NewReader(""), &stdout, &stderr, time.FixedZone("JST", 9*60*60)
		if row.terminal {
			p.Size, p.Width = func() (int, int) { return 200, 24 }, func() int { return 200 }
		}
		if code := command.Main(t.Context(), p); code != 0 {
			t.Errorf("%s: got %d, %s", name, code, &stderr)
		}
		for _, text := range row.wanted {
			if !strings.Contains(stdout.String(), text) {
				t.Errorf("%s: got %q, want %q", name, &stdout, text)
			}
		}
		for _, text := range row.unwanted {
			if strings.Contains(stdout.String(), text) {
				t.Errorf("%s: got %q, want no %q", name, &stdout, text)
			}
		}
	}
}

func TestTerminalHasRedErrors(t *testing.T) {
	t.Parallel()
	for plain, want := range map[string]string{"": "\x1b[31msortie:\x1b[0m unknown command", "1": "sortie: unknown command"} {
		var stderr bytes.Buffer
		p := program(map[string]string{"NO_COLOR": plain}, "frobnicate")
		p.Stdout, p.Stderr, p.Width = &bytes.Buffer{}, &stderr, func() int { return 80 }
		if code := command.Main(t.Context(), p); code != 2 || !strings.HasPrefix(stderr.String(), want) {
			t.Errorf("NO_COLOR=%s: got %d and %q, want %q", plain, code, &stderr, want)
		}
	}
}
