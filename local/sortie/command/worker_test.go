package command_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/conformance"
	"github.com/sortie-dev/sortie/local/sortie/command"
)

// TestWorkerCheckTellsWhatIsWrong: the sentence, its place in the contract and
// what was seen; the exit code says it too.
func TestWorkerCheckTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	got := sortie(t, nil, "", "worker", "check", "--only", "work,cancel", "--", "/bin/sh", "-c", "echo no idea")
	if got.code != command.ExitFailed || !strings.Contains(got.stdout, "broken    WC-3.1.1   A worker sends started") || !strings.Contains(got.stdout, "no idea") ||
		!strings.Contains(got.stderr, "does not conform: 3 sentences") {
		t.Errorf("it ends with %d and says\n%s%s", got.code, got.stdout, got.stderr)
	}
}

func TestWorkerCheckReportsAsJSON(t *testing.T) {
	t.Parallel()
	got := sortie(t, nil, "", "worker", "check", "--json", "--only=work", "--", "/bin/sh", "-c", "exit 1")
	var report conformance.Report
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil {
		t.Fatal(err)
	}
	if got.code != command.ExitFailed || report.Conforms || len(report.Verdicts) != 1 || report.Verdicts[0].Mark != conformance.Broken {
		t.Errorf("it ends with %d and reports %+v", got.code, report)
	}
}

func TestWorkerCheckRefusesAWrongCommandLine(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"--interval=0s", "--", "true"}, {"--interval=x", "--", "true"}} {
		if got := sortie(t, nil, "", append([]string{"worker", "check"}, args...)...); got.code != command.ExitUsage {
			t.Errorf("%v ends with %d: %s", args, got.code, got.stderr)
		}
	}
}
