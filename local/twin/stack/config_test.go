package stack_test

import (
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/base/setting"
)

func TestEveryProblemOfTheEnvironmentIsReported(t *testing.T) {
	t.Parallel()
	values := map[string]string{"SORTIE_MAX_MACHINES": "-1", "AUTH_TOKEN": "a,,b", "SORTIE_RETRY_DEALY": "1s"}
	_, err := stack.SettingsFrom(setting.Map(values), []string{"SORTIE_MAX_MACHINES=-1", "SORTIE_RETRY_DEALY=1s", "PATH=/bin"})
	for _, want := range []string{"SORTIE_MAX_MACHINES: ", "AUTH_TOKEN", "SORTIE_RETRY_DEALY: unknown variable, did you mean SORTIE_RETRY_DELAY?"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestVariablesOfOtherProgramsAreNoProblem sets the variables that a shell may export for a
// deployment, a test or a worker.
func TestVariablesOfOtherProgramsAreNoProblem(t *testing.T) {
	t.Parallel()
	_, err := stack.SettingsFrom(setting.Map(nil), []string{
		"SORTIE_URL=http://x", "SORTIE_TOKEN=x", "SORTIE_STAGE=dev", "SORTIE_STEP=admit", "SORTIE_TABLE=t", "SORTIE_BUS=b", "SORTIE_KEYS=k",
		"SORTIE_STATE_MACHINE=arn", "SORTIE_SECRET_FLY=f", "SORTIE_VERSION=v", "SORTIE_CHECK=c", "SORTIE_TASK_ID=t", "SORTIE_ATTEMPT=1",
		"SORTIE_OUTPUT=o", "SORTIE_PROGRESS_FD=3", "SORTIE_CLOUDFLARE=x",
	})
	if err != nil {
		t.Error(err)
	}
}

// TestBucketsHaveTheirNames checks EC-3.10 for the local system. infra/README.md has the names
// of a deployment, from the same constants.
func TestBucketsHaveTheirNames(t *testing.T) {
	t.Parallel()
	g := start(t, served{})
	_, buckets, err := outside.LocalStack(g.Addresses)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"arke-exports", "arke-exports-accepted"} {
		if _, err := buckets.Objects(t.Context(), name); err != nil {
			t.Errorf("got %v for the bucket %s, want its objects", err, name)
		}
	}
	if g.Addresses.Bucket != "arke-exports" {
		t.Errorf("got the bucket %q for workers, want arke-exports", g.Addresses.Bucket)
	}
}
