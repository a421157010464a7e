package command_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/conformance"
)

// The output has the requirement, its id and the observation, once.
func TestWorkerCheckReportsDefects(t *testing.T) {
	t.Parallel()
	got := sortie(t, nil, "", "worker", "check", "--only", "work,cancel", "--", "/bin/sh", "-c", "echo no idea")
	if got.code != cli.ExitFailed || !strings.Contains(got.stdout, "fail      WC-3.1.1   A worker sends started") || !strings.Contains(got.stdout, "no idea") ||
		!strings.Contains(got.stderr, "does not conform: 1 requirement") || !strings.Contains(got.stderr, "Not run: cancel") {
		t.Errorf("got code %d, output\n%s%s", got.code, got.stdout, got.stderr)
	}
}

func TestWorkerCheckReportsAsJSON(t *testing.T) {
	t.Parallel()
	got := sortie(t, nil, "", "worker", "check", "--json", "--only=work", "--", "/bin/sh", "-c", "exit 1")
	var report conformance.Report
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil {
		t.Fatal(err)
	}
	if got.code != cli.ExitFailed || report.Conforms || len(report.Verdicts) != 1 || report.Verdicts[0].Mark != conformance.Failed {
		t.Errorf("got code %d, %+v, want 1 and one failure", got.code, report)
	}
}

func TestWorkerCheckUsageErrors(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"--interval=0s", "--", "true"}, {"--interval=x", "--", "true"}} {
		if got := sortie(t, nil, "", append([]string{"worker", "check"}, args...)...); got.code != cli.ExitUsage {
			t.Errorf("%v: got code %d, %s, want %d", args, got.code, got.stderr, cli.ExitUsage)
		}
	}
}
