package flymachines_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/twin/flymachines"
)

const plantedID = "0123456789abcd"

// plant writes the record of a machine with a chosen program into a server's folder. It returns
// the file that the program would create.
func plant(t *testing.T, dir string, change map[string]any) (mark string) {
	t.Helper()
	mark = filepath.Join(t.TempDir(), "mark")
	config := map[string]any{
		"image": image, "auto_destroy": false, "init": map[string]any{"cmd": []string{"touch " + mark}},
		"restart": map[string]any{"policy": "always"},
	}
	record := map[string]any{
		"id": plantedID, "app": app, "name": "planted", "region": "ord", "config": config, "version": "01ARZ3NDEKTSV4RRFFQ69G5FAV",
		"argv": []string{"/bin/bash", "-c", "touch " + mark}, "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z",
		"state": "created", "starts": 1, "events": []any{},
	}
	maps.Copy(record, change)
	folder := filepath.Join(dir, "machines", plantedID)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "machine.json"), record)
	return mark
}

func write(t *testing.T, path string, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestPlantedRecordStartsNothing opens folders with records that would start a program: pending
// starts, a pending restart, and an end before a restart. All have the argument list of the
// bound program.
func TestPlantedRecordStartsNothing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]map[string]any{
		"created":             {},
		"created, own argv":   {"argv": []string{"/usr/bin/touch", "/mark"}},
		"created and stopped": {"action": "stop", "signal": 15},
		"starting":            {"state": "starting", "starts": 2, "ended": 1},
		"restart is pending":  {"state": "stopped", "action": "restart", "ended": 1},
		"ended meanwhile":     {"state": "started"},
		"restarting":          {"state": "stopping", "action": "restart"},
		"stopped":             {"state": "stopped", "ended": 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			mark := plant(t, dir, change)
			if name == "ended meanwhile" {
				folder := filepath.Join(dir, "machines", plantedID)
				write(t, filepath.Join(folder, "start.json"), map[string]any{"start": 1, "at": "2026-01-01T00:00:00Z"})
				write(t, filepath.Join(folder, "exit.json"), map[string]any{"start": 1, "code": 1, "at": "2026-01-01T00:00:00Z"})
			}
			m := setup(t, func(c *flymachines.Config) { c.Dir = dir })
			if strings.Contains(name, "stopped") { // the only change is a request for another start
				m.wait(plantedID, "stopped")
				if _, err := m.client.Start(t.Context(), app, plantedID, ""); err != nil {
					t.Fatal(err)
				}
			}
			m.wait(plantedID, "stopped")
			if got := events(m.get(plantedID)); !strings.Contains(got, "exit/stopped") || strings.Contains(got, "start/started") {
				t.Errorf("got events %s, want an exit and no start", got)
			}
			if _, err := os.Stat(mark); err == nil {
				t.Error("the planted program has run")
			}
		})
	}
}

func TestPlantedRecordOfOthersIsRefused(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(record string) error
		says   string
	}{
		"readable by others": {func(record string) error { return os.Chmod(record, 0o644) }, "chmod 0600"},
		"a symbolic link": {func(record string) error {
			if err := os.Rename(record, record+"x"); err != nil {
				return err
			}
			return os.Symlink(record+"x", record)
		}, "symbolic link"},
		"its folder is a symbolic link": {func(record string) error {
			folder := filepath.Dir(record)
			elsewhere := filepath.Join(filepath.Dir(filepath.Dir(folder)), "elsewhere")
			if err := os.Rename(folder, elsewhere); err != nil {
				return err
			}
			return os.Symlink(elsewhere, folder)
		}, "not a folder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config(t, processes(t))
			plant(t, cfg.Dir, nil)
			if err := row.change(filepath.Join(cfg.Dir, "machines", plantedID, "machine.json")); err != nil {
				t.Fatal(err)
			}
			if _, err := flymachines.Open(cfg); err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("got %v, want %q", err, row.says)
			}
		})
	}
}
