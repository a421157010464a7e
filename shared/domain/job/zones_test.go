package job_test

import (
	"archive/zip"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// zones returns the names in Go's time zone database.
func zones(t *testing.T) []string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	var names []string
	for _, f := range archive.File {
		if !strings.HasSuffix(f.Name, "/") {
			names = append(names, f.Name)
		}
	}
	if len(names) < 400 {
		t.Fatalf("got %d zones, want all of them", len(names))
	}
	return names
}

// TestZonesAreInTheProgram: functions run on hosts without a time zone database.
func TestZonesAreInTheProgram(t *testing.T) {
	t.Parallel()
	packages, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(strings.Fields(string(packages)), "time/tzdata") {
		t.Error("got a package without time/tzdata, want the database in the program")
	}
}

// transitions returns the times at which the zone's offset changes.
func transitions(zone *time.Location, from, until time.Time) []time.Time {
	var found []time.Time
	for at := from; ; {
		_, end := at.In(zone).ZoneBounds()
		if end.IsZero() || end.After(until) {
			return found
		}
		_, before := end.Add(-1).In(zone).Zone()
		if _, after := end.In(zone).Zone(); before != after {
			found = append(found, end)
		}
		at = end
	}
}

func wallOf(t time.Time, zone *time.Location) time.Time {
	_, offset := t.In(zone).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// expected computes firings minute by minute from the definition of Schedule. matches selects
// local times.
func expected(zone *time.Location, from, until time.Time, elapsed bool, matches func(wall time.Time) bool) []time.Time {
	const around = 50 * time.Hour
	var firings []time.Time
	var passed time.Time // the latest local time so far
	for at := from.Add(-around); at.Before(until); at = at.Add(time.Minute) {
		wall := wallOf(at, zone)
		fires := matches(wall)
		if !elapsed {
			fires = false
			if passed.IsZero() {
				passed = wall.Add(-time.Minute)
			}
			for passed.Before(wall) {
				passed = passed.Add(time.Minute)
				fires = fires || matches(passed)
			}
		}
		if fires && !at.Before(from) {
			firings = append(firings, at)
		}
	}
	return firings
}

// TestEveryTransition compares the firings around each change of offset in twenty years, in
// every zone, with the definition of Schedule.
func TestEveryTransition(t *testing.T) {
	t.Parallel()
	from, until := time.Date(2007, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	names := zones(t)
	if testing.Short() {
		names = slices.DeleteFunc(names, func(name string) bool { return len(name)%5 != 0 })
	}
	compared := 0
	for _, name := range names {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(1, uint64(len(name)))) //nolint:gosec // a repeatable test
		for i, change := range transitions(zone, from, until) {
			if i%4 != random.IntN(4) && len(name)%2 == 0 {
				continue // to save time, test a quarter of the changes in half of the zones
			}
			minute, hour := random.IntN(60), random.IntN(5)
			text, elapsed := fmt.Sprintf("%d %d * * *", minute, hour), false
			matches := func(w time.Time) bool { return w.Minute() == minute && w.Hour() == hour }
			switch random.IntN(3) {
			case 0:
				text, elapsed = fmt.Sprintf("%d * * * *", minute), true
				matches = func(w time.Time) bool { return w.Minute() == minute }
			case 1:
				text = fmt.Sprintf("%d,%d 0-3 * * *", minute, (minute+30)%60)
				matches = func(w time.Time) bool {
					return w.Hour() <= 3 && (w.Minute() == minute || w.Minute() == (minute+30)%60)
				}
			}
			s, start, end := parse(t, text, name), change.Add(-26*time.Hour), change.Add(26*time.Hour)
			var got []time.Time
			for at := start.Add(-1); ; {
				var ok bool
				if at, ok = s.Next(at, time.Time{}); !ok || !at.Before(end) {
					break
				}
				got = append(got, at)
			}
			if want := expected(zone, start, end, elapsed, matches); !slices.EqualFunc(got, want, time.Time.Equal) {
				t.Fatalf("%s, %s around %s: got %v, want %v", text, name, change.UTC(), got, want)
			}
			compared++
		}
	}
	t.Logf("%d transitions compared", compared)
}
