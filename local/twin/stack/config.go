package stack

import (
	"errors"
	"log/slog"
	"time"

	"github.com/sortie-dev/sortie/local/twin/flymachines"
	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/httpkit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/setting"
	"github.com/sortie-dev/sortie/shared/setting/service"
)

// Config says what to start.
type Config struct {
	// Addr is where the HTTP API listens, "127.0.0.1:8080" for example. Port 0
	// is the one that the folder was served on before, or any free one.
	Addr string
	// DataDir is where everything is kept; it is made where it is missing.
	DataDir string
	// Images binds image names to local programs and their first arguments.
	// The configured export image is bound to the built-in worker unless it is
	// in here.
	Images map[string][]string
	// SourceURL is the entity API that workers read; empty serves the sample
	// collection, or what Settings say.
	SourceURL string
	// Executable runs this program again: the path, and arguments before the
	// command "worker" or "machine-supervisor".
	Executable []string
	Settings   Settings
	Log        *slog.Logger
	// Version is what /healthz tells.
	Version string
	// Path is the programs' PATH; empty is flymachines.DefaultPath.
	Path string
	// Starter runs the programs of machines; nil runs processes. Runner makes
	// machines; nil makes them over the Fly Machines API. Both are for
	// benchmarks.
	Starter flymachines.Starter
	Runner  port.Runner
	// Clock is the host's where it is nil. Another is for tests, of folders
	// that were left long ago.
	Clock clock.Clock
	// SweepInterval is the pause between two sweeps; 0 is a second.
	SweepInterval time.Duration
}

// Settings are the configuration from the environment.
type Settings struct {
	// Tokens are good for clients; empty only where the API listens on
	// loopback.
	Tokens []string
	// Service is what the use cases are told; the stack fills in its addresses.
	Service orchestrator.Config
}

// SettingsFrom reads AUTH_TOKEN (several tokens with commas between them) and the
// variables of service.Read. environ is the whole environment
// ("NAME=value"), in which misspelt variables are problems. The error joins every
// problem.
func SettingsFrom(lookup func(string) (string, bool), environ []string) (Settings, error) {
	service, err := service.Read(lookup)
	err = errors.Join(err, setting.Misspelt(environ, variables()))
	given, _ := lookup("AUTH_TOKEN")
	tokens, tokensErr := httpkit.Tokens(given)
	if tokensErr != nil {
		err = errors.Join(err, tokensErr)
	}
	return Settings{Tokens: tokens, Service: service}, err
}

// variables lists the SORTIE_ variables of the local system, of the command line and
// of workers.
func variables() []string {
	names := []string{"SORTIE_URL", "SORTIE_TOKEN", "SORTIE_CHECK", "SORTIE_TASK_ID", "SORTIE_ATTEMPT", "SORTIE_OUTPUT", "SORTIE_PROGRESS_FD"}
	for _, s := range service.Settings() {
		names = append(names, s.Name)
	}
	return names
}

// Addresses tell where the parts are.
type Addresses struct {
	URL      string `json:"url"`
	S3       string `json:"s3"`
	Machines string `json:"machines"`
	Source   string `json:"source"`
	Bucket   string `json:"bucket"`
	Data     string `json:"data"`
}
