package seeds

import (
	"strings"
	"testing"
	"time"
)

func TestPanicIsAProblemOfItsSeed(t *testing.T) {
	t.Parallel()
	o := guarded(func(seed uint64) Outcome { panic("broken") }, 7)
	if o.Add(); len(o.Problems) != 1 || !strings.HasPrefix(o.Problems[0], "panic: broken\n") {
		t.Errorf("got problems %q, want the panic with its stack", o.Problems)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"0 of 100 seeds, 0 failed, after 1m0s; time left: unknown": line(0, 0, 100, time.Minute),
		"25 of 100 seeds, 2 failed, after 1m0s; time left: 3m0s":   line(25, 2, 100, time.Minute),
		"100 of 100 seeds, 0 failed, after 1m30s; time left: 0s":   line(100, 0, 100, 90*time.Second),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestEverySeedIsPlayedOnce runs more seeds than there are CPUs.
func TestEverySeedIsPlayedOnce(t *testing.T) {
	t.Parallel()
	count, first, off := uint64(50), uint64(100), false
	played, sum := map[uint64]int{}, 0
	Each(t, Flags{Count: &count, First: &first, stop: &off, trace: &off}, "local/proof/simulation", func(seed uint64) Outcome {
		return Outcome{Add: func() { played[seed]++; sum++ }}
	})
	if len(played) != 50 || sum != 50 || played[100] != 1 || played[149] != 1 {
		t.Errorf("got %d seeds in %d simulations, want those from 100 to 149", len(played), sum)
	}
}
