package command_test

import (
	"strings"
	"testing"
)

// TestBackfillRefusesARange checks that each error of a range or a name names the flag, and that
// nothing is printed before it.
func TestBackfillRefusesARange(t *testing.T) {
	t.Parallel()
	env := jobServer(t)
	for _, document := range []string{
		"id: berlin\nimage: a\nschedule: '0 2 * * *'\ntimeZone: Europe/Berlin\n", "id: later\nimage: a\nafter: [berlin]\n", "id: free\nimage: a\n",
	} {
		if got := sortie(t, env, document, "jobs", "apply", "-f", "-"); got.code != 0 {
			t.Fatalf("got %+v", got)
		}
	}
	for args, want := range map[string]string{
		"berlin --to 2026-01-01":                   "--from: missing, want the first time",
		"berlin --from 2026-01-01 --to 2026-01-01": "--to: 2026-01-01T00:00:00+01:00 is not after --from, 2026-01-01T00:00:00+01:00",
		"berlin --from 2026-01-01 --to 2025-01-01": "is not after --from",
		"berlin --from 2126-01-01 --to 2126-02-01": "--from: 2126-01-01T00:00:00+01:00 is in the future, want a past time",
		"berlin --from 2026-13-01":                 `--from: malformed time "2026-13-01"`,
		"berlin --from 2025-12-01 --to x":          `--to: malformed time "x"`,
		"berlin --from 2025-12-01 --name a/b":      `--name: malformed name "a/b"`,
		"later --from 2025-12-01":                  "job later runs at the times of job berlin; backfill that one",
		"free --from 2025-12-01":                   "job free has no schedule",
		"berlin --from 2025-12-24 --to 2025-12-25": "up to 1 run would be started, and nothing has changed",
	} {
		got := sortie(t, env, "", append([]string{"jobs", "backfill"}, strings.Fields(args)...)...)
		if got.code != 2 || !strings.Contains(got.stderr, want) || got.stdout != "" && !strings.HasPrefix(want, "up to") {
			t.Errorf("%s: got %+v, want exit code 2 and %q", args, got, want)
		}
	}
	// Dates are days of the time zone of the job.
	got := sortie(t, env, "", "jobs", "backfill", "berlin", "--from", "2025-12-24", "--to", "2025-12-26", "--yes", "--name", "feast")
	if want := "feast: 2 times of job berlin, from 2025-12-24T01:00:00Z to 2025-12-25T01:00:00Z\n2 new runs, 0 existing."; got.code != 0 || !strings.HasPrefix(got.stdout, want) {
		t.Errorf("got %+v, want %q", got, want)
	}
	got = sortie(t, nil, "id: a\nimage: b\nschedule: '0 2 * * *'\ntimeZone: Europe/Berlin\n", "jobs", "simulate", "-", "--from", "2027-03-27", "--until", "2027-03-29")
	if !strings.Contains(got.stdout, "Sun 2027-03-28 03:00:00 CEST") || strings.Count(got.stdout, "\n") != 3 {
		t.Errorf("got %+v, want the firings of two days", got)
	}
}
