package operate

import (
	"testing"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/twin/stack"
)

func TestSettingsHaveFastHeartbeats(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		env               map[string]string
		interval, timeout string
	}{
		"defaults": {nil, "2s", "20s"},
		"interval": {map[string]string{"SORTIE_HEARTBEAT_INTERVAL": "5s"}, "5s", ""},
		"timeout":  {map[string]string{"SORTIE_HEARTBEAT_TIMEOUT": "3s"}, "", "3s"},
	} {
		a := &Operator{&cli.App{Program: cli.Program{Env: func(name string) (string, bool) { value, ok := row.env[name]; return value, ok }}}}
		interval, _ := a.settings("SORTIE_HEARTBEAT_INTERVAL")
		timeout, _ := a.settings("SORTIE_HEARTBEAT_TIMEOUT")
		if interval != row.interval || timeout != row.timeout {
			t.Errorf("%s: got %q and %q, want %q and %q", name, interval, timeout, row.interval, row.timeout)
		}
		if _, err := stack.SettingsFrom(a.settings, nil); err != nil {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}
