package stacktest

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/container"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/setting"
)

// Config configures the stack of a test.
type Config struct {
	// Data is the data folder.
	Data string
	// Addr is the address of the API; empty means a free port of 127.0.0.1.
	Addr string
	// Settings are environment variables.
	Settings map[string]string
	// Play is the script of the worker: see Play. Program names another program of Main as the
	// worker, with the arguments Words. If both are empty, the export worker runs.
	Play, Program string
	Words         []string
	// Images maps further images to programs.
	Images map[string][]string
	// Engine is the address of a container engine; empty means no engine.
	Engine string
	// Engines are the inference servers.
	Engines []stack.EngineAddress
	// RootCAs are the trusted certificates of services with OpenAI's API; nil means those of the host.
	RootCAs *x509.CertPool
	// Source is the entity API; empty means the API of the sample.
	Source string
	// Sweep is the time between two sweeps; 0 means sweepInterval, which is short because tests
	// wait for sweeps.
	Sweep time.Duration
	// ReportWithin is stack.Config.ReportWithin.
	ReportWithin time.Duration
	// Now is the initial time of the stack; the zero time means the current time.
	Now time.Time
}

// sweepInterval is the default of Config.Sweep.
const sweepInterval = 100 * time.Millisecond

// Stack returns the configuration of the stack.
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
		Addr: cmp.Or(c.Addr, "127.0.0.1:0"), DataDir: c.Data, Executable: []string{executable}, Settings: settings,
		SourceURL: c.Source, Log: log, Version: "test", SweepInterval: cmp.Or(c.Sweep, sweepInterval),
		Engines: c.Engines, RootCAs: c.RootCAs, ReportWithin: c.ReportWithin,
	}
	if c.Engine != "" {
		config.Containers = container.Addresses{Tried: []string{c.Engine}}
	}
	if !c.Now.IsZero() {
		config.Clock = shifted{clock.System{}, c.Now.Sub(clock.System{}.Now())}
	}
	config.Images = maps.Clone(c.Images)
	if config.Images == nil {
		config.Images = map[string][]string{}
	}
	switch {
	case c.Play != "":
		config.Images[settings.Service.Image] = append([]string{executable, wordPlay}, strings.Fields(c.Play)...)
	case c.Program != "":
		config.Images[settings.Service.Image] = append([]string{executable, c.Program}, c.Words...)
	}
	return config, nil
}

// shifted is the host's clock with an offset.
type shifted struct {
	clock.System
	by time.Duration
}

// Now returns the shifted time.
func (s shifted) Now() time.Time { return s.System.Now().Add(s.by) }
