package command_test

import (
	"strings"
	"testing"
)

// TestEventsAreSent sends events of flags, of a file and of standard input to a job with a sensor.
func TestEventsAreSent(t *testing.T) {
	t.Parallel()
	env := jobServer(t)
	const orders = "id: order\nimage: registry.example/order:1\nsensor: {cloudEvent: {types: [order.*]}}\n"
	if got := sortie(t, env, orders, "jobs", "apply", "-f", "-"); got.code != 0 {
		t.Fatal(got)
	}
	const first, second = `{"specversion":"1.0","id":"1","source":"/shop","type":"order.paid"}`, `{"specversion":"1.0","id":"2","source":"/shop","type":"other"}`
	for _, row := range []struct {
		input string
		args  []string
		code  int
		want  string
	}{
		{"", []string{"--type", "order.paid", "--source", "/shop", "--id", "1", "--data", `{"total": 12}`}, 0, "created"},
		{"", []string{"--type", "order.paid"}, 0, "created"},
		{"", []string{written(t, "["+first+",\n"+second+"]")}, 0, "existing"},
		{first + "\n" + second, []string{"-"}, 0, "ignored"},
		{"", nil, 2, "want a file, or --type"},
		{"", []string{"--type", "order.paid", "--data", "text"}, 2, "--data: "},
		{first, []string{"-", "--id", "1"}, 2, "a file and flags"},
		{first + "{", []string{"-"}, 2, "malformed JSON"},
		{"[]", []string{"-"}, 2, "0 events, want 1 to 100"},
		{"[" + strings.Repeat(first+",", 100) + first + "]", []string{"-"}, 2, "101 events"},
		{strings.Repeat(" ", 1<<20+1), []string{"-"}, 2, "more than 1048576 bytes"},
		{`{"id": "1"}`, []string{"-"}, 2, "specversion"},
		{"", []string{"no-such-file.json"}, 2, "no-such-file.json"},
		{"", []string{"a", "b"}, 2, "JOB"},
	} {
		got := sortie(t, env, row.input, append([]string{"jobs", "send", "order"}, row.args...)...)
		if text := got.stdout + got.stderr; got.code != row.code || !strings.Contains(text, row.want) {
			t.Errorf("%q: got %d, %s, want %d, %q", row.args, got.code, text, row.code, row.want)
		}
	}
	if got := sortie(t, env, "", "jobs", "send", "order", "--type", "order.paid", "--json"); got.code != 0 || !strings.Contains(got.stdout, `"result": "created"`) {
		t.Errorf("got %+v, want JSON", got)
	}
}
