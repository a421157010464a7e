package stacktest

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/setting"
)

// Config is what a test says about its stack.
type Config struct {
	// Data is the data folder.
	Data string
	// Settings are the environment.
	Settings map[string]string
	// Play is what the worker does instead of exporting: see play. Program is
	// the name, among those that Main was given, of another program to be the
	// worker, with Words. Empty is the export worker.
	Play, Program string
	Words         []string
	// Source is another entity API than the sample's.
	Source string
	// Now is when the stack lives; the zero time is the present.
	Now time.Time
}

// sweepInterval is a test's: what a sweep finds, a test waits for.
const sweepInterval = 100 * time.Millisecond

// Stack is the stack's own configuration.
func (c Config) Stack(log *slog.Logger) (stack.Config, error) {
	settings, err := stack.SettingsFrom(setting.Map(c.Settings), nil)
	if err != nil {
		return stack.Config{}, fmt.Errorf("cannot configure the stack: %w", err)
	}
	executable, err := os.Executable()
	if err != nil {
		return stack.Config{}, fmt.Errorf("cannot find this program: %w", err)
	}
	config := stack.Config{
		Addr: "127.0.0.1:0", DataDir: c.Data, Executable: []string{executable}, Settings: settings,
		SourceURL: c.Source, Log: log, Version: "test", SweepInterval: sweepInterval,
	}
	if !c.Now.IsZero() {
		config.Clock = shifted{clock.System{}, c.Now.Sub(clock.System{}.Now())}
	}
	switch {
	case c.Play != "":
		config.Images = map[string][]string{settings.Service.Image: append([]string{executable, wordPlay}, strings.Fields(c.Play)...)}
	case c.Program != "":
		config.Images = map[string][]string{settings.Service.Image: append([]string{executable, c.Program}, c.Words...)}
	}
	return config, nil
}

// shifted is the host's clock, in another time.
type shifted struct {
	clock.System
	by time.Duration
}

// Now is the time there.
func (s shifted) Now() time.Time { return s.System.Now().Add(s.by) }
