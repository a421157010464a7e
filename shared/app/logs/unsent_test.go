package logs

import (
	"testing"

	"github.com/sortie-dev/sortie/shared/base/livelog"
)

// TestUnsentOutputFollowsTheSentOne compares the output that a dead worker has sent with
// that of its machine, which may be shorter.
func TestUnsentOutputFollowsTheSentOne(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ sent, machine, want string }{
		"more":        {"line 1\n", "line 1\nline 2\n", "line 2\n"},
		"the same":    {"line 1\n", "line 1\n", ""},
		"less":        {"line 1\nline 2\n", "line 1\n", ""},
		"none":        {"line 1\n", "", ""},
		"other":       {"line 1\n", "a longer text\n", ""},
		"sent is cut": {"", "line 1\n", ""},
	} {
		got := ""
		for _, f := range unsent([]livelog.Frame{{Stream: livelog.Stdout, Data: []byte(test.sent)}}, []byte(test.machine)) {
			got += string(f.Data)
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
