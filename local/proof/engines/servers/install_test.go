package servers

import (
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// TestLocksHaveHashes checks that every package in the lock files has a version and a hash.
func TestLocksHaveHashes(t *testing.T) {
	t.Parallel()
	files, err := locks.ReadDir(".")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d lock files (%v), want some", len(files), err)
	}
	for _, file := range files {
		text, err := locks.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "#") && (!strings.Contains(line, "==") || !strings.Contains(line, " --hash=sha256:")) {
				t.Errorf("%s: got %q, want NAME==VERSION --hash=sha256:HASH", file.Name(), line)
			}
		}
	}
}

func TestMissingPartsAreNamed(t *testing.T) {
	t.Parallel()
	say := func(string, ...any) { t.Error("an installation began") }
	for _, row := range []struct {
		kind    string
		environ []string
		want    string
	}{
		{"gpt", []string{"HOME=" + t.TempDir()}, `no inference server "gpt", want one of [llamacpp triton vllm]`},
		{"llamacpp", nil, "missing HOME and XDG_CACHE_HOME"},
	} {
		if _, err := Install(t.Context(), platform.EngineKind(row.kind), row.environ, say); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want %q", row.kind, err, row.want)
		}
	}
	err := programs(map[string]string{"no-such-program": "apt install no-such-program", "sh": "apt install dash"})
	if err == nil || err.Error() != "missing no-such-program: apt install no-such-program" {
		t.Errorf("got %v, want the missing program with its command", err)
	}
}
